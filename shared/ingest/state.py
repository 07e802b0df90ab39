"""What happened to each object at each stage, why, and when it is tried again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.prepared import hot
from shared.db.tables.ingest import ingest_state, quarantine
from shared.db.tables.sources import source_objects
from shared.errors import NotVisibleError
from shared.ingest import objects
from shared.ingest.objects import ObjectRow
from shared.ingest.recordset import recordset
from shared.text.normalise import stored
from shared.types import SourceObjectId

_MAX_REASON_CHARS = 1000


@dataclass(frozen=True, slots=True)
class StateRow:
    """One object at one stage.

    A `running` row is a claim: since `claimed_at` a worker is at the object, at this stage or beyond. `attempts` of a
    claim says how many workers before did not come back.
    """

    stage: str
    producer_version: str
    input_sha256: str | None
    status: str
    result: Mapping[str, str]
    attempts: int
    next_try_at: datetime | None
    error: str | None
    reason: str | None
    claimed_at: datetime | None = None
    claimed_by: str | None = None

    def stands_for(self, *, producer_version: str, input_sha256: str) -> bool:
        """Return whether the row is about this very work."""
        return self.producer_version == producer_version and self.input_sha256 == input_sha256


@dataclass(frozen=True, slots=True)
class Known:
    """An object as it lies in SQL, and what is known of it at each stage."""

    row: ObjectRow
    stages: Mapping[str, StateRow]
    has_children: bool

    @property
    def claim(self) -> StateRow | None:
        """The claim of a worker that is at the object, or that died there."""
        return next((row for row in self.stages.values() if row.status == "running"), None)


def load(connection: sa.Connection, object_id: SourceObjectId) -> Known:
    """Return the object's row and its states by stage, in one statement."""
    rows = connection.execute(_known(), {"object_id": object_id}).all()
    if not rows:
        raise NotVisibleError(f"there is no source object {object_id}")
    width = len(ObjectRow.__slots__)
    states = [StateRow(*row[width + 1 :]) for row in rows if row[width + 1] is not None]
    return Known(ObjectRow(*rows[0][:width]), {state.stage: state for state in states}, rows[0][width])


@cache
def _known() -> sa.Select[Any]:
    states = [ingest_state.c[name] for name in StateRow.__slots__]
    return hot(
        sa.select(*objects.columns(), objects.has_children(), *states)
        .select_from(source_objects)
        .outerjoin(ingest_state, ingest_state.c.source_object_id == source_objects.c.id)
        .where(source_objects.c.id == sa.bindparam("object_id"))
    )


def write(connection: sa.Connection, object_id: SourceObjectId, rows: Sequence[StateRow]) -> None:
    """Write what is known now about the object at these stages, in one statement."""
    if not rows:
        return
    body: list[dict[str, Any]] = [
        {name: getattr(row, name) for name in StateRow.__slots__}
        | {
            "source_object_id": str(object_id),
            "result": dict(row.result),
            "next_try_at": row.next_try_at.isoformat() if row.next_try_at else None,
            "claimed_at": row.claimed_at.isoformat() if row.claimed_at else None,
            "reason": short(row.reason),
        }
        for row in rows
    ]
    connection.execute(_write(), {"states": body})


@cache
def _write() -> sa.Insert:
    names = ["source_object_id", *StateRow.__slots__]
    given = recordset("states", [ingest_state.c[name] for name in names])
    ordered = sa.select(*(given.c[name] for name in names)).order_by(given.c.stage)
    insert = pg.insert(ingest_state).from_select(names, ordered)
    changed = {name: insert.excluded[name] for name in StateRow.__slots__ if name != "stage"}
    return hot(
        insert.on_conflict_do_update(
            index_elements=[ingest_state.c.source_object_id, ingest_state.c.stage],
            set_={**changed, "updated_at": sa.func.now()},
        )
    )


def release(connection: sa.Connection, object_id: SourceObjectId, *, claimed_by: str) -> None:
    """Take back this worker's claim on the object, if there is one."""
    ours = sa.and_(ingest_state.c.source_object_id == object_id, ingest_state.c.claimed_by == claimed_by)
    free = {"status": "pending", "claimed_at": None, "claimed_by": None, "attempts": 0}
    connection.execute(sa.update(ingest_state).where(ours, ingest_state.c.status == "running").values(free))


def forget(connection: sa.Connection, object_id: SourceObjectId) -> None:
    """Forget failures of the object, so that it is tried again from where it failed."""
    connection.execute(
        sa.delete(ingest_state).where(ingest_state.c.source_object_id == object_id, ingest_state.c.status == "failed")
    )
    clear_quarantine(connection, object_id)


def put_in_quarantine(
    connection: sa.Connection, object_id: SourceObjectId, *, row: StateRow, sha256: str | None
) -> None:
    """Record why the object stopped; it is the only thing that stops."""
    values = {
        "stage": row.stage,
        "error": row.error,
        "reason": short(row.reason),
        "sha256": sha256,
        "attempts": row.attempts,
    }
    insert = pg.insert(quarantine).values(source_object_id=object_id, **values)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[quarantine.c.source_object_id],
            set_={**{name: insert.excluded[name] for name in values}, "created_at": sa.func.now()},
        )
    )


def clear_quarantine(connection: sa.Connection, object_id: SourceObjectId) -> None:
    """Take the object out of quarantine."""
    connection.execute(sa.delete(quarantine).where(quarantine.c.source_object_id == object_id))


def short(reason: str | None) -> str | None:
    """Return a reason that fits a row."""
    return None if reason is None else stored(reason)[:_MAX_REASON_CHARS]
