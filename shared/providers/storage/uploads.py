"""The bucket that sources keep their files in: only read, its keys are other people's."""

from __future__ import annotations

from contextlib import closing
from typing import Any, BinaryIO, Final, cast

from shared.errors import LimitExceededError, StoredObjectMissingError
from shared.providers.storage.s3 import called

_PIECE_BYTES: Final = 8 * 1024 * 1024


class UploadBucket:
    """Objects by key, as they are now; the client (boto3 "s3") is made in the composition root and handed in."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self._name = name

    @property
    def name(self) -> str:
        """The bucket's name."""
        return self._name

    def exists(self, key: str) -> bool:
        """Return whether something lies under the key."""
        return self._call("head_object", key) is not None

    def read(self, key: str, *, max_bytes: int) -> bytes | None:
        """Return the bytes, None if nothing lies there; `LimitExceededError` if there are too many."""
        answer = self._call("get_object", key)
        if answer is None:
            return None
        # The body itself, not what it gives to a `with`: that is the raw stream, with errors of its own.
        with closing(answer["Body"]) as body:
            content = cast("bytes", called(body, "read", refused={}, amt=max_bytes + 1))
        if len(content) > max_bytes:
            raise LimitExceededError(f"the file is larger than {max_bytes} bytes")
        return content

    def copy_to(self, key: str, file: BinaryIO) -> bool:
        """Write what lies under the key to the file, piece by piece; return whether anything does."""
        answer = self._call("get_object", key)
        if answer is None:
            return False
        with closing(answer["Body"]) as body:
            while piece := called(body, "read", refused={}, amt=_PIECE_BYTES):
                file.write(piece)
        return True

    def _call(self, operation: str, key: str) -> dict[str, Any] | None:
        """Return the bucket's answer, None if nothing lies under the key."""
        try:
            return cast("dict[str, Any]", called(self.client, operation, refused={}, Bucket=self._name, Key=key))
        except StoredObjectMissingError:
            return None
