"""Source objects as rows: registered by a scan or by the conversion of the file that holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.inheritance import inherit_acl
from shared.db.tables.sources import source_objects, sources
from shared.errors import LimitExceededError, MisconfiguredError
from shared.ingest import decided, deletions
from shared.ingest.recordset import recordset
from shared.sources.base import FoundObject
from shared.sources.config import SourceConfig
from shared.text.normalise import stored
from shared.types import SourceId, SourceObjectId

_BATCH = 1000
_LISTED = ("path", "name", "size_bytes", "modified_at", "source_version", "file_id", "fingerprint")
# PostgreSQL's index on the ids holds no longer ones.
_MAX_ID_BYTES = 2500
# Stands in the id of every file in another file, and so in the id of nothing else: a folder that is called like one
# would share a row with an attachment, and one of the two would have the name, the bytes or the ACL of the other.
MEMBER_MARK = re.compile(r"!/\d+/")


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """A source object as its row says.

    `fingerprint` is what the last listing said, `fetched_fingerprint` what it said when the bytes were last read.
    `manual_place` is the place that an administrator gave it, `parent_place` that of the file around it.
    """

    id: SourceObjectId
    source_id: SourceId
    parent_id: SourceObjectId | None
    external_id: str
    path: str
    name: str
    sha256: str | None
    mime: str | None
    size_bytes: int | None
    fingerprint: str | None
    fetched_fingerprint: str | None
    manual_place: str | None = None
    parent_place: str | None = None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A file in another one: its folder and name in it, and the hash under which its bytes are stored.

    `number` counts the files of one folder that bear the same name, so that a file keeps its row when others come or
    go. `raw_name` is in hexadecimal; one that is `refused` ({"error", "reason"}) has no bytes.
    """

    number: int
    name: str
    sha256: str | None
    folder: str = ""
    raw_name: str | None = None
    refused: Mapping[str, str] | None = None

    @property
    def path(self) -> str:
        """Folder and name."""
        return f"{self.folder}/{self.name}" if self.folder else self.name

    @property
    def mark(self) -> str:
        """What follows the id of the file around it in the file's own id. A folder cannot pass for another mark."""
        folder = self.folder.replace("!", "_")
        return f"!/{self.number}/{folder}/{self.name}" if folder else f"!/{self.number}/{self.name}"


def ensure_source(connection: sa.Connection, name: str, config: SourceConfig) -> SourceId:
    """Return the id of the source, made or brought up to `config`."""
    columns = (sources.c.id, sources.c.kind, sources.c.config)
    found = connection.execute(sa.select(*columns).where(sources.c.name == name)).one_or_none()
    body = config.model_dump(mode="json")
    if found is not None and found.kind != config.kind:
        # The kind decides what an unknown ACL means: changing it in passing would open or close every object.
        raise MisconfiguredError(f"the source {name!r} is of kind {found.kind}, not {config.kind}; give another name")
    if found is not None and found.config == body:
        return SourceId(found.id)
    insert = pg.insert(sources).values(name=name, kind=config.kind, config=body)
    upsert = insert.on_conflict_do_update(index_elements=[sources.c.name], set_={"config": insert.excluded.config})
    return SourceId(connection.execute(upsert.returning(sources.c.id)).scalar_one())


def unusable(entry: FoundObject) -> str | None:
    """Return why an object cannot be registered, None if it can."""
    if MEMBER_MARK.search(stored(entry.external_id)):
        return 'the path holds "!/" and a number, which stands for a file in another file; rename the folder'
    if _is_too_long(stored(entry.external_id)):
        return f"the path is longer than {_MAX_ID_BYTES} bytes"
    return None


def register(connection: sa.Connection, source_id: SourceId, found: Sequence[FoundObject]) -> dict[str, SourceObjectId]:
    """Return the object ids by external id, one row each; an object that was gone and came back has its old row."""
    ids: dict[str, SourceObjectId] = {}
    ordered = sorted(found, key=lambda entry: entry.external_id)
    for start in range(0, len(ordered), _BATCH):
        batch = [
            {
                "source_id": str(source_id),
                "external_id": stored(entry.external_id),
                "path": stored(entry.path),
                "name": stored(entry.name),
                "size_bytes": entry.size_bytes,
                "modified_at": entry.modified_at.isoformat() if entry.modified_at else None,
                "source_version": entry.source_version,
                "file_id": entry.file_id,
                "fingerprint": entry.fingerprint,
            }
            for entry in ordered[start : start + _BATCH]
        ]
        deletions.restore(connection, source_id, [str(row["external_id"]) for row in batch])
        _upsert(connection, batch, _LISTED)
        ids.update(_ids(connection, source_id, [str(row["external_id"]) for row in batch]))
    return ids


def register_members(connection: sa.Connection, parent: ObjectRow, members: Sequence[MemberRow], *, most: int) -> None:
    """Make these the files in a file: objects of their own, each with the ACL of the file that holds it.

    Those that were in it before and no longer are have gone, with all that is in them. Raises `LimitExceededError`
    when the names of files in one another become too long, or when the outermost file holds more than `most` files.
    """
    # Whoever changes the parent's ACL waits, or is waited for: no member is left with the ACL of before.
    connection.execute(
        sa.select(source_objects.c.id).where(source_objects.c.id == parent.id).with_for_update(read=True)
    )
    batch: list[dict[str, Any]] = [
        {
            "source_id": str(parent.source_id),
            "external_id": parent.external_id + member.mark,
            "path": f"{parent.path}/{member.path}",
            "name": member.name,
            "sha256": member.sha256,
            "parent_id": str(parent.id),
        }
        for member in members
    ]
    if any(_is_too_long(str(row["external_id"])) for row in batch):
        raise LimitExceededError(f"the path of a file in the file is longer than {_MAX_ID_BYTES} bytes")
    if len(batch) + _elsewhere(connection, parent) > most:
        raise LimitExceededError(f"the files in one another are more than {most}; store those that count by themselves")
    kept = [str(row["external_id"]) for row in batch]
    deletions.tombstone_members(connection, parent.id, but=kept)
    if batch:
        deletions.restore(connection, parent.source_id, kept)
        _upsert(connection, sorted(batch, key=lambda row: str(row["external_id"])), ("path", "name", "sha256"))
        inherit_acl(connection, parent.id)


def _elsewhere(connection: sa.Connection, parent: ObjectRow) -> int:
    """Return how many files lie in the outermost file around an object, those in the object itself left out."""
    outermost = MEMBER_MARK.split(parent.external_id)[0]
    if outermost == parent.external_id:
        return 0
    inner = source_objects.alias("inner_objects")
    tree = (
        sa.select(source_objects.c.id)
        .where(source_objects.c.source_id == parent.source_id, source_objects.c.external_id == outermost)
        .cte("tree", recursive=True)
    )
    below = sa.select(inner.c.id).join(tree, inner.c.parent_id == tree.c.id)
    tree = tree.union_all(below.where(inner.c.deleted_at.is_(None), inner.c.parent_id != parent.id))
    # The outermost file is a row of the tree and no file in it.
    return connection.execute(sa.select(sa.func.count() - 1).select_from(tree)).scalar_one()


def columns() -> list[sa.ColumnElement[Any]]:
    """Return the columns of an `ObjectRow`, in its order."""
    worked_out = {"manual_place": decided.manual_place, "parent_place": decided.parent_place}
    return [worked_out[name]() if name in worked_out else source_objects.c[name] for name in ObjectRow.__slots__]


def has_children() -> sa.ColumnElement[bool]:
    """Return whether files taken out of the object are there."""
    inner = source_objects.alias("inner_objects")
    return sa.exists().where(inner.c.parent_id == source_objects.c.id, inner.c.deleted_at.is_(None))


def children(connection: sa.Connection, object_id: SourceObjectId) -> list[SourceObjectId]:
    """Return the objects taken out of this one that are still there, in their order in it."""
    rows = connection.execute(
        sa.select(source_objects.c.id)
        .where(source_objects.c.parent_id == object_id, source_objects.c.deleted_at.is_(None))
        .order_by(source_objects.c.external_id)
    ).scalars()
    return [SourceObjectId(row) for row in rows]


def _is_too_long(external_id: str) -> bool:
    return len(external_id.encode()) > _MAX_ID_BYTES


def _upsert(connection: sa.Connection, rows: Sequence[dict[str, Any]], updated: Sequence[str]) -> None:
    """Write rows in one statement, ordered by the conflict key so that two writers cannot deadlock."""
    table = source_objects
    names = list(rows[0])
    given = recordset("objects", [table.c[name] for name in names])
    select = sa.select(*(given.c[name] for name in names)).order_by(given.c.source_id, given.c.external_id)
    insert = pg.insert(table).from_select(names, select)
    changed = [table.c[name].is_distinct_from(insert.excluded[name]) for name in updated]
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[table.c.source_id, table.c.external_id],
            set_={**{name: insert.excluded[name] for name in updated}, "deleted_at": None},
            where=sa.or_(*changed, table.c.deleted_at.is_not(None)),
        ),
        {"objects": list(rows)},
    )


def _ids(connection: sa.Connection, source_id: SourceId, external_ids: Sequence[str]) -> dict[str, SourceObjectId]:
    wanted = sa.func.jsonb_array_elements_text(sa.cast(sa.literal(json.dumps(list(external_ids))), pg.JSONB))
    rows = connection.execute(
        sa.select(source_objects.c.external_id, source_objects.c.id).where(
            source_objects.c.source_id == source_id, source_objects.c.external_id.in_(sa.select(wanted))
        )
    )
    return {external_id: SourceObjectId(UUID(str(found))) for external_id, found in rows}
