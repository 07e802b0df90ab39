"""Fetch: the object's bytes, hashed while they are read, kept under their hash."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import BinaryIO

import sqlalchemy as sa

from shared.db.engine import recording
from shared.db.prepared import hot
from shared.db.tables.sources import source_objects
from shared.errors import EmptyFileError, LimitExceededError
from shared.ingest import places, refusals
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.convert.kind import kind_of
from shared.ingest.objects import ObjectRow
from shared.providers.storage import original_key

_DESCRIBED = ("sha256", "size_bytes", "mime", "fetched_fingerprint")
_PIECE_BYTES = 1024 * 1024


def fetch(call: StageInput, services: Services) -> StageResult:
    """Store the original and say what it is; the object's row gets hash, size and kind."""
    row = call.row
    place = f"{places.fingerprint(places.by_path(services.source.config, row).keys)}:{row.path}"
    if row.sha256 is not None and row.mime is not None and not services.opens_all and _is_unchanged(row, services):
        return _found(row, row.sha256, row.mime, place, size_bytes=row.size_bytes)
    if row.parent_id is not None and row.sha256 is not None:
        # The conversion of the file around it has stored the bytes.
        content, sha256 = services.store.get(original_key(row.sha256)), row.sha256
    elif row.parent_id is not None:
        raise refusals.why(services, row)
    else:
        with services.source.open(row.external_id) as stream:
            content, sha256 = read_limited(stream, max_bytes=services.settings.ingest.max_file_bytes)
    mime = kind_of(content, row.name)
    key = original_key(sha256)
    if not services.store.exists(key):
        services.store.put(key, content)
    read = (sha256, len(content), mime, row.fingerprint)
    if (row.sha256, row.size_bytes, row.mime, row.fetched_fingerprint) != read:
        new = {f"new_{name}": value for name, value in zip(_DESCRIBED, read, strict=True)}
        with recording(services.engine) as connection:
            connection.execute(_describe(), {"object_id": row.id, **new})
    return _found(row, sha256, mime, place, size_bytes=len(content))


def _is_unchanged(row: ObjectRow, services: Services) -> bool:
    """Return whether the listing says that the bytes are those that were read last, and they are still stored."""
    is_listed = row.fingerprint is not None and row.fingerprint == row.fetched_fingerprint
    return is_listed and row.sha256 is not None and services.store.exists(original_key(row.sha256))


def _found(row: ObjectRow, sha256: str, mime: str, place: str, *, size_bytes: int | None) -> StageResult:
    if not size_bytes:
        raise EmptyFileError("the file is empty")
    found = {"sha256": sha256, "mime": mime, "original_key": original_key(sha256), "place": place}
    if row.manual_place is not None or row.parent_place is not None:
        found["assigned"] = f"{row.manual_place}:{row.parent_place}"
    return StageResult(found)


@cache
def _describe() -> sa.Update:
    """Give an object its hash, size and kind. The parameters may not be called like columns."""
    wanted = source_objects.c.id == sa.bindparam("object_id")
    values = {name: sa.bindparam(f"new_{name}", type_=source_objects.c[name].type) for name in _DESCRIBED}
    return hot(sa.update(source_objects).where(wanted).values(values))


def read_limited(stream: BinaryIO, *, max_bytes: int) -> tuple[bytes, str]:
    """Return the bytes and their SHA-256; stops as soon as there are too many, whatever a listing had said."""
    digest = hashlib.sha256()
    pieces: list[bytes] = []
    read = 0
    while piece := stream.read(_PIECE_BYTES):
        read += len(piece)
        if read > max_bytes:
            raise LimitExceededError(f"the file is larger than {max_bytes} bytes")
        digest.update(piece)
        pieces.append(piece)
    return b"".join(pieces), digest.hexdigest()
