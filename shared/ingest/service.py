"""A source through the pipeline: scan, stages, index; with a report that accounts for every file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import sqlalchemy as sa

from shared.db.engine import reading
from shared.db.tables.ingest import ingest_runs
from shared.ingest import objects, outbox, places, state
from shared.ingest.contract import Converter, Services
from shared.ingest.convert.process import conversion_process
from shared.ingest.pipeline import stages
from shared.ingest.report import FileOutcome, IngestReport, Outcome
from shared.ingest.runner import Runner, utc_now
from shared.providers.storage import ObjectStore
from shared.settings import Settings
from shared.sources.base import FoundObject, ScanProblem, Source
from shared.types import SourceId, SourceObjectId

_OBJECTS_PER_DRAIN = 50
_DRAIN_LIMIT = 200


class OutboxWriter(Protocol):
    """Writes queued versions to the index: `shared.index.writer.IndexWriter`."""

    def drain(self, limit: int) -> Any:
        """Write up to `limit` entries; what cannot be written now stays queued."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `total` grows when files are found in files."""

    done: int
    total: int
    last: FileOutcome | None


class IngestService:
    """Ingests sources; one call is one run."""

    def __init__(
        self,
        engine: sa.Engine,
        store: ObjectStore,
        settings: Settings,
        writer: OutboxWriter | None,
        *,
        converter: Converter | None = None,
        now: Callable[[], datetime] = utc_now,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """`writer` None leaves everything queued for another process to drain."""
        self._engine = engine
        self._store = store
        self._settings = settings
        self._writer = writer
        self._converter = converter
        self._now = now
        self._wait = wait

    def ingest(
        self,
        source: Source,
        *,
        progress: Callable[[Progress], None] | None = None,
        after_scan: Callable[[SourceId], None] | None = None,
    ) -> IngestReport:
        """Take in everything that lies at the source now.

        `after_scan` is called when all objects are registered and nothing of a new one can be found yet: the moment
        to mirror their ACLs, so that no file is open for a while before its ACL is known.
        """
        problems: list[ScanProblem] = []
        found: list[FoundObject] = []
        for entry in source.scan():
            if isinstance(entry, ScanProblem):
                problems.append(entry)
            elif reason := objects.unusable(entry):
                problems.append(ScanProblem(entry.path, reason))
            else:
                found.append(entry)
        with self._engine.begin() as connection:
            source_id = objects.ensure_source(connection, source.name, source.config)
            places.ensure(connection, {source.config.place_of(entry.path) for entry in found})
            ids = objects.register(connection, source_id, found)
        if after_scan is not None:
            after_scan(source_id)
        unreadable = [FileOutcome(p.path, Outcome.UNREADABLE, "ScanProblem", p.reason) for p in problems]
        return self._run(source, source_id, list(ids.values()), unreadable, progress)

    def retry(
        self,
        source: Source,
        object_ids: Iterable[SourceObjectId],
        *,
        progress: Callable[[Progress], None] | None = None,
    ) -> IngestReport:
        """Try these quarantined objects again from the stage at which they stopped."""
        wanted = list(object_ids)
        with self._engine.begin() as connection:
            source_id = objects.ensure_source(connection, source.name, source.config)
            for object_id in wanted:
                state.forget(connection, object_id)
        return self._run(source, source_id, wanted, [], progress)

    def _run(
        self,
        source: Source,
        source_id: SourceId,
        object_ids: list[SourceObjectId],
        files: list[FileOutcome],
        progress: Callable[[Progress], None] | None,
    ) -> IngestReport:
        run_id = self._begin(source_id)
        roots = len(object_ids) + len(files)
        with ExitStack() as stack:
            converter = self._converter or stack.enter_context(conversion_process(self._settings.ingest, self._store))
            services = Services(self._engine, self._store, self._settings, source, converter)
            runner = Runner(services, stages(self._settings), now=self._now, wait=self._wait)
            for outcome in runner.run(object_ids):
                files.append(outcome)
                roots += outcome.parent_id is not None
                if progress is not None:
                    progress(Progress(len(files), roots, outcome))
                if len(files) % _OBJECTS_PER_DRAIN == 0:
                    self._drain()
        waiting = self._drain()
        report = IngestReport(run_id, source_id, tuple(files), waiting)
        self._end(report)
        return report

    def _drain(self) -> int:
        """Hand the queue to the index writer until nothing is left or nothing moves; return what is left."""
        left = self._left()
        while self._writer is not None and left:
            self._writer.drain(_DRAIN_LIMIT)
            before, left = left, self._left()
            if left >= before:
                break
        return left

    def _left(self) -> int:
        with reading(self._engine) as connection:
            return outbox.open_count(connection)

    def _begin(self, source_id: SourceId) -> UUID:
        with self._engine.begin() as connection:
            row = connection.execute(
                sa.insert(ingest_runs).values(source_id=source_id, started_at=self._now()).returning(ingest_runs.c.id)
            )
            return UUID(str(row.scalar_one()))

    def _end(self, report: IngestReport) -> None:
        with self._engine.begin() as connection:
            connection.execute(
                sa.update(ingest_runs)
                .where(ingest_runs.c.id == report.run_id)
                .values(finished_at=self._now(), counts=report.counts())
            )
