"""Builds the index anew beside the live one and puts it in its place; no search ever meets a part of it.

1. Copy: every queued version is written into an index that only `<alias>-next` names.
2. Catch up, a few times: versions whose entries are open, or were done since the last round began, are written again.
3. Compare: the ids of all rows against SQL. A difference ends the run; the alias stays where it is.
4. Swap: one `_aliases` request moves the alias of searches and the one that rows are written through.
5. Queue: every version that moved since the last round began gets an entry of its own, and the writer takes it.

Why no write is lost. Let T be the moment at which the last round began, by the database's clock, and v any version.

*Everything of v was committed, and done, before T.* The round of the interval in which its last entry was committed,
or the copy, read v's facts after that commit; so the new index has v as it is. An entry cannot slip between two rounds:
one that is committed after a round began is open or done after that beginning, whatever its id, and the next round asks
for just these.

*Otherwise* an entry of v is open, or was done after T, and step 5 queues v. That is so for every write that a writer
sent to the old index too late to be read here: it marks its entry done only after the write, so after T. It makes no
difference whether that writer finishes before the swap, during it or after: what it leaves done or open is found, for
step 5 reads the outbox when the swap is over, and whoever claims an entry after that writes to the new index.

The entry of step 5 has a higher id than all before it, and ids are external versions: whatever was sent to the new
index earlier and arrives later loses. The writer's claims see to it that no two hold v. The entry names every chunk
that v ever lost, and the head that v had without text, so rows that the copy met and the old index has buried since
are buried here too. Until the entry is worked on, searches see v as the last round saw it, for seconds; SQL verifies
every hit, so they show nothing that is not allowed.

*A writer with the old model* finds no index after the swap, for the alias it writes through is gone in the same step
(`mapping.fitting_alias`); its entries stay queued. Before the swap nobody with the new settings writes: the live
index does not fit them.

*A crash* at any point leaves the live index live. Before the swap the next run goes on with the index named
`<alias>-next` if the settings would build the same, else drops it. Between swap and queue that alias is still on the
live index, and the next run, or the next start (`finish_interrupted`), queues what step 5 would have: the moment T is
written into the index before the swap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from shared.db.engine import run_retrying
from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.errors import ConflictError, IndexComparisonError
from shared.index import generations
from shared.index.backfill import Backfill, moved_among, moved_versions, to_be_indexed, whole_claims
from shared.index.client import IndexClient
from shared.index.ensure import ensure_index, live_index
from shared.index.generations import Build
from shared.index.ids import head_id
from shared.index.reconcile import Entry, reconcile
from shared.index.writer import IndexWriter
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.settings import Settings

_log = logging.getLogger(__name__)

_REINDEX_LOCK: Final = 0x6B695F7265696478
"""Advisory lock of the one rebuild at a time ("ki_reidx")."""
_MOST_ROUNDS: Final = 5
_FEW_VERSIONS: Final = 100
_QUEUED_AT_ONCE: Final = 500
_COMPARED_AT_ONCE: Final = 1_000


class Phase(StrEnum):
    """What a rebuild is doing."""

    COPY = "copy"
    CATCH_UP = "catch up"
    COMPARE = "compare"
    QUEUE = "write what moved"


@dataclass(frozen=True, slots=True)
class Progress:
    """Versions written so far in this phase; `total` is None where it is not known before."""

    phase: Phase
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """What a rebuild did. `resumed` says that an earlier run's index was completed; `previous` are kept."""

    index: str
    versions: int
    rows_compared: int
    queued: int
    waiting: int
    resumed: bool
    previous: list[str]


def reindex(
    engine: sa.Engine,
    client: IndexClient,
    embedding: EmbeddingProvider,
    settings: Settings,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> ReindexReport:
    """Rebuild the index as the settings say, swap it in, and return what was done; the old index is kept.

    Raises `ConflictError` if another rebuild is at work, `IndexComparisonError` if the new index does not hold what
    SQL says: the live one stays. After any other error the next call goes on where this one stopped.
    """
    with _alone(engine) as still_alone:
        rebuild = _Rebuild(engine, client, embedding, settings, progress)
        return rebuild.run(still_alone)


def finish_interrupted(engine: sa.Engine, client: IndexClient, settings: Settings) -> int:
    """Queue what a rebuild that died between swap and queue left out; return how many versions. 0 in every other case.

    To be called whenever the product starts on its engines. If a rebuild is at work, it is left to that one.
    """
    try:
        with _alone(engine):
            build, live = generations.building(client, settings), live_index(client, settings.retrieval.index_name)
            if build is None or live is None or build.name != live.name:
                return 0
            return _finish(engine, client, settings, build)
    except ConflictError:
        return 0


def drop_old(engine: sa.Engine, client: IndexClient, settings: Settings) -> list[str]:
    """Delete the indices that were live before, and one that was begun and given up; return their names.

    Raises `ConflictError` while a rebuild is at work.
    """
    with _alone(engine):
        begun = generations.discard(client, settings)
        return [*generations.drop_previous(client, settings), *([begun] if begun else [])]


@dataclass(slots=True)
class _Rebuild:
    engine: sa.Engine
    client: IndexClient
    embedding: EmbeddingProvider
    settings: Settings
    progress: Callable[[Progress], None]

    def run(self, still_alone: Callable[[], None]) -> ReindexReport:
        name = self.settings.retrieval.index_name
        build, live = generations.building(self.client, self.settings), live_index(self.client, name)
        if build is not None and live is not None and build.name == live.name:
            return self._settled(build, versions=0, compared=0, resumed=True)
        resumed = build is not None and self._can_go_on(build)
        if build is None or not resumed:
            generations.discard(self.client, self.settings)
            build = generations.begin(
                self.client,
                self.settings,
                embedding_signature=self.embedding.signature,
                since=_clock(self.engine),
            )
        _log.info("reindex_started", extra={"index": build.name, "resumed": resumed})
        alias = generations.next_alias(name)
        backfill = Backfill(self.engine, self.client, self.embedding, self.settings, alias)
        build, versions = self._copied(build, backfill)
        build = self._caught_up(build, backfill)
        compared = self._compared(build, backfill)
        still_alone()
        generations.swap(
            self.client,
            self.settings,
            build,
            old=None if live is None else live.name,
            embedding_signature=self.embedding.signature,
        )
        _log.info("reindex_swapped", extra={"index": build.name, "old": None if live is None else live.name})
        return self._settled(build, versions=versions, compared=compared, resumed=resumed)

    def _can_go_on(self, build: Build) -> bool:
        signature = self.embedding.signature
        return not build.rejected and generations.can_go_on(self.client, self.settings, embedding_signature=signature)

    def _copied(self, build: Build, backfill: Backfill) -> tuple[Build, int]:
        if build.copied:
            return build, 0
        total, count = _count_versions(self.engine), 0

        def move(versions: int) -> None:
            nonlocal count
            count += versions
            self.progress(Progress(Phase.COPY, count, max(total, count)))

        move(0)
        backfill.copy(move)
        return generations.remember(self.client, self.settings, replace(build, copied=True)), count

    def _caught_up(self, build: Build, backfill: Backfill) -> Build:
        for _ in range(_MOST_ROUNDS):
            begins, count = _clock(self.engine), 0

            def move(versions: int) -> None:
                nonlocal count
                count += versions
                self.progress(Progress(Phase.CATCH_UP, count, None))

            move(0)
            backfill.catch_up(build.since, move)
            # Only now: whoever goes on after a crash must do this round again.
            build = generations.remember(self.client, self.settings, replace(build, since=begins))
            if count <= _FEW_VERSIONS:
                break
        return build

    def _compared(self, build: Build, backfill: Backfill) -> int:
        """Return the number of rows that agree. Raises `IndexComparisonError`."""
        self.progress(Progress(Phase.COMPARE, 0, None))
        with self.engine.connect() as connection:
            found = reconcile(connection, self.client, build.name)
        missing = _unexplained(self.engine, found.missing, build.since, only_queued=True)
        surplus = _unexplained(self.engine, found.surplus, build.since, only_queued=False)
        if missing or surplus:
            generations.remember(self.client, self.settings, replace(build, rejected=True))
            examples = ", ".join(str(entry.chunk_id) for entry in [*missing, *surplus][:3])
            refused = f" Rows that were refused: {'; '.join(backfill.refused)}." if backfill.refused else ""
            raise IndexComparisonError(
                f"The new index {build.name!r} lacks {len(missing)} rows and has {len(surplus)} too many ({examples}); "
                f"searches stay on the old one.{refused} Run `ki reindex` again: it begins anew."
            )
        return found.compared

    def _settled(self, build: Build, *, versions: int, compared: int, resumed: bool) -> ReindexReport:
        self.progress(Progress(Phase.QUEUE, 0, None))
        queued = _finish(self.engine, self.client, self.settings, build)
        ensure_index(self.client, self.settings.retrieval, embedding_signature=self.embedding.signature)
        writer = IndexWriter(self.engine, self.client, self.embedding, self.settings)
        drained = writer.drain(queued)
        self.progress(Progress(Phase.QUEUE, drained.versions_indexed + drained.versions_removed, queued))
        return ReindexReport(
            index=build.name,
            versions=versions,
            rows_compared=compared,
            queued=queued,
            waiting=_open_entries(self.engine),
            resumed=resumed,
            previous=generations.previous(self.client, self.settings),
        )


def _finish(engine: sa.Engine, client: IndexClient, settings: Settings, build: Build) -> int:
    queued = sum(_queue(engine, page) for page in moved_versions(engine, build.since, page=_QUEUED_AT_ONCE))
    generations.settle(client, settings, build)
    _log.info("reindex_settled", extra={"index": build.name, "queued": queued})
    return queued


def _queue(engine: sa.Engine, version_ids: list[UUID]) -> int:
    """Queue the versions again, each with all that it ever lost."""
    versions = document_versions.c

    def work(connection: sa.Connection) -> int:
        # Like everybody who queues: first the versions' rows, then the entries.
        marked = sa.select(versions.id).where(versions.id.in_(version_ids)).order_by(versions.id)
        connection.execute(marked.with_for_update(key_share=True))
        entries: list[dict[str, Any]] = [
            {
                "version_id": one.version_id,
                "version_seq": one.version_seq,
                "operation": one.operation,
                "stale_chunk_ids": sorted({*one.stale_chunk_ids, head_id(one.version_id)}),
            }
            for one in whole_claims(connection, version_ids)
        ]
        connection.execute(sa.insert(index_outbox), entries)
        connection.execute(sa.update(document_versions).where(versions.id.in_(version_ids)).values(indexed_at=None))
        return len(entries)

    return run_retrying(engine, work)


def _unexplained(engine: sa.Engine, entries: list[Entry], since: datetime, *, only_queued: bool) -> list[Entry]:
    """Return the differences of versions that have not moved; with `only_queued`, of those that should have rows."""
    left: list[Entry] = []
    for start in range(0, len(entries), _COMPARED_AT_ONCE):
        page = entries[start : start + _COMPARED_AT_ONCE]
        ids: set[UUID] = {entry.version_id for entry in page}
        with engine.connect() as connection:
            settled = to_be_indexed(connection, sorted(ids)) if only_queued else ids
            # Read last: what begins to move while this looks is explained, too.
            settled -= moved_among(connection, sorted(ids), since)
        left += [entry for entry in page if entry.version_id in settled]
    return left


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[Callable[[], None]]:
    """Be the only rebuild; hand out what raises once that is no longer sure.

    The lock belongs to a transaction that does nothing else: it has no snapshot and no id, so it holds nothing back,
    and it works behind a transaction pooler.
    """
    with engine.connect() as connection:
        if not connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_REINDEX_LOCK))).scalar_one():
            raise ConflictError("Another re-index is at work; wait for it, or end it first.")
        yield lambda: connection.execute(sa.select(1)).close()


def _clock(engine: sa.Engine) -> datetime:
    with engine.connect() as connection:
        moment: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return moment


def _count_versions(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(document_versions)).scalar_one())


def _open_entries(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        still = sa.select(sa.func.count()).select_from(index_outbox).where(index_outbox.c.done_at.is_(None))
        return int(connection.execute(still).scalar_one())
