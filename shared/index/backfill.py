"""Writes versions from SQL into an index that is being built: all of them once, then those that moved meanwhile.

Rows are made by the same code as those of the writer, at the same external versions: the newest entry of the outbox
that a version has. A version that was never queued is not ready to be indexed and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.errors import EngineUnavailableError
from shared.index import fields
from shared.index.answers import BulkOutcome
from shared.index.claims import Claim
from shared.index.client import IndexClient
from shared.index.drafts import Draft, EmbeddedDraft, drafts, embed, record_embedded
from shared.index.version_facts import load_versions
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.settings import Settings
from shared.types import ChunkId, OutboxOperation, VersionId

VERSIONS_AT_ONCE: Final = 32
_ROWS_AT_ONCE: Final = 256
_RECORDED: Final = 5
# Moments are read from the database's one clock; this is for a clock that is set back.
_MARGIN: Final = "60 seconds"

_outbox = index_outbox.c
_versions = document_versions.c


@dataclass(slots=True)
class Backfill:
    """Writes through `alias`, 32 versions at a time. `refused` are the first rows that were not taken, with reasons."""

    engine: sa.Engine
    client: IndexClient
    embedding: EmbeddingProvider
    settings: Settings
    alias: str
    refused: list[str] = field(default_factory=list)

    def copy(self, progress: Callable[[int], None]) -> None:
        """Write every version, in the order of `seq`, going on where an earlier run stopped.

        `progress` gets the number of versions just written. Raises `EngineUnavailableError` if a row was not taken
        for now: everything before is there, and the next run goes on.
        """
        after = self._resumed_after()
        while batch := self._queued_after(after):
            claims = [claim for _, claim in batch]
            # The index is new and has nothing to bury.
            self._write([draft for draft in self._drafts(claims) if draft.is_live])
            after = batch[-1][0]
            progress(len(batch))

    def catch_up(self, since: datetime, progress: Callable[[int], None]) -> int:
        """Write the versions again that may have changed since, burying what they no longer have; return how many."""
        count = 0
        for page in moved_versions(self.engine, since, page=VERSIONS_AT_ONCE):
            with self.engine.connect() as connection:
                claims = whole_claims(connection, page)
            self._write(self._drafts(claims))
            count += len(claims)
            progress(len(claims))
        return count

    def _resumed_after(self) -> int:
        """Return the `seq` to go on after: one batch before the last row, for that batch may be there in part."""
        self.client.refresh(self.alias)
        newest = {
            "size": 1,
            "query": {"term": {fields.DELETED: False}},
            "sort": [{fields.VERSION_SEQ: "desc"}],
            "_source": False,
            "docvalue_fields": [fields.VERSION_SEQ],
        }
        rows = self.client.search(self.alias, newest).rows
        if not rows:
            return 0
        last = int(rows[0].fields[fields.VERSION_SEQ][0])
        before = (
            sa.select(_versions.seq)
            .where(_versions.seq <= last)
            .order_by(_versions.seq.desc())
            .offset(VERSIONS_AT_ONCE)
            .limit(1)
        )
        with self.engine.connect() as connection:
            return int(connection.execute(before).scalar() or 0)

    def _queued_after(self, seq: int) -> list[tuple[int, Claim]]:
        # The entry is read before the facts: a row may be newer than its external version says, never older.
        newest = (
            sa.select(_outbox.id, _outbox.operation)
            .where(_outbox.version_id == _versions.id)
            .order_by(_outbox.id.desc())
            .limit(1)
            .lateral("newest")
        )
        batch = (
            sa.select(_versions.id, _versions.seq, newest.c.id.label("entry"), newest.c.operation)
            .join(newest, sa.true())
            .where(_versions.seq > seq)
            .order_by(_versions.seq)
            .limit(VERSIONS_AT_ONCE)
        )
        with self.engine.connect() as connection:
            return [
                (row.seq, _claim(VersionId(row.id), row.seq, OutboxOperation(row.operation), row.entry, frozenset()))
                for row in connection.execute(batch)
            ]

    def _drafts(self, claims: Sequence[Claim]) -> list[Draft]:
        with self.engine.connect() as connection:
            facts = load_versions(connection, [one.version_id for one in claims])
        return [draft for one in claims for draft in drafts(one, facts.get(one.version_id), self.settings)]

    def _write(self, work: Sequence[Draft]) -> None:
        for start in range(0, len(work), _ROWS_AT_ONCE):
            embedded = embed(work[start : start + _ROWS_AT_ONCE], self.embedding)
            sent = [one for one in embedded if one.refusal is None]
            self._note(f"chunk {one.draft.chunk_id}: {one.refusal}" for one in embedded if one.refusal is not None)
            items = self.client.bulk(self.alias, [one.write() for one in sent])
            written: list[EmbeddedDraft] = []
            for one, item in zip(sent, items, strict=True):
                if item.outcome is BulkOutcome.UNAVAILABLE:
                    text = f"The new index did not take row {item.chunk_id} ({item.reason}); run `ki reindex` again."
                    raise EngineUnavailableError(text)
                if item.outcome is BulkOutcome.REFUSED:
                    self._note([f"chunk {item.chunk_id}: {item.reason}"])
                else:
                    written.append(one)
            record_embedded(self.engine, written)

    def _note(self, reasons: Sequence[str] | Iterator[str]) -> None:
        self.refused += list(reasons)[: _RECORDED - len(self.refused)] if len(self.refused) < _RECORDED else []


def moved_versions(engine: sa.Engine, since: datetime, *, page: int) -> Iterator[list[UUID]]:
    """Yield, page by page, every version with an entry that is open or was done since.

    An entry that was committed after a moment is open, or done after it, whatever its id: ids are given before the
    commit, and need not become visible in their order.
    """
    last: UUID | None = None
    moved = _moved(since, margin=True)
    while True:
        ids = sa.select(_outbox.version_id).where(moved).distinct().order_by(_outbox.version_id).limit(page)
        with engine.connect() as connection:
            found = list(connection.execute(ids if last is None else ids.where(_outbox.version_id > last)).scalars())
        if found:
            yield found
        if len(found) < page:
            return
        last = found[-1]


def moved_among(connection: sa.Connection, version_ids: Sequence[UUID], since: datetime) -> set[UUID]:
    """Return those of the versions that have an entry that is open or was done since."""
    moved = sa.select(_outbox.version_id).where(_outbox.version_id.in_(version_ids), _moved(since, margin=False))
    return set(connection.execute(moved).scalars())


def to_be_indexed(connection: sa.Connection, version_ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the versions whose newest entry asks for their rows; who was never queued is not ready."""
    newest = sa.select(sa.func.max(_outbox.id)).where(_outbox.version_id.in_(version_ids)).group_by(_outbox.version_id)
    asked_for = sa.select(_outbox.version_id).where(_outbox.id.in_(newest), _outbox.operation == OutboxOperation.INDEX)
    return set(connection.execute(asked_for).scalars())


def whole_claims(connection: sa.Connection, version_ids: Sequence[UUID]) -> list[Claim]:
    """Return each version with all that its entries ever said: the newest one's id, every chunk that ever went."""
    entries: dict[UUID, list[sa.Row[Any]]] = {}
    every = sa.select(index_outbox).where(_outbox.version_id.in_(version_ids)).order_by(_outbox.version_id, _outbox.id)
    for row in connection.execute(every):
        entries.setdefault(row.version_id, []).append(row)
    return [
        _claim(
            VersionId(version_id),
            rows[-1].version_seq,
            OutboxOperation(rows[-1].operation),
            rows[-1].id,
            frozenset(ChunkId(chunk_id) for row in rows for chunk_id in row.stale_chunk_ids),
        )
        for version_id, rows in entries.items()
    ]


def _moved(since: datetime, *, margin: bool) -> sa.ColumnElement[bool]:
    moment: sa.ColumnElement[Any] = sa.literal(since, sa.DateTime(timezone=True))
    if margin:
        moment = moment - sa.cast(sa.literal(_MARGIN), pg.INTERVAL)
    return sa.or_(_outbox.done_at.is_(None), _outbox.done_at >= moment)


def _claim(
    version_id: VersionId, seq: int, operation: OutboxOperation, newest: int, stale: frozenset[ChunkId]
) -> Claim:
    # No lease: the reader of this index is nobody yet.
    return Claim(version_id, seq, operation, newest, (), stale, is_rewrite=True)
