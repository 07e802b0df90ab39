"""The bucket that sources keep their files in: only read, its keys are other people's."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, Final, cast

from shared.errors import EngineUnavailableError, LimitExceededError, UnreadableFileError

_GONE: Final = {"NoSuchKey", "404", "NotFound", "NoSuchVersion", "MethodNotAllowed"}
_REFUSED: Final = {"AccessDenied", "403", "InvalidObjectState"}


class UploadBucket:
    """Objects by key, as they are now; the client (boto3 "s3") is made in the composition root and handed in."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def exists(self, key: str) -> bool:
        """Return whether something lies under the key."""
        return self._call("head_object", key) is not None

    def read(self, key: str, *, max_bytes: int) -> bytes | None:
        """Return the bytes, None if nothing lies there; `LimitExceededError` if there are too many."""
        answer = self._call("get_object", key)
        if answer is None:
            return None
        with _Body(answer["Body"]) as body:
            content = body.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise LimitExceededError(f"the file is larger than {max_bytes} bytes")
        return content

    def open(self, key: str) -> BinaryIO:
        """Return the bytes as a stream that the caller closes; `UnreadableFileError` if nothing lies there."""
        answer = self._call("get_object", key)
        if answer is None:
            raise UnreadableFileError("the file is gone")
        return cast("BinaryIO", _Body(answer["Body"]))

    def _call(self, operation: str, key: str) -> dict[str, Any] | None:
        """Return the bucket's answer, None if nothing lies under the key."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only where a bucket is used

        try:
            return cast("dict[str, Any]", getattr(self._client, operation)(Bucket=self.name, Key=key))
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in _GONE:
                return None
            if code in _REFUSED:
                raise UnreadableFileError(f"the bucket does not let the file be read: {code}") from error
            raise EngineUnavailableError(f"the bucket of uploads refused {operation}: {code}") from error
        except BotoCoreError as error:
            raise EngineUnavailableError(f"the bucket of uploads is away: {type(error).__name__}") from error


class _Body(io.RawIOBase):
    """A body whose connection may break while it is read: that is no fault of the file."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self._body = body

    def read(self, size: int = -1, /) -> bytes:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - only where a bucket is used

        try:
            return cast("bytes", self._body.read(None if size < 0 else size))
        except BotoCoreError as error:
            raise EngineUnavailableError(f"the bucket of uploads broke off: {type(error).__name__}") from error

    def close(self) -> None:
        self._body.close()
        super().close()
