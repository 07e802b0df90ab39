"""A source through the pipeline: scan, stages, index; with a report that accounts for every file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from shared.db.engine import reading
from shared.db.tables.ingest import ingest_runs
from shared.errors import TransientError
from shared.ingest import objects, outbox, scans, state
from shared.ingest.contract import Converter, Services
from shared.ingest.convert.process import conversion_process
from shared.ingest.deletions import Settled
from shared.ingest.pipeline import stages
from shared.ingest.report import FileOutcome, IngestReport, Outcome
from shared.ingest.runner import Runner, utc_now
from shared.providers.llm.protocol import LanguageModel
from shared.providers.storage import ObjectStore
from shared.settings import Settings
from shared.sources.base import Source
from shared.types import SourceId, SourceObjectId

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
_OBJECTS_PER_DRAIN = 50
_DRAIN_LIMIT = 200


class OutboxWriter(Protocol):
    """Writes queued versions to the index: `shared.index.writer.IndexWriter`."""

    def drain(self, limit: int) -> Any:
        """Write up to `limit` entries; what cannot be written now stays queued."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What one run has to do, and what is known of it before the first object."""

    source: Source
    run: scans.Run
    object_ids: Iterator[SourceObjectId]
    count: int
    files: list[FileOutcome]
    settled: Settled
    opens_all: bool


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
        model: LanguageModel | None = None,
        now: Callable[[], datetime] = utc_now,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """`writer` None leaves everything queued for another process to drain; `model` is that of `settings.llm`."""
        self._engine = engine
        self._store = store
        self._settings = settings
        self._writer = writer
        self._converter = converter
        self._model = model
        self._now = now
        self._wait = wait

    def ingest(
        self,
        source: Source,
        *,
        opens_all: bool = True,
        allow_deletes: bool = False,
        progress: Callable[[Progress], None] | None = None,
        after_scan: Callable[[SourceId], None] | None = None,
    ) -> IngestReport:
        """Take in everything that lies at the source now, and bury what no longer does.

        `opens_all` off is an incremental run: what the listing shows as unchanged is not opened. `allow_deletes` is an
        administrator's word that what is missing is gone. `after_scan` is called when all objects are registered and
        nothing of a new one can be found yet: the moment to mirror their ACLs, so that no file is open for a while
        before its ACL is known.
        """
        with self._engine.begin() as connection:
            source_id = objects.ensure_source(connection, source.name, source.config)
            run = scans.begin(connection, source_id, started_at=self._now())
        listing = scans.Listing(self._engine, run, source)
        problems = list(listing.register())
        settled = listing.settle(allow_deletes=allow_deletes)
        if after_scan is not None:
            after_scan(source_id)
        unreadable = [FileOutcome(p.path, Outcome.UNREADABLE, "ScanProblem", p.reason) for p in problems]
        work = _Work(source, run, listing.object_ids(), listing.count(), unreadable, settled, opens_all=opens_all)
        return self._run(work, progress)

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
            run = scans.begin(connection, source_id, started_at=self._now())
        return self._run(_Work(source, run, iter(wanted), len(wanted), [], Settled(), opens_all=True), progress)

    def _run(self, work: _Work, progress: Callable[[Progress], None] | None) -> IngestReport:
        files = work.files
        total = work.count + len(files)
        with ExitStack() as stack:
            converter = self._converter or stack.enter_context(conversion_process(self._settings.ingest, self._store))
            services = Services(
                self._engine,
                self._store,
                self._settings,
                work.source,
                converter,
                opens_all=work.opens_all,
                model=self._model,
            )
            runner = Runner(services, stages(self._settings), now=self._now, wait=self._wait)
            for outcome in runner.run(work.object_ids):
                files.append(outcome)
                total += outcome.parent_id is not None
                if progress is not None:
                    progress(Progress(len(files), total, outcome))
                if len(files) % _OBJECTS_PER_DRAIN == 0:
                    self._drained()
        self._drained()
        waiting = self._patiently(self._left)
        report = IngestReport(work.run.id, work.run.source_id, tuple(files), waiting, work.settled)
        self._patiently(lambda: self._end(report))
        return report

    def _drained(self) -> None:
        try:
            self._drain()
        except TransientError as error:
            # What is queued stays queued; the runner notices by itself if the database is what is away.
            _LOG.warning("drain_interrupted", extra={"error": type(error).__name__})

    def _drain(self) -> int:
        """Hand the queue to the index writer until nothing is left or nothing moves; return what is left."""
        left = self._left()
        while self._writer is not None and left:
            self._writer.drain(_DRAIN_LIMIT)
            before, left = left, self._left()
            if left >= before:
                break
        return left

    def _patiently(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, tried as often as a stage is."""
        limits = self._settings.ingest
        for tries in range(1, limits.max_tries):
            try:
                return work()
            except TransientError:
                self._wait(limits.backoff_base_s * 2 ** (tries - 1))
        return work()

    def _left(self) -> int:
        with reading(self._engine) as connection:
            return outbox.open_count(connection)

    def _end(self, report: IngestReport) -> None:
        with self._engine.begin() as connection:
            connection.execute(
                sa.update(ingest_runs)
                .where(ingest_runs.c.id == report.run_id)
                .values(finished_at=self._now(), counts=report.counts())
            )
