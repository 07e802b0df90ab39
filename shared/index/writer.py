"""Brings the index up to date with SQL: drains the outbox, embeds, writes, and marks what is there.

Crash-safe at every point: what is written is worked out anew from SQL each time, ids and external versions are the
same on every run, and an entry is marked done only after its rows were acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import sqlalchemy as sa

from shared.db.engine import run_retrying
from shared.errors import PermanentError, TransientError
from shared.index import claims
from shared.index.answers import BulkOutcome
from shared.index.claims import Claim
from shared.index.client import IndexClient, Refresh
from shared.index.drafts import Draft, EmbeddedDraft, drafts, embed, record_embedded
from shared.index.mapping import fitting_alias
from shared.index.version_facts import load_versions
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.settings import Settings
from shared.types import OutboxOperation, VersionId

_log = logging.getLogger(__name__)

_VERSIONS_AT_ONCE: Final = 32
# Vectors of twice so many rows are held at a time: of those on their way, and of those being made.
_ROWS_AT_ONCE: Final = 256
_LEASE_S: Final = 600.0
_RECORDED_ROWS: Final = 5


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What one drain did. `error` is the last failure that concerned no single row."""

    versions_indexed: int = 0
    versions_removed: int = 0
    versions_failed: int = 0
    rows_written: int = 0
    error: str | None = None

    def __add__(self, other: DrainReport) -> DrainReport:
        return DrainReport(
            self.versions_indexed + other.versions_indexed,
            self.versions_removed + other.versions_removed,
            self.versions_failed + other.versions_failed,
            self.rows_written + other.rows_written,
            other.error or self.error,
        )


@dataclass(slots=True)
class _Fate:
    """What became of one version's rows so far."""

    written: int = 0
    wrong: list[str] = field(default_factory=list)
    unavailable: str | None = None

    def error(self) -> str | None:
        """Return what is recorded, None if every row is there."""
        more = len(self.wrong) - _RECORDED_ROWS
        named = [*self.wrong[:_RECORDED_ROWS], *([f"and {more} more rows"] if more > 0 else [])]
        return "; ".join([*named, *([self.unavailable] if self.unavailable else [])]) or None


class IndexWriter:
    """Writes queued versions to the index. Several may run at once, in one process or many."""

    def __init__(
        self,
        engine: sa.Engine,
        client: IndexClient,
        embedding: EmbeddingProvider,
        settings: Settings,
        *,
        progress: Callable[[DrainReport], None] | None = None,
        lease_s: float = _LEASE_S,
    ) -> None:
        self._engine = engine
        self._client = client
        self._embedding = embedding
        self._settings = settings
        self._alias = fitting_alias(settings.retrieval, embedding_signature=embedding.signature)
        self._refresh: Refresh = settings.opensearch.refresh
        self._progress = progress
        self._lease_s = lease_s

    def drain(self, limit: int) -> DrainReport:
        """Work on up to `limit` versions with due outbox entries and return what was done.

        A failure stays with its entry, with the error and a time for the next try. Raises `PermanentError` if nothing
        can be written at all: the model's width is not the index's, or the engine refuses our credentials.
        """
        report = DrainReport()
        left = limit
        while left > 0:
            with self._engine.begin() as connection:
                claimed = claims.claim(connection, limit=min(left, _VERSIONS_AT_ONCE), lease_s=self._lease_s)
            if not claimed:
                break
            left -= len(claimed)
            report += self._worked_on(claimed)
            if self._progress is not None:
                self._progress(report)
            if report.error is not None:
                # The engine or the model is away: the rest would only fail the same way.
                break
        return report

    def _worked_on(self, claimed: Sequence[Claim]) -> DrainReport:
        fates = {one.version_id: _Fate() for one in claimed}
        error: str | None = None
        try:
            self._write_all(claimed, fates)
        except TransientError as problem:
            error = f"{type(problem).__name__}: {problem.message}"
        except PermanentError as problem:
            # The model does not fit the index, or the engine refuses us: no retry helps, somebody must look.
            self._fail(claimed, f"{type(problem).__name__}: {problem.message}")
            raise
        if error is not None:
            _log.warning("index_drain_interrupted", extra={"versions": len(claimed), "error": error})
            # What was written before stays; writing it again is harmless.
            self._fail(claimed, error)
            return DrainReport(versions_failed=len(claimed), error=error)
        return self._marked(claimed, fates)

    def _write_all(self, claimed: Sequence[Claim], fates: dict[VersionId, _Fate]) -> None:
        """Make, embed and write the rows of these versions: while one batch is on its way, the next is made."""
        with self._engine.connect() as connection:
            facts = load_versions(connection, [one.version_id for one in claimed])
        made = (draft for one in claimed for draft in drafts(one, facts.get(one.version_id), self._settings))
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="index-write") as sender:
            on_its_way: Future[None] | None = None
            while work := list(islice(made, _ROWS_AT_ONCE)):
                embedded = embed(work, self._embedding)
                if on_its_way is not None:
                    on_its_way.result()
                on_its_way = sender.submit(self._write, embedded, fates)
            if on_its_way is not None:
                on_its_way.result()

    def _write(self, embedded: Sequence[EmbeddedDraft], fates: dict[VersionId, _Fate]) -> None:
        """Write some rows; note what became of each."""
        # Embedding takes long. Who has lost the claim meanwhile must not write an older state over a newer one.
        held = self._held([one.draft for one in embedded])
        sent: list[EmbeddedDraft] = []
        for one in embedded:
            if one.refusal is not None:
                fates[one.draft.claim.version_id].wrong.append(f"chunk {one.draft.chunk_id}: {one.refusal}")
            elif one.draft.claim.version_id in held:
                sent.append(one)
        items = self._client.bulk(self._alias, [one.write() for one in sent], refresh=self._refresh)
        written: list[EmbeddedDraft] = []
        for one, item in zip(sent, items, strict=True):
            fate = fates[one.draft.claim.version_id]
            if item.outcome is BulkOutcome.REFUSED:
                fate.wrong.append(f"chunk {item.chunk_id}: {item.reason}")
            elif item.outcome is BulkOutcome.UNAVAILABLE:
                fate.unavailable = f"chunk {item.chunk_id}: {item.reason}"
            else:
                fate.written += one.draft.is_live
                written.append(one)
        record_embedded(self._engine, written)

    def _held(self, work: Sequence[Draft]) -> set[VersionId]:
        ours = {draft.claim.version_id: draft.claim for draft in work}
        with self._engine.begin() as connection:
            return {one.version_id for one in claims.renew(connection, list(ours.values()), lease_s=self._lease_s)}

    def _marked(self, claimed: Sequence[Claim], fates: dict[VersionId, _Fate]) -> DrainReport:
        failures = {one: error for one in claimed if (error := fates[one.version_id].error()) is not None}
        good = [one for one in claimed if one not in failures]

        def mark(connection: sa.Connection) -> None:
            claims.finish(connection, good)
            for one, error in failures.items():
                claims.fail(connection, one, error)

        run_retrying(self._engine, mark)
        for one in failures:
            _log.warning("index_version_failed", extra={"version_id": str(one.version_id), "attempts": one.attempts})
        removed = sum(one.operation is OutboxOperation.DELETE for one in good)
        return DrainReport(
            versions_indexed=len(good) - removed,
            versions_removed=removed,
            versions_failed=len(failures),
            rows_written=sum(fate.written for fate in fates.values()),
            error=next((fate.unavailable for fate in fates.values() if fate.unavailable), None),
        )

    def _fail(self, claimed: Sequence[Claim], error: str) -> None:
        with self._engine.begin() as connection:
            for one in claimed:
                claims.fail(connection, one, error)
