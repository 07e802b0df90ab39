"""Compares the index with SQL, queues what differs, and removes tombstones that have done their work.

Both sides are read in the order of ids, page by page, so that a million rows need no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.observed import is_observed
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.index import fields
from shared.index.answers import BulkOutcome
from shared.index.client import IndexClient, Write
from shared.index.ids import head_id
from shared.index.indexed import are_indexed
from shared.types import ChunkId, OutboxOperation, VersionId

_PAGE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One row that should be, or is, in the index."""

    chunk_id: ChunkId
    version_id: VersionId
    version_seq: int


@dataclass(frozen=True, slots=True)
class Differences:
    """Rows that the index lacks, and rows that it has too many; versions still queued are in neither."""

    missing: list[Entry]
    surplus: list[Entry]
    compared: int

    @property
    def none(self) -> bool:
        """Whether SQL and the index agree."""
        return not self.missing and not self.surplus


def reconcile(connection: sa.Connection, client: IndexClient, alias: str) -> Differences:
    """Return how the index differs from SQL; what is queued is left out on both sides.

    Rows written while it reads may be named wrongly; queueing those again does no harm.
    """
    client.refresh(alias)
    queued = set(
        connection.execute(sa.select(index_outbox.c.version_id).where(index_outbox.c.done_at.is_(None))).scalars()
    )
    missing: list[Entry] = []
    surplus: list[Entry] = []
    compared = 0
    wanted, found = _wanted(connection), _found(client, alias)
    left, right = next(wanted, None), next(found, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.chunk_id < right.chunk_id):
            assert left is not None
            missing += [] if left.version_id in queued else [left]
            left = next(wanted, None)
        elif left is None or right.chunk_id < left.chunk_id:
            surplus += [] if right.version_id in queued else [right]
            right = next(found, None)
        else:
            compared += 1
            left, right = next(wanted, None), next(found, None)
    return Differences(missing, surplus, compared)


def sweep(connection: sa.Connection, client: IndexClient, alias: str) -> int:
    """Queue every version that is not in the index as SQL has it; return how many. Call in a transaction.

    That is: versions that no entry is open for and that were never marked, versions with missing rows, and rows that
    nothing in SQL stands behind.
    """
    differences = reconcile(connection, client, alias)
    stale: dict[VersionId, tuple[int, set[ChunkId]]] = {}
    for entry in [*differences.missing, *_unmarked(connection)]:
        stale.setdefault(entry.version_id, (entry.version_seq, set()))
    for entry in differences.surplus:
        stale.setdefault(entry.version_id, (entry.version_seq, set()))[1].add(entry.chunk_id)
    if stale:
        # A version that SQL no longer has is removed by the writer, whatever the operation says.
        connection.execute(
            sa.insert(index_outbox),
            [
                {
                    "version_id": version_id,
                    "version_seq": seq,
                    "operation": OutboxOperation.INDEX,
                    "stale_chunk_ids": sorted(ids),
                }
                for version_id, (seq, ids) in sorted(stale.items())
            ],
        )
        connection.execute(
            sa.update(document_versions).where(document_versions.c.id.in_(sorted(stale))).values(indexed_at=None)
        )
    return len(stale)


def purge(connection: sa.Connection, client: IndexClient, alias: str, *, older_than_s: float) -> int:
    """Remove tombstones that no late write can come after; return how many.

    These are the ones written by entries below every entry that is open or was done within `older_than_s`.
    """
    recent = sa.or_(
        index_outbox.c.done_at.is_(None),
        index_outbox.c.done_at > sa.func.now() - sa.cast(sa.literal(f"{older_than_s} seconds"), pg.INTERVAL),
    )
    newest_plus_one = sa.select(sa.func.coalesce(sa.func.max(index_outbox.c.id), 0) + 1).scalar_subquery()
    first_recent = sa.select(sa.func.min(index_outbox.c.id)).where(recent).scalar_subquery()
    floor = connection.execute(sa.select(sa.func.coalesce(first_recent, newest_plus_one))).scalar_one()
    query = {
        "bool": {
            "filter": [{"term": {fields.DELETED: True}}, {"range": {fields.WRITE_VERSION: {"lt": int(floor)}}}],
        }
    }
    purged = 0
    for page in _pages(client, alias, query, [fields.WRITE_VERSION]):
        writes = [Write(row[0], int(row[1]), None) for row in page]
        items = client.bulk(alias, writes)
        purged += sum(item.outcome is BulkOutcome.WRITTEN for item in items)
    return purged


def _wanted(connection: sa.Connection) -> Iterator[Entry]:
    """Yield the rows that versions should have while they lie at a source, by id."""
    bare = [
        Entry(head_id(VersionId(row.id)), VersionId(row.id), row.seq)
        for row in connection.execute(_versions_without_text())
    ]
    return _merged(_chunk_entries(connection), sorted(bare, key=lambda entry: entry.chunk_id))


def _chunk_entries(connection: sa.Connection) -> Iterator[Entry]:
    last: UUID | None = None
    while True:
        page = (
            sa.select(chunks.c.id, chunks.c.version_id, document_versions.c.seq)
            .join(document_versions, document_versions.c.id == chunks.c.version_id)
            .where(is_observed(document_versions.c.id), are_indexed(chunks.c.kind, document_versions.c.status))
            .order_by(chunks.c.id)
            .limit(_PAGE)
        )
        rows = connection.execute(page if last is None else page.where(chunks.c.id > last)).all()
        for row in rows:
            yield Entry(ChunkId(row.id), VersionId(row.version_id), row.seq)
        if len(rows) < _PAGE:
            return
        last = rows[-1].id


def _merged(entries: Iterator[Entry], more: list[Entry]) -> Iterator[Entry]:
    place = 0
    for entry in entries:
        while place < len(more) and more[place].chunk_id < entry.chunk_id:
            yield more[place]
            place += 1
        yield entry
    yield from more[place:]


def _versions_without_text() -> sa.Select[Any]:
    return sa.select(document_versions.c.id, document_versions.c.seq).where(
        ~sa.exists().where(chunks.c.version_id == document_versions.c.id), is_observed(document_versions.c.id)
    )


def _unmarked(connection: sa.Connection) -> Iterator[Entry]:
    """Yield the versions that are not marked as indexed and that nothing is queued for."""
    queued = sa.exists().where(index_outbox.c.version_id == document_versions.c.id, index_outbox.c.done_at.is_(None))
    lost = sa.select(document_versions.c.id, document_versions.c.seq).where(
        document_versions.c.indexed_at.is_(None), ~queued
    )
    for row in connection.execute(lost):
        yield Entry(head_id(VersionId(row.id)), VersionId(row.id), row.seq)


def _found(client: IndexClient, alias: str) -> Iterator[Entry]:
    """Yield the rows of the index that are no tombstones, by id."""
    query = {"bool": {"filter": [{"term": {fields.DELETED: False}}]}}
    for page in _pages(client, alias, query, [fields.DOCUMENT_VERSION_ID, fields.VERSION_SEQ]):
        for chunk_id, version_id, seq in page:
            yield Entry(ChunkId(UUID(chunk_id)), VersionId(UUID(version_id)), int(seq))


def _pages(
    client: IndexClient, alias: str, query: dict[str, Any], values: list[str]
) -> Iterator[list[tuple[str, ...]]]:
    """Yield pages of (chunk id, *values) in the order of chunk ids."""
    last: str | None = None
    while True:
        body: dict[str, Any] = {
            "size": _PAGE,
            "query": query,
            "sort": [{fields.CHUNK_ID: "asc"}],
            "_source": False,
            "stored_fields": "_none_",
            "docvalue_fields": [fields.CHUNK_ID, *values],
            "track_total_hits": False,
        }
        if last is not None:
            body["search_after"] = [last]
        rows = client.search(alias, body).rows
        page = [tuple(str(row.fields[name][0]) for name in (fields.CHUNK_ID, *values)) for row in rows]
        if page:
            yield page
        if len(rows) < _PAGE:
            return
        last = page[-1][0]
