"""One stage of one object at a time, for a caller that knows no more than a payload: the state machine's functions.

Between two stages anything may happen to the object. Each call takes the object's lock for itself, looks whether the
payload still speaks of what lies at the source, and writes what came of the stage before it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from shared.db.engine import reading
from shared.errors import MisconfiguredError, ObjectBusyError, PermanentError, SupersededError, TransientError
from shared.ingest import state
from shared.ingest.contract import Payload, Services, Stage
from shared.ingest.locks import object_lock
from shared.ingest.stage_call import Passed, Stopped, call_stage, is_current, settled, write_stop
from shared.ingest.state import Known, StateRow
from shared.types import SourceId


class ServicesOf(Protocol):
    """Gives the services of a source's objects."""

    def __call__(self, source_id: SourceId) -> Services:
        """Return what stages work with; `MisconfiguredError` if the source cannot be opened from here."""


class StageWorker:
    """Takes objects through single stages. Safe to share between threads."""

    def __init__(
        self, engine: sa.Engine, services_of: ServicesOf, stages: Sequence[Stage], *, now: Callable[[], datetime]
    ) -> None:
        self._engine = engine
        self._services_of = services_of
        self._stages = {stage.name: stage for stage in stages}
        self._last = stages[-1].name
        self._now = now

    def advance(self, stage_name: str, payload: Payload) -> Payload:
        """Return the payload after the stage, which has run unless its state stands for this very work.

        Raises `ObjectBusyError` while another worker has the object, `SupersededError` if it has changed or gone since
        the payload was made, and for a failure, which is then written down, `TransientError` if the stage is worth
        another try and `PermanentError` if it is not. What is wrong with the installation is raised as it is.
        """
        stage = self._stage(stage_name)
        with self._engine.connect() as plain:
            locks = plain.execution_options(isolation_level="AUTOCOMMIT")
            with object_lock(locks, payload.object_id) as held:
                if not held:
                    raise ObjectBusyError
                known = self._known(payload)
                result = settled(stage, known, payload)
                if result is None:
                    services = self._services_of(known.row.source_id)
                    result = call_stage(stage, known, payload, services, now=self._now)
                self._write(stage, payload, result)
        if isinstance(result, Stopped):
            kind = PermanentError if result.row.next_try_at is None else TransientError
            raise kind(result.row.reason)
        return result.payload

    def record(self, stage_name: str, payload: Payload, *, error: str, reason: str) -> None:
        """Write down that the stage failed, unless that is written already or somebody newer has the object.

        For a call that could not do so itself: it was killed, ran out of time or memory, or the database was away.
        """
        stage = self._stage(stage_name)
        producer, basis = stage.producer(payload), stage.input_sha256(payload)
        with self._engine.begin() as connection:
            if not is_current(connection, payload):
                return
            row = state.load(connection, payload.object_id).stages.get(stage.name)
            ours = row is not None and row.stands_for(producer_version=producer, input_sha256=basis)
            if row is not None and ours and row.status == "failed":
                return
            tries = row.attempts if row is not None and ours and row.status == "pending" else 0
            # The file may be innocent: the next time it is taken in, it is tried again.
            failed = StateRow(stage.name, producer, basis, "failed", {}, max(tries, 1), self._now(), error, reason)
            write_stop(connection, payload, Stopped(failed, None))

    def _stage(self, name: str) -> Stage:
        if name not in self._stages:
            raise MisconfiguredError(
                f"the pipeline has no stage called {name}; the state machine is of another version"
            )
        return self._stages[name]

    def _known(self, payload: Payload) -> Known:
        with reading(self._engine) as connection:
            if not is_current(connection, payload):
                raise SupersededError
            return state.load(connection, payload.object_id)

    def _write(self, stage: Stage, payload: Payload, result: Passed | Stopped) -> None:
        with self._engine.begin() as connection:
            if isinstance(result, Stopped):
                if not is_current(connection, payload):
                    raise SupersededError
                if not result.known:
                    write_stop(connection, payload, result)
                return
            if result.row is not None:
                state.write(connection, payload.object_id, [result.row])
            if stage.name == self._last:
                state.clear_quarantine(connection, payload.object_id)
