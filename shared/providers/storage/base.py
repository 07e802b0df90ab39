"""The object store as every part sees it, and its keys."""

from __future__ import annotations

import hashlib
import re
from typing import BinaryIO, Protocol

from shared.errors import InvalidRequestError

_KEY = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
_MAX_KEY_CHARS = 512


class ObjectStore(Protocol):
    """Bytes by key. A key is made of what it holds, so that writing it twice changes nothing."""

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`, whole or not at all."""

    def get(self, key: str) -> bytes:
        """Return the bytes; `StoredObjectMissingError` when there are none."""

    def open(self, key: str) -> BinaryIO:
        """Return a readable stream of the bytes; the caller closes it."""

    def exists(self, key: str) -> bool:
        """Return whether something is stored under `key`."""

    def presigned_url(self, key: str, *, file_name: str, expires_s: int) -> str | None:
        """Return an address that serves the bytes as a download for a while, None where the store has none."""


def original_key(sha256: str) -> str:
    """Return the key of original bytes. A file's name is data and never part of a key."""
    return checked_key(f"originals/{sha256}")


def derived_key(kind: str, content: bytes, suffix: str = ".json") -> str:
    """Return the key of something made from an original, by its own content."""
    return checked_key(f"{kind}/{hashlib.sha256(content).hexdigest()}{suffix}")


def checked_key(key: str) -> str:
    """Return `key` if it is one; a key never leaves the store's root."""
    if len(key) > _MAX_KEY_CHARS or not _KEY.fullmatch(key) or ".." in key:
        raise InvalidRequestError(f"not a storage key: {key[:80]!r}")
    return key
