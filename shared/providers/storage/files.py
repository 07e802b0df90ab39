"""A folder as an object store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from shared.errors import EngineUnavailableError, StoredObjectMissingError
from shared.providers.storage.base import checked_key


class FileStore:
    """Bytes in files below a folder; each appears whole or not at all, also when the process is killed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`. A disk that is full or away is `EngineUnavailableError`: it may pass."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise EngineUnavailableError(f"the object store cannot be written: {error.strerror}") from error

    def get(self, key: str) -> bytes:
        """Return the bytes stored under `key`."""
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        """Return the stored file, open for reading."""
        try:
            return self._path(key).open("rb")
        except FileNotFoundError as error:
            raise StoredObjectMissingError(f"nothing is stored under {key}") from error
        except OSError as error:
            raise EngineUnavailableError(f"the object store cannot be read: {error.strerror}") from error

    def exists(self, key: str) -> bool:
        """Return whether there is a file for `key`."""
        return self._path(key).is_file()

    def presigned_url(self, key: str, *, file_name: str, expires_s: int) -> str | None:  # noqa: ARG002
        """Return None: a folder serves no addresses, the local server hands the bytes out itself."""
        return None

    def _path(self, key: str) -> Path:
        return self._root / checked_key(key)
