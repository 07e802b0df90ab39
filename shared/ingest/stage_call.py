"""One stage of one object: whether it has to run, and what its result or its failure leaves behind.

Every runner works by this: the in-process one for a whole object, a Lambda function for one stage. Nothing is written
here; what is to be written is returned, so that each writes when it suits it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from shared.db.engine import sqlstate
from shared.db.tables.sources import source_objects
from shared.errors import (
    EmbeddingWidthError,
    IndexMappingError,
    KnowledgeIndexError,
    MisconfiguredError,
    TransientError,
)
from shared.ingest import state
from shared.ingest.contract import Payload, Retry, Services, Stage, StageInput
from shared.ingest.state import Known, StateRow

FATAL: Final = (MisconfiguredError, EmbeddingWidthError, IndexMappingError)
"""What is wrong with the installation is wrong for every object: a run ends instead of quarantining them all."""
BUSY: Final = Retry(max_tries=120, backoff_base_s=1.0, rate=1.0)
"""How long an object that another worker has is waited for; this is no failure of the object."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Passed:
    """The stage is done. `row` is what to write, None if it is written already; `ran` is whether it ran this time."""

    payload: Payload
    row: StateRow | None
    note: str | None
    ran: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """The stage failed. `wait_s` is set if it is tried again; `row` is what to write, `known` if that is written."""

    row: StateRow
    wait_s: float | None
    known: bool = False


def settled(stage: Stage, known: Known, payload: Payload) -> Passed | Stopped | None:
    """Return what came of this very work the last time, None if the stage has to run."""
    row = _state(stage, known, payload)
    if row is None or stage.always:
        return None
    if row.status == "done":
        return Passed(payload.with_result(row.result), None, None, ran=False)
    if row.status == "failed" and row.next_try_at is None:
        return Stopped(row, None, known=True)
    return None


def call_stage(
    stage: Stage, known: Known, payload: Payload, services: Services, *, now: Callable[[], datetime]
) -> Passed | Stopped:
    """Run the stage for the object in `known` and return what came of it. Raises only `FATAL` errors."""
    row = _state(stage, known, payload)
    is_last_try = _tries(row) >= stage.retry.max_tries
    try:
        result = stage.run(StageInput(payload, known.row, stage.timeout_s, is_last_try), services)
        after = payload.with_result(result.found)
    except FATAL:
        raise
    except Exception as error:  # noqa: BLE001 - whatever one file does, the others go on
        return stop(stage, known, payload, error, now=now())
    producer, basis = stage.producer(payload), stage.input_sha256(payload)
    finished = StateRow(stage.name, producer, basis, "done", dict(result.found), 0, None, None, None)
    is_new = row is None or row.status != "done" or row.result != finished.result
    return Passed(after, finished if is_new else None, result.note, ran=True)


def stop(stage: Stage, known: Known, payload: Payload, error: Exception, *, now: datetime) -> Stopped:
    """Return what a failure of the stage leaves behind: another try, or the end for this object."""
    row = _state(stage, known, payload)
    tries = _tries(row)
    wait_s = stage.retry.wait_s(failed_tries=tries)
    transient = may_pass(error)
    again = transient and tries < stage.retry.max_tries
    foreseen = isinstance(error, KnowledgeIndexError)
    _LOG.log(
        logging.INFO if foreseen else logging.ERROR,
        "stage failed",
        extra={
            "stage": stage.name,
            "object_id": str(payload.object_id),
            "error": type(error).__name__,
            "tries": tries,
        },
        exc_info=None if foreseen else error,
    )
    failed = StateRow(
        stage.name,
        stage.producer(payload),
        stage.input_sha256(payload),
        "pending" if again else "failed",
        {},
        tries,
        # A permanent failure is tried again only when the file or the producer changes.
        now + timedelta(seconds=wait_s) if transient else None,
        type(error).__name__,
        reason_of(error),
    )
    return Stopped(failed, wait_s if again else None)


def write_stop(
    connection: sa.Connection, payload: Payload, stopped: Stopped, *, before: Sequence[StateRow] = ()
) -> None:
    """Write a failure, and put the object into quarantine unless it is tried again; `before` is written with it."""
    state.write(connection, payload.object_id, [*before, stopped.row])
    if stopped.wait_s is None:
        state.put_in_quarantine(connection, payload.object_id, row=stopped.row, sha256=payload.sha256)


def is_current(connection: sa.Connection, payload: Payload) -> bool:
    """Return whether the object is still there with the payload's bytes; it stays so until the transaction ends.

    A deletion and a newer fetch both write the object's row: whoever works on what was there before must stop.
    """
    columns = source_objects.c
    there = sa.select(columns.id).where(columns.id == payload.object_id, columns.deleted_at.is_(None))
    if payload.sha256 is not None:
        there = there.where(columns.sha256 == payload.sha256)
    return connection.execute(there.with_for_update(read=True)).first() is not None


def may_pass(error: Exception) -> bool:
    """Return whether something was away, full or in the way of another worker, rather than wrong with the file."""
    if isinstance(error, TransientError):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
        return True
    # Classes of SQLSTATE: connection, transaction rollback, resources, operator intervention.
    return (sqlstate(error) or "")[:2] in {"08", "40", "53", "57"}


def reason_of(error: Exception) -> str:
    """Return the text for people."""
    if isinstance(error, KnowledgeIndexError):
        return error.message
    return f"unexpected: {type(error).__name__}: {error}"


def _tries(row: StateRow | None) -> int:
    """Return the number of the try that is under way; a failure left by an earlier run was final then."""
    return (row.attempts if row is not None and row.status == "pending" else 0) + 1


def _state(stage: Stage, known: Known, payload: Payload) -> StateRow | None:
    """Return the object's state at the stage if it is about this very work."""
    row = known.stages.get(stage.name)
    if row is None or not row.stands_for(
        producer_version=stage.producer(payload), input_sha256=stage.input_sha256(payload)
    ):
        return None
    return row
