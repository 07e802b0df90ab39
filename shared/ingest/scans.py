"""One listing of a source: registered batch by batch, remembered by id, and settled when it has ended.

Neither the listing nor the work that follows from it is held in memory, however many objects there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.engine import reading, run_retrying
from shared.db.tables.ingest import ingest_runs, scanned_objects
from shared.db.tables.sources import source_objects
from shared.ingest import deletions, objects, places
from shared.ingest.deletions import Scan, Settled
from shared.ingest.renames import forget_old_names
from shared.sources.base import FoundObject, ScanProblem, Source
from shared.text.normalise import stored
from shared.types import SourceId, SourceObjectId

_BATCH = 1000
# What a run has seen is kept while another one may still have to know it; a run without an end is dead after this.
_DEAD_AFTER = "1 day"


@dataclass(frozen=True, slots=True)
class Run:
    """A run over a source; `listed_from` is when it began, by the database's clock."""

    id: UUID
    source_id: SourceId
    listed_from: datetime


def begin(connection: sa.Connection, source_id: SourceId, *, started_at: datetime) -> Run:
    """Return a new run, and forget what runs saw that have ended before every one still at work began."""
    runs = ingest_runs.c
    dead = sa.func.now() - sa.cast(sa.literal(_DEAD_AFTER), pg.INTERVAL)
    at_work = sa.select(sa.func.min(runs.listed_from)).where(
        runs.source_id == source_id, runs.finished_at.is_(None), runs.listed_from > dead
    )
    over = sa.select(runs.id).where(
        runs.source_id == source_id,
        sa.or_(
            runs.listed_from <= dead,
            sa.and_(
                runs.finished_at.is_not(None),
                runs.listed_from < sa.func.coalesce(at_work.scalar_subquery(), sa.func.now()),
            ),
        ),
    )
    connection.execute(sa.delete(scanned_objects).where(scanned_objects.c.run_id.in_(over)))
    row = connection.execute(
        sa.insert(ingest_runs)
        .values(source_id=source_id, started_at=started_at, listed_from=sa.func.clock_timestamp())
        .returning(runs.id, runs.listed_from)
    ).one()
    return Run(UUID(str(row.id)), source_id, row.listed_from)


@dataclass(slots=True)
class Listing:
    """A source as a run lists it."""

    engine: sa.Engine
    run: Run
    source: Source
    _hidden: list[str] = field(default_factory=list)

    def register(self) -> Iterator[ScanProblem]:
        """Register what lies at the source; yield what cannot be read or registered."""
        entries = self.source.scan()
        while batch := list(islice(entries, _BATCH)):
            found: list[FoundObject] = []
            for entry in batch:
                problem = entry if isinstance(entry, ScanProblem) else self._unusable(entry)
                if problem is not None:
                    self._hidden.append(problem.path)
                    yield problem
                elif isinstance(entry, FoundObject):
                    found.append(entry)
            if found:
                run_retrying(self.engine, partial(self._keep, found=found))

    def settle(self, *, allow_deletes: bool) -> Settled:
        """Follow renames and bury what is gone; nothing, unless the source was listed whole."""
        below = self.source.listed_below
        if below is None:
            return Settled()
        scan = Scan(self.run.id, self.run.source_id, self.run.listed_from, below, self._hidden)
        return run_retrying(
            self.engine,
            lambda connection: deletions.settle(
                connection, scan, allowed=allow_deletes, proves_gone=self.source.proves_gone
            ),
        )

    def count(self) -> int:
        """Return how many objects were found."""
        with reading(self.engine) as connection:
            counted = sa.select(sa.func.count()).where(scanned_objects.c.run_id == self.run.id)
            return int(connection.execute(counted).scalar_one())

    def object_ids(self) -> Iterator[SourceObjectId]:
        """Yield the objects in the order of their external ids, page by page."""
        last: str | None = None
        while True:
            page = (
                sa.select(source_objects.c.id, source_objects.c.external_id)
                .join(scanned_objects, scanned_objects.c.source_object_id == source_objects.c.id)
                .where(scanned_objects.c.run_id == self.run.id)
                .order_by(source_objects.c.external_id)
                .limit(_BATCH)
            )
            with reading(self.engine) as connection:
                rows = connection.execute(
                    page if last is None else page.where(source_objects.c.external_id > last)
                ).all()
            yield from (SourceObjectId(row.id) for row in rows)
            if len(rows) < _BATCH:
                return
            last = rows[-1].external_id

    def _keep(self, connection: sa.Connection, found: list[FoundObject]) -> None:
        config = self.source.config
        places.ensure(connection, {config.place_of(entry.path) for entry in found} | config.numbered_places())
        forget_old_names(connection, self.run.source_id, {stored(one.external_id): stored(one.name) for one in found})
        ids = objects.register(connection, self.run.source_id, found)
        rows = [{"run_id": self.run.id, "source_object_id": one} for one in sorted(set(ids.values()))]
        connection.execute(pg.insert(scanned_objects).on_conflict_do_nothing(), rows)

    @staticmethod
    def _unusable(entry: FoundObject) -> ScanProblem | None:
        reason = objects.unusable(entry)
        return None if reason is None else ScanProblem(entry.path, reason)
