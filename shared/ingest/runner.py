"""The in-process runner: each object through the stages, obeying their rules; one object's failure stops no other."""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import uuid4

import sqlalchemy as sa

from shared.db.engine import reading, recording
from shared.errors import TransientError, WorkerLostError
from shared.ingest import objects, state
from shared.ingest.contract import Payload, Services, Stage
from shared.ingest.locks import object_lock
from shared.ingest.objects import ObjectRow
from shared.ingest.report import FileOutcome, Outcome
from shared.ingest.stage_call import Stopped, call_stage, settled, stop, write_stop
from shared.ingest.state import Known, StateRow
from shared.types import SourceObjectId

_LOG = logging.getLogger(__name__)
_RETRY_HINT = "look at it, then: ki quarantine retry"
_BUSY_WAIT_S = 0.5
_BUSY_TRIES = 240
_NOTES = {"new": Outcome.NEW, "changed": Outcome.CHANGED, "copy": Outcome.COPY, "same": Outcome.REFRESHED}


@dataclass(frozen=True, slots=True)
class Later:
    """The object is not finished: it is tried again after a wait."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The object is finished for now, for good if there is an outcome; `children` are the files in it."""

    outcome: FileOutcome | None
    children: Sequence[SourceObjectId]


class _Work:
    """The objects of a run, taken from their source as they are needed: a hundred thousand are never held."""

    def __init__(self, object_ids: Iterable[SourceObjectId]) -> None:
        self._source = iter(object_ids)
        self._ahead: deque[SourceObjectId] = deque()
        self._last: deque[SourceObjectId] = deque()
        self._delayed: list[tuple[datetime, str, SourceObjectId]] = []
        self._busy: dict[SourceObjectId, int] = {}
        self._left_for_last: set[SourceObjectId] = set()
        self._current: SourceObjectId | None = None

    def due(self) -> datetime | None:
        """Return when the first of the delayed objects is due."""
        return self._delayed[0][0] if self._delayed else None

    def holds_more(self) -> bool:
        """Return whether there is an object that need not wait."""
        if not self._ahead:
            self._ahead.extend(islice(self._source, 1))
        return bool(self._ahead or self._last)

    def take(self) -> SourceObjectId | None:
        """Return the next object that need not wait, None if there is none."""
        if not self.holds_more():
            return None
        self._current = self._ahead.popleft() if self._ahead else self._last.popleft()
        return self._current

    def take_delayed(self) -> SourceObjectId:
        """Return the delayed object that is due first."""
        self._current = heapq.heappop(self._delayed)[2]
        return self._current

    def later(self, object_id: SourceObjectId, due: datetime) -> None:
        """Take the object up again at `due`."""
        heapq.heappush(self._delayed, (due, str(object_id), object_id))
        self._current = None

    def again(self) -> None:
        """Take up the object again that could not be finished."""
        if self._current is not None:
            self._ahead.appendleft(self._current)
            self._current = None

    def done(self, children: Sequence[SourceObjectId]) -> None:
        """Go on with the files in the object that is finished."""
        self._current = None
        self._ahead.extendleft(reversed(children))

    def count_busy(self, object_id: SourceObjectId) -> int:
        """Return how often the object has been found in other hands, this time included."""
        self._busy[object_id] = self._busy.get(object_id, 0) + 1
        return self._busy[object_id]

    def leave_for_last(self, object_id: SourceObjectId) -> bool:
        """Put the object behind all others, once; return whether that was done now."""
        if object_id in self._left_for_last:
            return False
        self._left_for_last.add(object_id)
        self._last.append(object_id)
        return True


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
        self._patience = stages[0].retry
        # Another runner's claim on an object that nobody holds is that of a worker that died.
        self._name = uuid4().hex

    def run(self, object_ids: Iterable[SourceObjectId]) -> Iterator[FileOutcome]:
        """Yield one outcome an object, and one for each file found in it.

        An object that waits for its next try lets the others go first, and one at which a worker has died lets all.
        While the database is away the run waits, as long as a stage would be tried.
        """
        work = _Work(object_ids)
        away = 0
        while True:
            try:
                with self._services.engine.connect() as plain:
                    locks = plain.execution_options(isolation_level="AUTOCOMMIT")
                    while (object_id := self._next(work)) is not None:
                        result = self._locked(locks, object_id, work)
                        away = 0
                        if isinstance(result, Later):
                            work.later(object_id, self._now() + timedelta(seconds=result.wait_s))
                            continue
                        work.done(result.children)
                        if result.outcome is not None:
                            yield result.outcome
            except TransientError as error:
                away += 1
                if away >= self._patience.max_tries:
                    raise
                _LOG.warning("ingest_waits", extra={"error": type(error).__name__, "tries": away})
                work.again()
                self._wait(self._patience.wait_s(failed_tries=away))
            else:
                return

    def _next(self, work: _Work) -> SourceObjectId | None:
        """Return the next object, once its time has come; None when there is none left."""
        due = work.due()
        if due is not None:
            left = (due - self._now()).total_seconds()
            if left <= 0 or not work.holds_more():
                if left > 0:
                    self._wait(left)
                return work.take_delayed()
        return work.take()

    def _locked(self, locks: sa.Connection, object_id: SourceObjectId, work: _Work) -> Finished | Later:
        with object_lock(locks, object_id) as held:
            with reading(self._services.engine) as connection:
                known = state.load(connection, object_id)
            claim = known.claim
            if not held and not self._is_stale(claim):
                if work.count_busy(object_id) < _BUSY_TRIES:
                    return Later(_BUSY_WAIT_S)
                return Finished(_outcome(known.row, Outcome.BUSY, reason="another worker is at it"), [])
            if claim is not None and claim.claimed_by != self._name and work.leave_for_last(object_id):
                return Finished(None, [])
            try:
                return self._process(known)
            except BaseException:
                self._release(object_id)
                raise

    def _is_stale(self, claim: StateRow | None) -> bool:
        """Return whether whoever holds the object has held it for longer than any stage may take.

        Two workers at one object do no harm; one that hangs must not keep it.
        """
        if claim is None or claim.claimed_at is None:
            return False
        limit = timedelta(seconds=self._services.settings.ingest.claim_timeout_s)
        return self._now() - claim.claimed_at > limit

    def _release(self, object_id: SourceObjectId) -> None:
        try:
            with recording(self._services.engine) as connection:
                state.release(connection, object_id, claimed_by=self._name)
        except TransientError:
            # The claim stays and counts as one worker that did not come back.
            _LOG.warning("claim_not_released", extra={"object_id": str(object_id)})

    def _process(self, known: Known) -> Finished | Later:
        result = self._through_stages(known)
        if isinstance(result, Later):
            return result
        outcome, payload = result
        children: list[SourceObjectId] = []
        if known.has_children or payload.members_key is not None:
            with reading(self._services.engine) as connection:
                children = objects.children(connection, known.row.id)
        return Finished(outcome, children)

    def _through_stages(self, known: Known) -> tuple[FileOutcome, Payload] | Later:
        object_id = known.row.id
        payload = Payload(object_id)
        notes: dict[str, str | None] = {}
        # Written together at the end: stages are safe to call twice, so a worker killed before loses nothing but time.
        done: list[StateRow] = []
        is_claimed = False
        for stage in self._stages:
            result = settled(stage, known, payload)
            if result is None and not stage.always and not is_claimed:
                result = self._claim(known, stage, payload)
                is_claimed = True
            if result is None:
                result = call_stage(stage, known, payload, self._services, now=self._now)
            if isinstance(result, Stopped):
                return self._stopped(known, payload, result, done)
            if result.row is not None:
                done.append(result.row)
            if result.ran:
                notes[stage.name] = result.note
            payload = result.payload
        # Only an object that stopped before has something in quarantine, and then a state that says so.
        mended = any(row.status != "done" for row in known.stages.values())
        self._write(object_id, done, mended=mended)
        return self._outcome(known.row, payload, notes), payload

    def _claim(self, known: Known, stage: Stage, payload: Payload) -> Stopped | None:
        """Mark that this worker is at the object from this stage on; return why not if too many have died there."""
        before = known.claim
        died = 0
        if before is not None:
            died = before.attempts + (before.claimed_by != self._name)
        if died >= stage.retry.max_tries:
            error = WorkerLostError(f"{died} workers were lost while they were at the file; {_RETRY_HINT}")
            return stop(stage, known, payload, error, now=self._now())
        claim = StateRow(
            stage.name,
            stage.producer(payload),
            stage.input_sha256(payload),
            "running",
            {},
            died,
            None,
            None,
            None,
            claimed_at=self._now(),
            claimed_by=self._name,
        )
        # A claim that another worker left at an earlier stage must not count again.
        rows = [claim]
        if before is not None and before.stage != stage.name:
            rows.append(replace(before, status="pending", attempts=0, claimed_at=None, claimed_by=None))
        with recording(self._services.engine) as connection:
            state.write(connection, known.row.id, rows)
        return None

    def _stopped(
        self, known: Known, payload: Payload, stopped: Stopped, done: Sequence[StateRow]
    ) -> tuple[FileOutcome, Payload] | Later:
        if stopped.known:
            self._write(known.row.id, done)
        else:
            with self._services.engine.begin() as connection:
                write_stop(connection, payload, stopped, before=done)
        if stopped.wait_s is not None:
            return Later(stopped.wait_s)
        row = stopped.row
        return _outcome(known.row, Outcome.QUARANTINED, error=row.error, reason=row.reason), payload

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
