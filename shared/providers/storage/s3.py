"""A bucket as an object store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from shared.errors import EngineUnavailableError, StoredObjectMissingError, UnreadableFileError
from shared.providers.storage.base import checked_key

_MISSING = {"NoSuchKey", "404", "NotFound"}


class S3Store:
    """Bytes in one bucket; the client (boto3 "s3") is made in the composition root and handed in."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`; S3 shows an object only when it is whole."""
        self._call("put_object", key, Body=content)

    def get(self, key: str) -> bytes:
        """Return the bytes stored under `key`."""
        with self.open(key) as body:
            return body.read()

    def open(self, key: str) -> BinaryIO:
        """Return the body as a stream."""
        return cast("BinaryIO", self._call("get_object", key)["Body"])

    def exists(self, key: str) -> bool:
        """Return whether the bucket holds `key`."""
        try:
            self._call("head_object", key)
        except StoredObjectMissingError:
            return False
        return True

    def presigned_url(self, key: str, *, file_name: str, expires_s: int) -> str | None:
        """Return an address that serves the bytes under `file_name` (RFC 6266, any letters) until it expires."""
        parameters = {
            "Bucket": self._bucket,
            "Key": checked_key(key),
            "ResponseContentDisposition": content_disposition(file_name),
        }
        return str(self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=expires_s))

    def _call(self, operation: str, key: str, **arguments: Any) -> dict[str, Any]:
        return cast(
            "dict[str, Any]",
            called(self._client, operation, refused={}, Bucket=self._bucket, Key=checked_key(key), **arguments),
        )


def called(client: Any, operation: str, *, refused: Mapping[str, str], **arguments: Any) -> Any:
    """Return what the client's operation returns, its failures as the product's errors.

    Raises `StoredObjectMissingError` when there is no such object, `UnreadableFileError` for the codes in `refused`
    with the reasons there, `EngineUnavailableError` for all else.
    """
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415 - where a bucket is used

    try:
        return getattr(client, operation)(**arguments)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code"))
        if code in _MISSING:
            raise StoredObjectMissingError(f"nothing is stored under {arguments.get('Key')}") from error
        if code in refused:
            raise UnreadableFileError(refused[code]) from error
        raise EngineUnavailableError(f"the bucket refused {operation}: {code}") from error
    except (BotoCoreError, HTTPClientError, OSError) as error:
        raise EngineUnavailableError(f"the bucket is away: {type(error).__name__}") from error


def content_disposition(file_name: str) -> str:
    """Return the header that makes every browser save under `file_name`, umlauts and dashes included."""
    clean = "".join(c for c in file_name if c.isprintable()).replace("/", "_").replace("\\", "_") or "file"
    plain = clean.encode("ascii", "replace").decode().replace("?", "_").replace('"', "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(clean, safe='')}"
