"""Conversion in a process of its own that is fed over a pipe, and replaced when it hangs, dies or grows."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shared import errors
from shared.errors import LimitExceededError, PermanentError, TransientError, UnreadableFileError
from shared.ingest.convert.formats import Conversion, Limits, Member, Refusal
from shared.ingest.convert.ocr import NotReadError
from shared.ingest.convert.ocr_engine import FileRecognition, Recognition, recognition
from shared.ingest.convert.worker import MEMBERS_FILE, PICTURE_FILE, TABLE_FILE, TEXT_FILE
from shared.providers.storage import ObjectStore
from shared.settings import Ingest
from shared.text.converted import ConvertedText

# A worker is replaced after so many files: what libraries leak never adds up.
_FILES_PER_WORKER = 500
_MAX_ANSWER_BYTES = 64 * 1024
# How long a worker that has closed its pipe may take to end.
_LAST_WORDS_S = 1
# What drawing a page may take, on top of the file's own time.
_PAGE_ALLOWANCE_S = 5.0
_BETWEEN = frozenset({PICTURE_FILE, TABLE_FILE})
_OUT_OF_MEMORY_SIGNALS = frozenset({signal.SIGABRT, signal.SIGTRAP})


class _KilledError(PermanentError):
    """The worker was killed from outside."""


class ConversionProcess:
    """A `Converter`: one long-lived worker process, started when first needed. Close it when done.

    One conversion at a time: threads that share it wait for one another. Without `recognition` the pages and pictures
    that need it are flagged.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        output_bytes: int,
        member_bytes: int | None = None,
        members: int = 10_000,
        recognition: Recognition | None = None,
    ) -> None:
        self._limits = {
            "memory_bytes": memory_bytes,
            "limits": asdict(Limits(members, member_bytes or output_bytes, output_bytes)),
            "ocr": recognition.rules.to_json() if recognition else None,
        }
        self._output_bytes = output_bytes
        self._recognition = recognition
        self._process: subprocess.Popen[bytes] | None = None
        self._served = 0
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def convert(self, format_name: str, content: bytes, *, timeout_s: float) -> Conversion:
        """Return what the file holds, or raise the permanent error that says why it cannot be read.

        `timeout_s` is the worker's own; text recognition has its time on top, and when that is not enough for a file,
        `UnfinishedError` says that the next try goes on.
        """
        with self._turn:
            # Its own limits do not kill a worker: somebody did, or a machine without memory. That is not the file's
            # fault, unless it happens again.
            with contextlib.suppress(_KilledError):
                return self._convert(format_name, content, timeout_s)
            try:
                return self._convert(format_name, content, timeout_s)
            except _KilledError as error:
                raise LimitExceededError(error.message) from error

    def _convert(self, format_name: str, content: bytes, timeout_s: float) -> Conversion:
        with tempfile.TemporaryDirectory(prefix="ki-convert-") as folder:
            given, made = Path(folder, "input"), Path(folder, "output")
            given.write_bytes(content)
            made.mkdir()
            try:
                answer = self._ask({"format": format_name, "input": str(given), "output": str(made)}, timeout_s, made)
                result = None if "error" in answer else _read(made, self._output_bytes)
            except BaseException:
                # Whatever it was, the worker is somewhere within a file: the next one gets another.
                self.close()
                raise
            if result is None:
                raise _error(answer["error"], answer.get("message", ""))
            return result

    def close(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is None:
            return
        # It leads a group of its own: what it may have started ends with it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # What could not be written to a dead worker is of no interest any more.
                with contextlib.suppress(OSError):
                    pipe.close()

    def _ask(self, request: dict[str, object], timeout_s: float, folder: Path) -> dict[str, str]:
        process = self._worker()
        self._served += 1
        assert process.stdout is not None
        pages = self._recognition.begin() if self._recognition else None
        cpu_s = timeout_s + (self._recognition.file_timeout_s if self._recognition else 0)
        message: dict[str, object] = {**request, "cpu_s": cpu_s}
        left_s = timeout_s
        while True:
            asked = time.monotonic()
            try:
                answer = self._exchange(process, message, left_s)
            except TimeoutError:
                raise LimitExceededError(f"the conversion took longer than {timeout_s:g} s") from None
            if pages is None or "recognise" not in answer:
                return answer
            # A page that is handed over is progress; so many are allowed, and each has a share of the time again.
            left_s -= time.monotonic() - asked
            left_s = min(timeout_s, left_s + _PAGE_ALLOWANCE_S)
            message = _recognised(pages, folder)

    def _exchange(
        self, process: subprocess.Popen[bytes], message: dict[str, object], timeout_s: float
    ) -> dict[str, str]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            line = _read_line(process.stdout.fileno(), timeout_s)
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._died(process, silent=not line)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise UnreadableFileError("the converter gave something that is no answer")
        return {str(key): str(value) for key, value in answer.items()}

    def _worker(self) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._served >= _FILES_PER_WORKER or self._process.poll() is not None):
            self.close()
        if self._process is None:
            self._served = 0
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a module of our own
                [sys.executable, "-m", "shared.ingest.convert.worker", json.dumps(self._limits)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Nothing of this process's environment: no names, no secrets.
                env={"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        return self._process

    def _died(self, process: subprocess.Popen[bytes], *, silent: bool) -> PermanentError:
        try:
            code = process.wait(_LAST_WORDS_S) if silent else None
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            return UnreadableFileError("the converter gave something that is no answer")
        if -code == signal.SIGKILL:
            return _KilledError("the converter was killed on the file twice: it or the machine ran out of memory")
        if -code in _OUT_OF_MEMORY_SIGNALS:
            return LimitExceededError("the converter ran out of memory on the file and was ended")
        if -code == signal.SIGXCPU:
            return LimitExceededError("the converter used more processor time than is allowed")
        return UnreadableFileError(f"the converter crashed on the file (exit code {code})")


def conversion_process(limits: Ingest, store: ObjectStore) -> ConversionProcess:
    """Return a converter with the limits of the settings, which keeps in `store` what it has recognised."""
    return ConversionProcess(
        memory_bytes=limits.convert_memory_bytes,
        output_bytes=limits.max_file_bytes * 2,
        member_bytes=limits.max_file_bytes,
        members=limits.max_members,
        recognition=recognition(limits, store),
    )


def _recognised(pages: FileRecognition, folder: Path) -> dict[str, object]:
    try:
        (folder / TABLE_FILE).write_text(pages.table(folder / PICTURE_FILE), encoding="utf-8")
    except NotReadError as error:
        return {"failed": str(error)}
    return {"recognised": True}


def _read_line(descriptor: int, timeout_s: float) -> bytes:
    """Return the next line; a shorter one when the worker has ended. `TimeoutError` when neither happens in time."""
    deadline = time.monotonic() + timeout_s
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not line.endswith(b"\n") and len(line) < _MAX_ANSWER_BYTES:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError
            piece = os.read(descriptor, _MAX_ANSWER_BYTES)
            if not piece:
                break
            line += piece
    return line


def _read(folder: Path, output_bytes: int) -> Conversion:
    """Return what the worker has written. It parsed what strangers wrote, so it is believed in nothing."""
    if sum(file.stat().st_size for file in folder.iterdir() if file.name not in _BETWEEN) > 2 * output_bytes:
        raise LimitExceededError("the converted file is larger than is allowed")
    try:
        text = ConvertedText.from_json((folder / TEXT_FILE).read_bytes())
        about = json.loads((folder / MEMBERS_FILE).read_text(encoding="utf-8"))
        members = tuple(_member(folder / str(position), row) for position, row in enumerate(about))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableFileError(f"the converter left no whole result: {type(error).__name__}") from error
    return Conversion(text, members)


def _member(content: Path, row: Mapping[str, Any]) -> Member:
    """Return a member as the worker described it; what is not of the kind that it should be raises `TypeError`."""
    name, folder, raw, refused = row["name"], row["folder"], row["raw_name"], row["refused"]
    if not (isinstance(name, str) and isinstance(folder, str)):
        raise TypeError("a name is no text")
    raw_name = bytes.fromhex(raw) if raw is not None else None
    if refused is None:
        return Member(name, content.read_bytes(), folder, raw_name)
    error = _error(str(refused["error"]), str(refused["reason"]))
    return Member(name, None, folder, raw_name, Refusal(type(error).__name__, error.message))


def _error(name: str, message: str) -> PermanentError | TransientError:
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PermanentError):
        return known(message)
    return UnreadableFileError(message or f"the conversion failed: {name}")
