"""A folder, or a single file, as a source."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from shared.errors import InvalidRequestError, UnreadableFileError
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.config import SourceConfig


class LocalFolder:
    """The files at or below `path`, by their path below `root` (POSIX, NFC): the same id on every machine.

    `root` defaults to `path`, or to its folder when `path` is a file. Symbolic links are reported and never followed:
    where a file lies decides who may see it, and a link in an open folder must not open a file of a closed one. What
    cannot be read is reported as a problem.
    """

    def __init__(self, name: str, path: Path, config: SourceConfig, *, root: Path | None = None) -> None:
        if not path.exists():
            raise InvalidRequestError(f"there is nothing at {path}")
        self._name = name
        self._config = config
        self._start = path.resolve()
        self._root = (root or (path if path.is_dir() else path.parent)).resolve()
        if not self._start.is_relative_to(self._root):
            raise InvalidRequestError(f"{path} lies outside the source's folder {self._root}")
        self._paths: dict[str, Path] = {}

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    @property
    def config(self) -> SourceConfig:
        """The source's configuration."""
        return self._config

    def scan(self) -> Iterator[FoundObject | ScanProblem]:
        """Yield every file that the configuration takes in, in the order of its id."""
        found = [self._entry(path) for path in self._files()]
        problems = [entry for entry in found if isinstance(entry, ScanProblem)]
        objects: dict[str, FoundObject] = {}
        for entry in found:
            if not isinstance(entry, FoundObject) or not self._config.takes(entry.external_id):
                continue
            if entry.external_id in objects:
                problems.append(ScanProblem(entry.path, "another file has the same name in another Unicode form"))
                self._paths[entry.external_id] = self._root / entry.external_id
                continue
            objects[entry.external_id] = entry
        yield from sorted(objects.values(), key=lambda entry: entry.external_id)
        yield from sorted(problems, key=lambda entry: entry.path)

    def open(self, external_id: str) -> BinaryIO:
        """Return the file, open for reading."""
        path = self._paths.get(external_id) or self._root / external_id
        if not path.exists():
            # The file's name may be written in another Unicode form than its id: only a scan knows it.
            found = any(entry.path == external_id for entry in self.scan())
            path = self._paths[external_id] if found and external_id in self._paths else path
        if not path.resolve().is_relative_to(self._root):
            raise UnreadableFileError("the file lies outside the source's folder")
        try:
            return self._opened(path)
        except FileNotFoundError as error:
            raise UnreadableFileError("the file is gone") from error
        except OSError as error:
            raise UnreadableFileError(f"the file cannot be read: {error.strerror}") from error

    def _opened(self, path: Path) -> BinaryIO:
        """Return the file at `path` if it is the one that lies there: it may be swapped for a link at any moment."""
        # Without blocking: a pipe would wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            self._check(descriptor, path.resolve())
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def _check(self, descriptor: int, lies_at: Path) -> None:
        opened = os.fstat(descriptor)
        if not lies_at.is_relative_to(self._root) or not os.path.samestat(opened, lies_at.lstat()):
            raise UnreadableFileError("the file lies outside the source's folder")
        if not stat.S_ISREG(opened.st_mode):
            raise UnreadableFileError("not a file")

    def _files(self) -> Iterator[Path | ScanProblem]:
        if self._start.is_file():
            yield self._start
            return
        problems: list[ScanProblem] = []

        def failed(error: OSError) -> None:
            problems.append(ScanProblem(str(error.filename), f"the folder cannot be read: {error.strerror}"))

        for folder, _, names in os.walk(self._start, onerror=failed, followlinks=False):
            yield from (Path(folder) / name for name in names)
        yield from problems

    def _entry(self, path: Path | ScanProblem) -> FoundObject | ScanProblem | None:
        if isinstance(path, ScanProblem):
            return path
        shown = _printable(path.relative_to(self._root).as_posix())
        try:
            if not path.resolve().is_relative_to(self._root):
                return ScanProblem(shown, "a symbolic link leads out of the folder")
            if path.is_symlink():
                return ScanProblem(shown, "a symbolic link; what it leads to is taken in where it lies")
            status = path.stat()
            if not path.is_file():
                return ScanProblem(shown, "not a file")
        except OSError as error:
            return ScanProblem(shown, f"the file cannot be read: {error.strerror}")
        self._paths.setdefault(shown, path)
        return FoundObject(
            external_id=shown,
            path=shown,
            name=shown.rpartition("/")[2],
            size_bytes=status.st_size,
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )


def _printable(path: str) -> str:
    """Return the path as text: NFC, and bytes that are no UTF-8 as cp1252 would show them."""
    try:
        path.encode()
    except UnicodeEncodeError:
        path = os.fsencode(path).decode("cp1252", "replace")
    return unicodedata.normalize("NFC", path)
