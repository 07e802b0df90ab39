"""Chunks as rows: those of a version made what they should be, in one statement however many there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.prepared import hot
from shared.db.tables.base import Uuid
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.ingest.recordset import recordset
from shared.types import ChunkId, ChunkKind, OutboxOperation, VersionId

FIELDS = ("text", "char_start", "char_end", "page_from", "page_to", "locus", "clause_type", "language")
NAMES = ("id", "version_id", "kind", "ordinal", *FIELDS)

Row = Mapping[str, Any]


def replace_and_queue(
    connection: sa.Connection, version_id: VersionId, kinds: Collection[ChunkKind], rows: Sequence[Row]
) -> None:
    """Make the version's rows of `kinds` these; if that changed anything, queue the version with the rows that went.

    All in one statement: a worker killed at any point leaves no row of the index behind.
    """
    connection.execute(_replace_and_queue(), _parameters([version_id], kinds, rows))


def replace(
    connection: sa.Connection, version_ids: Sequence[VersionId], kind: ChunkKind, rows: Sequence[Row]
) -> dict[VersionId, list[ChunkId]]:
    """Make the rows of `kind` of these versions `rows`; return those that changed, each with the ids that went."""
    changed: dict[VersionId, list[ChunkId]] = {}
    for version_id, gone in connection.execute(_replace(), _parameters(version_ids, [kind], rows)):
        ids = changed.setdefault(VersionId(version_id), [])
        if gone is not None:
            ids.append(ChunkId(gone))
    return changed


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as `given` reads them."""
    return [{name: _plain(row[name]) for name in NAMES} for row in rows]


def given(parameter: str) -> sa.FromClause:
    """Return the rows in a JSON parameter as a table."""
    return recordset(parameter, [chunks.c[name] for name in NAMES])


def _parameters(version_ids: Sequence[VersionId], kinds: Collection[ChunkKind], rows: Sequence[Row]) -> dict[str, Any]:
    ids = [str(one) for one in version_ids]
    return {"of": ids, "of_kinds": sorted(kind.value for kind in kinds), "rows": as_json(rows)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _changes() -> tuple[sa.CTE, sa.CTE]:
    """Return the rows written and the rows deleted."""
    # Sent and read once: a parameter that is named twice would travel twice.
    rows = given("rows")
    wanted = sa.select(*(rows.c[name] for name in NAMES)).cte("wanted")
    by_place = (wanted.c.version_id, wanted.c.kind, wanted.c.ordinal)
    ordered = sa.select(*(wanted.c[name] for name in NAMES)).order_by(*by_place)
    insert = pg.insert(chunks).from_select(list(NAMES), ordered)
    changed = {name: insert.excluded[name] for name in FIELDS} | {"embedded_sha256": None}
    differs = sa.or_(*(chunks.c[name].is_distinct_from(insert.excluded[name]) for name in FIELDS))
    written = (
        insert.on_conflict_do_update(index_elements=[chunks.c.id], set_=changed, where=differs)
        .returning(chunks.c.id, chunks.c.version_id)
        .cte("written")
    )
    gone = (
        sa.delete(chunks)
        .where(
            chunks.c.version_id == sa.any_(_versions()),
            chunks.c.kind == sa.any_(sa.bindparam("of_kinds", type_=pg.ARRAY(sa.Text))),
            ~sa.exists().where(wanted.c.id == chunks.c.id),
        )
        .returning(chunks.c.id, chunks.c.version_id)
        .cte("gone")
    )
    return written, gone


def _versions() -> sa.ColumnElement[Any]:
    return sa.cast(sa.bindparam("of", type_=pg.ARRAY(sa.Text)), pg.ARRAY(Uuid))


@cache
def _replace() -> sa.CompoundSelect[Any]:
    written, gone = _changes()
    nothing = sa.cast(sa.null(), Uuid)
    return sa.union(
        sa.select(written.c.version_id, nothing.label("gone")), sa.select(gone.c.version_id, gone.c.id.label("gone"))
    )


@cache
def _replace_and_queue() -> sa.Insert:
    written, gone = _changes()
    changed = sa.or_(sa.exists().select_from(written), sa.exists().select_from(gone))
    marked = (
        sa.update(document_versions)
        .where(document_versions.c.id == sa.any_(_versions()), changed)
        .values(indexed_at=None)
        .returning(document_versions.c.id, document_versions.c.seq)
        .cte("marked")
    )
    ids = sa.select(sa.func.array_agg(gone.c.id)).scalar_subquery()
    nothing = sa.cast(pg.array([]), pg.ARRAY(Uuid))
    queued = sa.insert(index_outbox).from_select(
        ["version_id", "version_seq", "operation", "stale_chunk_ids"],
        sa.select(marked.c.id, marked.c.seq, sa.literal(OutboxOperation.INDEX.value), sa.func.coalesce(ids, nothing)),
    )
    return hot(queued)
