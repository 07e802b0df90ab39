"""Why there are no bytes of a file that lies in another: the conversion of the file around it has kept the reason."""

from __future__ import annotations

import json

import sqlalchemy as sa

from shared import errors
from shared.db.engine import reading
from shared.db.tables.content import artifacts
from shared.db.tables.sources import source_objects
from shared.errors import PermanentError, UnreadableFileError
from shared.ingest.contract import Services
from shared.ingest.convert.formats import FORMATS
from shared.ingest.objects import MemberRow, ObjectRow

MEMBERS_KIND = "members"


def why(services: Services, row: ObjectRow) -> PermanentError:
    """Return the error that says why the object cannot be had, as the newest conversion around it found it."""
    for member in _listed(services, row):
        if row.external_id.endswith(member.mark) and member.refused is not None:
            known = getattr(errors, member.refused["error"], None)
            kind = known if isinstance(known, type) and issubclass(known, PermanentError) else UnreadableFileError
            return kind(member.refused["reason"])
    return UnreadableFileError("the file that it lies in gives no bytes of it; convert that file anew")


def _listed(services: Services, row: ObjectRow) -> list[MemberRow]:
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
            return [MemberRow(**entry) for entry in json.loads(services.store.get(made.storage_key))]
    return []
