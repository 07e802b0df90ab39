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
from pathlib import Path
from types import TracebackType
from typing import Self

from shared import errors
from shared.errors import LimitExceededError, PermanentError, TransientError, UnreadableFileError
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.worker import MEMBERS_FILE, TEXT_FILE
from shared.text.converted import ConvertedText

# A worker is replaced after so many files: what libraries leak never adds up.
_FILES_PER_WORKER = 500
_MAX_ANSWER_BYTES = 64 * 1024
_OUT_OF_MEMORY_SIGNALS = frozenset({signal.SIGKILL, signal.SIGABRT, signal.SIGTRAP})


class ConversionProcess:
    """A `Converter`: one long-lived worker process, started when first needed. Close it when done.

    One conversion at a time: threads that share it wait for one another.
    """

    def __init__(self, *, memory_bytes: int, output_bytes: int) -> None:
        self._limits = {"memory_bytes": memory_bytes, "output_bytes": output_bytes}
        self._process: subprocess.Popen[bytes] | None = None
        self._served = 0
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def convert(self, format_name: str, content: bytes, *, timeout_s: float) -> Conversion:
        """Return what the file holds, or raise the permanent error that says why it cannot be read."""
        with self._turn, tempfile.TemporaryDirectory(prefix="ki-convert-") as folder:
            given, made = Path(folder, "input"), Path(folder, "output")
            given.write_bytes(content)
            made.mkdir()
            answer = self._ask({"format": format_name, "input": str(given), "output": str(made)}, timeout_s)
            if "error" in answer:
                raise _error(answer["error"], answer.get("message", ""))
            return _read(made)

    def close(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # What could not be written to a dead worker is of no interest any more.
                with contextlib.suppress(OSError):
                    pipe.close()

    def _ask(self, request: dict[str, object], timeout_s: float) -> dict[str, str]:
        process = self._worker()
        self._served += 1
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({**request, "timeout_s": timeout_s}).encode() + b"\n")
            process.stdin.flush()
            line = _read_line(process.stdout.fileno(), timeout_s)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self.close()
            raise LimitExceededError(f"the conversion took longer than {timeout_s:g} s") from None
        if not line.endswith(b"\n"):
            raise self._died()
        answer: dict[str, str] = json.loads(line)
        return answer

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

    def _died(self) -> PermanentError:
        process = self._process
        code = process.wait() if process is not None else 0
        self.close()
        if code < 0 and -code in _OUT_OF_MEMORY_SIGNALS:
            return LimitExceededError("the converter ran out of memory on the file and was ended")
        if -code == signal.SIGXCPU:
            return LimitExceededError("the converter used more processor time than is allowed")
        return UnreadableFileError(f"the converter crashed on the file (exit code {code})")


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


def _read(folder: Path) -> Conversion:
    text = ConvertedText.from_json((folder / TEXT_FILE).read_bytes())
    names = json.loads((folder / MEMBERS_FILE).read_text(encoding="utf-8"))
    members = tuple(Member(name, (folder / str(position)).read_bytes()) for position, name in enumerate(names))
    return Conversion(text, members)


def _error(name: str, message: str) -> PermanentError | TransientError:
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PermanentError):
        return known(message)
    return UnreadableFileError(message or f"the conversion failed: {name}")
