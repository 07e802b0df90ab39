"""Why there are no bytes of a file that lies in another: the conversion of the file around it has kept the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

import sqlalchemy as sa

from shared import errors
from shared.db.engine import reading
from shared.db.tables.content import artifacts
from shared.db.tables.sources import source_objects
from shared.errors import PermanentError, UnreadableFileError
from shared.ingest.contract import Services
from shared.ingest.convert.formats import FORMATS
from shared.ingest.objects import MEMBER_MARK, MemberRow, ObjectRow
from shared.providers.storage import ObjectStore

MEMBERS_KIND = "members"


def why(services: Services, row: ObjectRow) -> PermanentError:
    """Return the error that says why the object cannot be had, as the newest conversion around it found it."""
    key = _list_key(services, row)
    # A store is hashed by what it is, as every plain object.
    refused = _refused(services.store, key).get(_mark(row)) if key else None  # type: ignore[arg-type]
    if refused is None:
        return UnreadableFileError("the file that it lies in gives no bytes of it; convert that file anew")
    known = getattr(errors, refused["error"], None)
    kind = known if isinstance(known, type) and issubclass(known, PermanentError) else UnreadableFileError
    return kind(refused["reason"])


def _list_key(services: Services, row: ObjectRow) -> str | None:
    """Return where the list of files lies that the newest conversion of the file around the object has made."""
    statement = (
        sa.select(source_objects.c.mime, artifacts.c.producer, artifacts.c.producer_version, artifacts.c.storage_key)
        .join(artifacts, artifacts.c.sha256 == source_objects.c.sha256)
        .where(source_objects.c.id == row.parent_id, artifacts.c.kind == MEMBERS_KIND)
    )
    with reading(services.engine) as connection:
        found = connection.execute(statement).all()
    for made in found:
        used = FORMATS.get(made.mime or "")
        if used is not None and (used.name, used.version) == (made.producer, made.producer_version):
            return str(made.storage_key)
    return None


@lru_cache(maxsize=4)
def _refused(store: ObjectStore, key: str) -> Mapping[str, Mapping[str, str]]:
    """Return error and reason of each refused file of a list, by its mark.

    Kept, for each file of a list asks for it: without, a thousand of them would read a thousand lists of a thousand.
    The key is a hash of the list, so what is kept is never out of date.
    """
    listed = [MemberRow(**entry) for entry in json.loads(store.get(key))]
    return {member.mark: member.refused for member in listed if member.refused is not None}


def _mark(row: ObjectRow) -> str:
    """Return what the object's id adds to that of the file around it. A name holds no stroke, so no further mark."""
    *_, last = MEMBER_MARK.finditer(row.external_id)
    return row.external_id[last.start() :]
