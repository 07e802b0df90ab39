"""The in-process runner: each object through the stages, obeying their rules; one object's failure stops no other."""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from shared.db.engine import reading, recording, sqlstate
from shared.errors import (
    EmbeddingWidthError,
    IndexMappingError,
    KnowledgeIndexError,
    MisconfiguredError,
    TransientError,
)
from shared.ingest import objects, state
from shared.ingest.contract import Payload, Services, Stage, StageInput
from shared.ingest.locks import object_lock
from shared.ingest.objects import ObjectRow
from shared.ingest.report import FileOutcome, Outcome
from shared.ingest.state import Known, StateRow
from shared.types import SourceObjectId

_LOG = logging.getLogger(__name__)
# What is wrong with the installation is wrong for every object: the run ends instead of quarantining them all.
_FATAL = (MisconfiguredError, EmbeddingWidthError, IndexMappingError)
_BUSY_WAIT_S = 0.5
_BUSY_TRIES = 240
_NOTES = {"new": Outcome.NEW, "changed": Outcome.CHANGED, "copy": Outcome.COPY, "same": Outcome.REFRESHED}


@dataclass(frozen=True, slots=True)
class Later:
    """The object is not finished: it is tried again after a wait."""

    wait_s: float
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The object is finished for this run; `holds_files` when files were taken out of it."""

    outcome: FileOutcome
    holds_files: bool


class Runner:
    """Drives objects through `stages`. Waiting is the caller's function, so that a test does not sleep."""

    def __init__(
        self,
        services: Services,
        stages: Sequence[Stage],
        *,
        now: Callable[[], datetime],
        wait: Callable[[float], None],
    ) -> None:
        self._services = services
        self._stages = stages
        self._now = now
        self._wait = wait

    def run(self, object_ids: Iterable[SourceObjectId]) -> Iterator[FileOutcome]:
        """Yield one outcome an object, and one for each file found in it.

        An object that waits for its next try lets the others go first.
        """
        queue = deque(object_ids)
        delayed: list[tuple[datetime, str, SourceObjectId]] = []
        busy: dict[SourceObjectId, int] = {}
        engine = self._services.engine
        with engine.connect() as plain:
            locks = plain.execution_options(isolation_level="AUTOCOMMIT")
            while queue or delayed:
                while delayed and (not queue or delayed[0][0] <= self._now()):
                    due, _, object_id = heapq.heappop(delayed)
                    left = (due - self._now()).total_seconds()
                    if left > 0:
                        self._wait(left)
                    queue.appendleft(object_id)
                object_id = queue.popleft()
                result = self._locked(locks, object_id)
                if isinstance(result, Later):
                    if result.busy:
                        busy[object_id] = busy.get(object_id, 0) + 1
                        if busy[object_id] >= _BUSY_TRIES:
                            with reading(engine) as connection:
                                row = state.load(connection, object_id).row
                            yield _outcome(row, Outcome.BUSY, reason="another worker is at it")
                            continue
                    heapq.heappush(delayed, (self._now() + timedelta(seconds=result.wait_s), str(object_id), object_id))
                    continue
                yield result.outcome
                if result.holds_files:
                    with reading(engine) as connection:
                        queue.extendleft(reversed(objects.children(connection, object_id)))

    def _locked(self, locks: sa.Connection, object_id: SourceObjectId) -> Finished | Later:
        with object_lock(locks, object_id) as held:
            return self._process(object_id) if held else Later(_BUSY_WAIT_S, busy=True)

    def _process(self, object_id: SourceObjectId) -> Finished | Later:
        with reading(self._services.engine) as connection:
            known = state.load(connection, object_id)
        result = self._through_stages(known)
        if isinstance(result, Later):
            return result
        outcome, payload = result
        return Finished(outcome, holds_files=known.has_children or payload.members_key is not None)

    def _through_stages(self, known: Known) -> tuple[FileOutcome, Payload] | Later:
        object_id = known.row.id
        payload = Payload(object_id)
        notes: dict[str, str | None] = {}
        # Written together at the end: stages are safe to call twice, so a worker killed before loses nothing but time.
        done: list[StateRow] = []
        for stage in self._stages:
            producer, basis = stage.producer(payload), stage.input_sha256(payload)
            row = known.stages.get(stage.name)
            if row is not None and not row.stands_for(producer_version=producer, input_sha256=basis):
                row = None
            if row is not None and not stage.always and row.status == "done":
                payload = payload.with_result(row.result)
                continue
            if row is not None and not stage.always and row.status == "failed" and row.next_try_at is None:
                self._write(object_id, done)
                return _outcome(known.row, Outcome.QUARANTINED, error=row.error, reason=row.reason), payload
            try:
                result = stage.run(StageInput(payload, known.row, stage.timeout_s), self._services)
                after = payload.with_result(result.found)
            except _FATAL:
                raise
            except Exception as error:  # noqa: BLE001 - whatever one file does, the others go on
                outcome = self._failed(stage, StageInput(payload, known.row, stage.timeout_s), row, error, done)
                return outcome if isinstance(outcome, Later) else (outcome, payload)
            finished = self._row(stage, payload, "done", result=dict(result.found))
            if row is None or row.status != "done" or row.result != finished.result:
                done.append(finished)
            payload, notes[stage.name] = after, result.note
        # Only an object that stopped before has something in quarantine, and then a state that says so.
        mended = any(row.status != "done" for row in known.stages.values())
        self._write(object_id, done, mended=mended)
        return self._outcome(known.row, payload, notes), payload

    def _failed(
        self,
        stage: Stage,
        call: StageInput,
        row: StateRow | None,
        error: Exception,
        done: Sequence[StateRow],
    ) -> FileOutcome | Later:
        payload = call.payload
        # A failure left by an earlier run was final then; this run has its own tries.
        before = row.attempts if row is not None and row.status == "pending" else 0
        tries = before + 1
        wait_s = stage.retry.wait_s(failed_tries=tries)
        transient = _may_pass(error)
        again = transient and tries < stage.retry.max_tries
        name, reason = type(error).__name__, _reason(error)
        foreseen = isinstance(error, KnowledgeIndexError)
        _LOG.log(
            logging.INFO if foreseen else logging.ERROR,
            "stage failed",
            extra={"stage": stage.name, "object_id": str(payload.object_id), "error": name, "tries": tries},
            exc_info=None if foreseen else error,
        )
        failed = self._row(
            stage,
            payload,
            "pending" if again else "failed",
            attempts=tries,
            # A permanent failure is tried again only when the file or the producer changes.
            next_try_at=self._now() + timedelta(seconds=wait_s) if transient else None,
            error=name,
            reason=reason,
        )
        with self._services.engine.begin() as connection:
            state.write(connection, payload.object_id, [*done, failed])
            if again:
                return Later(wait_s)
            state.put_in_quarantine(connection, payload.object_id, row=failed, sha256=payload.sha256)
        return _outcome(call.row, Outcome.QUARANTINED, error=name, reason=reason)

    def _write(self, object_id: SourceObjectId, rows: Sequence[StateRow], *, mended: bool = False) -> None:
        if not rows and not mended:
            return
        if not mended:
            with recording(self._services.engine) as connection:
                state.write(connection, object_id, rows)
            return
        with self._services.engine.begin() as connection:
            state.write(connection, object_id, rows)
            state.clear_quarantine(connection, object_id)

    def _row(
        self,
        stage: Stage,
        payload: Payload,
        status: str,
        *,
        result: dict[str, str] | None = None,
        attempts: int = 0,
        next_try_at: datetime | None = None,
        error: str | None = None,
        reason: str | None = None,
    ) -> StateRow:
        return StateRow(
            stage=stage.name,
            producer_version=stage.producer(payload),
            input_sha256=stage.input_sha256(payload),
            status=status,
            result=result or {},
            attempts=attempts,
            next_try_at=next_try_at,
            error=error,
            reason=reason,
        )

    def _outcome(self, row: ObjectRow, payload: Payload, notes: dict[str, str | None]) -> FileOutcome:
        ran = [stage.name for stage in self._stages if stage.name in notes and not stage.always]
        note = notes.get("relate")
        outcome = _NOTES[note] if note else Outcome.REFRESHED if ran else Outcome.UNCHANGED
        return _outcome(row, outcome, version_id=payload.version_id, document_id=payload.document_id)


def _outcome(
    row: ObjectRow,
    outcome: Outcome,
    *,
    error: str | None = None,
    reason: str | None = None,
    version_id: str | None = None,
    document_id: str | None = None,
) -> FileOutcome:
    return FileOutcome(
        path=row.path,
        outcome=outcome,
        error=error,
        reason=reason,
        object_id=row.id,
        parent_id=row.parent_id,
        version_id=version_id,
        document_id=document_id,
    )


def utc_now() -> datetime:
    """Return the time now."""
    return datetime.now(UTC)


def _may_pass(error: Exception) -> bool:
    """Return whether something was away, full or in the way of another worker, rather than wrong with the file."""
    if isinstance(error, TransientError):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
        return True
    # Classes of SQLSTATE: connection, transaction rollback, resources, operator intervention.
    return (sqlstate(error) or "")[:2] in {"08", "40", "53", "57"}


def _reason(error: Exception) -> str:
    if isinstance(error, KnowledgeIndexError):
        return error.message
    return f"unexpected: {type(error).__name__}: {error}"
