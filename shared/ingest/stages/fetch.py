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
from shared.ingest import places
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.convert.kind import kind_of
from shared.providers.storage import original_key

_DESCRIBED = ("sha256", "size_bytes", "mime")
_PIECE_BYTES = 1024 * 1024


def fetch(call: StageInput, services: Services) -> StageResult:
    """Store the original and say what it is; the object's row gets hash, size and kind."""
    row = call.row
    if row.parent_id is not None and row.sha256 is not None:
        # The conversion of the file around it has stored the bytes.
        content, sha256 = services.store.get(original_key(row.sha256)), row.sha256
    else:
        with services.source.open(row.external_id) as stream:
            content, sha256 = read_limited(stream, max_bytes=services.settings.ingest.max_file_bytes)
    mime = kind_of(content, row.name)
    key = original_key(sha256)
    if not services.store.exists(key):
        services.store.put(key, content)
    if (row.sha256, row.mime) != (sha256, mime) or row.size_bytes != len(content):
        with recording(services.engine) as connection:
            connection.execute(
                _describe(),
                {"object_id": row.id, "new_sha256": sha256, "new_size_bytes": len(content), "new_mime": mime},
            )
    place = places.fingerprint(services.source.config.place_of(row.path))
    if not content:
        raise EmptyFileError("the file is empty")
    return StageResult({"sha256": sha256, "mime": mime, "original_key": key, "place": f"{place}:{row.path}"})


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
