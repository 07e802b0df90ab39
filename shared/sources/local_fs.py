"""A folder, or a single file, as a source."""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from shared.errors import InvalidRequestError, UnreadableFileError
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.config import SourceConfig

# Clocks of file systems tick in steps, up to 2 s on FAT: what was written just now may be written again at the "same"
# time, so its time says nothing yet.
_SETTLED_AFTER_NS = 2_000_000_000


class LocalFolder:
    """The files at or below `path`, by their path below `root` (POSIX, NFC): the same id on every machine.

    `root` defaults to `path`, or to its folder when `path` is a file. Symbolic links are reported and never followed:
    where a file lies decides who may see it, and a link in an open folder must not open a file of a closed one. What
    cannot be read is reported as a problem. A scan holds one folder at a time.
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

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    @property
    def config(self) -> SourceConfig:
        """The source's configuration."""
        return self._config

    @property
    def listed_below(self) -> str | None:
        """The folder that a scan lists; a single file says nothing about others."""
        return None if self._start.is_file() else self._shown(self._start)

    def proves_gone(self, external_ids: Iterable[str]) -> bool:  # noqa: ARG002
        """Return False: a folder that is not mounted looks like an empty one."""
        return False

    def scan(self) -> Iterator[FoundObject | ScanProblem]:
        """Yield every file that the configuration takes in, in the order of its id, and problems as they are met."""
        if self._start.is_file():
            yield from self._taken(self._entry(self._start, self._shown(self._start)))
            return
        yield from self._below([self._start], self._shown(self._start))

    def open(self, external_id: str) -> BinaryIO:
        """Return the file, open for reading."""
        path = self._root / external_id
        if not os.path.lexists(path):
            # The name may be written in another form than the id.
            path = next(_written_otherwise(self._root, external_id.split("/")), path)
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

    def _below(self, folders: Sequence[Path], shown: str) -> Iterator[FoundObject | ScanProblem]:
        """Yield what lies in these folders, which are shown as one: their names differ in their Unicode form only."""
        files: dict[str, list[Path]] = {}
        inner: dict[str, list[Path]] = {}
        for folder in folders:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        name = _printable(entry.name)
                        kept = inner if entry.is_dir(follow_symlinks=False) else files
                        kept.setdefault(name, []).append(folder / entry.name)
            except OSError as error:
                yield ScanProblem(shown, f"the folder cannot be read: {error.strerror}")
        # With its slash, a folder has the place among the files that the ids of its files have.
        for key in sorted([*files, *(f"{name}/" for name in inner)]):
            name = key.rstrip("/")
            path = f"{shown}/{name}" if shown else name
            if key.endswith("/"):
                yield from self._below(sorted(inner[name]), path)
            else:
                yield from self._file(files[name], path)

    def _file(self, paths: Sequence[Path], shown: str) -> Iterator[FoundObject | ScanProblem]:
        # Written as the id is, the file is the one that `open` takes.
        first, *others = sorted(paths, key=lambda path: (path.name != shown.rpartition("/")[2], path))
        yield from self._taken(self._entry(first, shown))
        for _ in others:
            if self._config.takes(shown):
                yield ScanProblem(shown, "another file has the same name in another Unicode form")

    def _taken(self, entry: FoundObject | ScanProblem) -> Iterator[FoundObject | ScanProblem]:
        if isinstance(entry, ScanProblem) or self._config.takes(entry.external_id):
            yield entry

    def _entry(self, path: Path, shown: str) -> FoundObject | ScanProblem:
        try:
            if not path.resolve().is_relative_to(self._root):
                return ScanProblem(shown, "a symbolic link leads out of the folder")
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                return ScanProblem(shown, "a symbolic link; what it leads to is taken in where it lies")
            if not stat.S_ISREG(status.st_mode):
                return ScanProblem(shown, "not a file")
        except (OSError, RuntimeError) as error:
            return ScanProblem(shown, f"the file cannot be read: {getattr(error, 'strerror', None) or error}")
        return FoundObject(
            external_id=shown,
            path=shown,
            name=shown.rpartition("/")[2],
            size_bytes=status.st_size,
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            file_id=f"{status.st_dev}:{status.st_ino}",
            fingerprint=_fingerprint(status),
        )

    def _shown(self, path: Path) -> str:
        relative = _printable(path.relative_to(self._root).as_posix())
        return "" if relative == "." else relative


def _fingerprint(status: os.stat_result) -> str | None:
    newest = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - newest < _SETTLED_AFTER_NS:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _written_otherwise(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the files below `folder` whose names are shown as `parts`."""
    name, *rest = parts
    try:
        with os.scandir(folder) as entries:
            found = sorted(folder / entry.name for entry in entries if _printable(entry.name) == name)
    except OSError:
        return
    for path in found:
        if not rest:
            yield path
        elif not path.is_symlink():
            yield from _written_otherwise(path, rest)


def _printable(path: str) -> str:
    """Return the path as text: NFC, and bytes that are no UTF-8 as cp1252 would show them."""
    try:
        path.encode()
    except UnicodeEncodeError:
        path = os.fsencode(path).decode("cp1252", "replace")
    return unicodedata.normalize("NFC", path)
