"""A bucket, or what lies below a prefix in it, as a source."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final
from urllib.parse import quote, unquote

from shared.errors import StoredObjectMissingError, UnreadableFileError
from shared.providers.storage.s3 import called
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.config import SourceConfig
from shared.text.normalise import stored

SIDECAR: Final = ".acl.json"
"""Ends the key of the ACL beside an object of the bucket of uploads."""

_RAW: Final = "raw:"
# What the bucket answers about an object that no further try will change.
_CLOSED: Final = {"AccessDenied": "the bucket does not let it be read", "InvalidObjectState": "it is archived"}


class S3Source:
    """The objects of a bucket below `prefix`, by their key. The client (boto3 "s3") is handed in.

    A listing says of each object its ETag, size and time: enough to see that it has changed, and never taken for a hash
    of its bytes, which it is not for an object that came in parts or is encrypted with a key of its own. `is_versioned`
    lists versions instead (it needs the right to do so): then objects have their version's id, and delete markers
    prove what was deleted. `root` is the folder of a bucket of uploads that is the source: paths begin below it, and
    the ACLs beside objects are no objects.
    """

    def __init__(
        self,
        name: str,
        client: Any,
        bucket: str,
        config: SourceConfig,
        prefix: str = "",
        *,
        root: str = "",
        is_versioned: bool = False,
    ) -> None:
        self._name = name
        self._client = client
        self._bucket = bucket
        self._config = config
        self._prefix = prefix or root
        self._root = root
        self._is_versioned = is_versioned

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
        """The prefix, if it is a folder's; one that ends within a name selects, and says nothing about the rest."""
        below = self._prefix.removeprefix(self._root)
        return stored(below.rstrip("/")) if not below or below.endswith("/") else None

    def scan(self) -> Iterator[FoundObject | ScanProblem]:
        """Yield every object that the configuration takes in, page by page, in the order of the keys' bytes.

        What the console makes for a folder (no bytes, a key that ends in "/") is none. Raises `EngineUnavailableError`
        when a page does not come: a part of a listing is never taken for the whole.
        """
        for entry in self._listing("Versions" if self._is_versioned else "Contents"):
            key = str(entry["Key"])
            path = stored(key.removeprefix(self._root))
            if key.endswith("/"):
                if entry["Size"]:
                    yield ScanProblem(path.rstrip("/"), 'the key ends in "/" and holds bytes; rename the object')
                continue
            if self._root and key.endswith(SIDECAR):
                continue
            if self._config.takes(path):
                yield FoundObject(
                    external_id=external_id_of(key),
                    path=path,
                    name=path.rpartition("/")[2],
                    size_bytes=entry["Size"],
                    modified_at=entry["LastModified"],
                    source_version=_version(entry),
                    fingerprint=_fingerprint(entry),
                )

    def proves_gone(self, external_ids: Iterable[str]) -> bool:
        """Return whether a delete marker is the newest that the bucket has of each of these."""
        if not self._is_versioned:
            return False
        deleted = {external_id_of(str(entry["Key"])) for entry in self._listing("DeleteMarkers")}
        return deleted.issuperset(external_ids)

    def open(self, external_id: str) -> BinaryIO:
        """Return the newest version's bytes as a stream."""
        try:
            answer = called(self._client, "get_object", refused=_CLOSED, Bucket=self._bucket, Key=key_of(external_id))
        except StoredObjectMissingError as error:
            raise UnreadableFileError("the object is gone") from error
        return io.BufferedReader(_Body(answer["Body"]))

    def _listing(self, what: str) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of all pages; of versions and delete markers the newest one of each key."""
        operation = "list_objects_v2" if what == "Contents" else "list_object_versions"
        place: dict[str, Any] = {}
        while True:
            page = called(self._client, operation, refused={}, Bucket=self._bucket, Prefix=self._prefix, **place)
            yield from (entry for entry in page.get(what, ()) if entry.get("IsLatest", True))
            if not page["IsTruncated"]:
                return
            place = (
                {"ContinuationToken": page["NextContinuationToken"]}
                if what == "Contents"
                else {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
            )


class _Body(io.RawIOBase):
    """A body whose stream breaks off with the product's own error."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = called(self._body, "read", refused={}, amt=len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._body.close()
        super().close()


def external_id_of(key: str) -> str:
    """Return the id of the object with this key: the key itself, unless text of ours would not be the same letters.

    Keys are bytes: the same name in two Unicode forms is two objects. Ids are kept in one form (NFC, no NUL), so a key
    in another one is spelt out.
    """
    if stored(key) == key and not key.startswith(_RAW):
        return key
    return _RAW + quote(key, safe="/")


def key_of(external_id: str) -> str:
    """Return the key that `external_id_of` named."""
    return unquote(external_id.removeprefix(_RAW)) if external_id.startswith(_RAW) else external_id


def _version(entry: Mapping[str, Any]) -> str | None:
    version = entry.get("VersionId")
    return None if version in {None, "null"} else str(version)


def _fingerprint(entry: Mapping[str, Any]) -> str:
    parts = (entry.get("VersionId"), entry["ETag"], entry["Size"], entry["LastModified"].isoformat())
    return "|".join(map(str, parts))
