"""What of each source is in and what is not, and why: the statement that accounts for every file.

Every object that is still at its source is in exactly one of four states: indexed, waiting, empty or quarantined.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import held_deletions, index_outbox, ingest_state, quarantine
from shared.db.tables.sources import source_objects, sources, version_sources
from shared.errors import EmptyFileError

TOP_REASONS: Final = 5
LAST_STAGE: Final = "index"
"""The stage after which an object is handed to the index."""

_objects = source_objects.c


@dataclass(frozen=True, slots=True)
class Reason:
    """Why objects stopped: the stage, the class of the error, how many, and one reason in words as an example."""

    stage: str
    error: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class SourceCompleteness:
    """One source. found = indexed + waiting + empty + quarantined; what was buried is counted apart.

    `held` are deletions that are not believed yet, after `held_scans` scans. `oldest_pending` is since when the
    longest waiting object waits. `rights_as_of`: no object's ACL is older; None if that cannot be said.
    """

    source: str
    kind: str
    found: int
    indexed: int
    waiting: int
    empty: int
    quarantined: int
    reasons: tuple[Reason, ...]
    tombstoned: int
    held: int
    held_scans: int
    oldest_pending: datetime | None
    rights_as_of: datetime | None

    @property
    def complete(self) -> bool:
        """Whether all that can be in is in, and nothing is held."""
        return self.waiting == 0 and self.quarantined == 0 and self.held == 0

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object; moments as ISO 8601."""
        body = asdict(self)
        moments = {"oldest_pending": self.oldest_pending, "rights_as_of": self.rights_as_of}
        shown = {name: moment.isoformat() if moment else None for name, moment in moments.items()}
        return {**body, **shown, "complete": self.complete}


def completeness(connection: sa.Connection) -> list[SourceCompleteness]:
    """Return every source by name, from one statement; for administrators, it is not filtered by access."""
    return [_source(row) for row in connection.execute(_statement()).mappings()]


def _source(row: sa.RowMapping) -> SourceCompleteness:
    return SourceCompleteness(
        **{name: row[name] for name in SourceCompleteness.__slots__ if name != "reasons"},
        reasons=tuple(Reason(**reason) for reason in row["reasons"] or ()),
    )


def _statement() -> sa.Select[Any]:
    states = _states().cte("states")
    counted = _counted(states).cte("counted")
    reasons = _reasons(states).cte("reasons")
    held = held_deletions.c

    def number(column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(column, 0)

    return (
        sa.select(
            sources.c.name.label("source"),
            sources.c.kind,
            *(
                number(counted.c[name]).label(name)
                for name in ("found", "indexed", "waiting", "empty", "quarantined", "tombstoned")
            ),
            reasons.c.reasons,
            number(held.lost).label("held"),
            number(held.scans).label("held_scans"),
            counted.c.oldest_pending,
            sources.c.acls_as_of.label("rights_as_of"),
        )
        .outerjoin(counted, counted.c.source_id == sources.c.id)
        .outerjoin(reasons, reasons.c.source_id == sources.c.id)
        .outerjoin(held_deletions, held.source_id == sources.c.id)
        .order_by(sources.c.name)
    )


def _states() -> sa.Select[Any]:
    """Return every object with its one state and since when it is due."""
    # An object is in when its last stage is done and every version that it shows is in the index.
    pending = (
        sa.select(sa.literal_column("1"))
        .select_from(version_sources.join(document_versions, document_versions.c.id == version_sources.c.version_id))
        .where(version_sources.c.source_object_id == _objects.id, document_versions.c.indexed_at.is_(None))
        .exists()
    )
    is_done = (
        sa.select(sa.literal_column("1"))
        .where(
            ingest_state.c.source_object_id == _objects.id,
            ingest_state.c.stage == LAST_STAGE,
            ingest_state.c.status == "done",
        )
        .exists()
    )
    queued_since = (
        sa.select(sa.func.min(index_outbox.c.created_at))
        .join(version_sources, version_sources.c.version_id == index_outbox.c.version_id)
        .where(version_sources.c.source_object_id == _objects.id, index_outbox.c.done_at.is_(None))
        .scalar_subquery()
    )
    state = sa.case(
        (_objects.deleted_at.is_not(None), "tombstoned"),
        (quarantine.c.error == EmptyFileError.__name__, "empty"),
        (quarantine.c.source_object_id.is_not(None), "quarantined"),
        (sa.and_(is_done, ~pending), "indexed"),
        else_="waiting",
    )
    return sa.select(
        _objects.source_id,
        state.label("state"),
        sa.func.coalesce(queued_since, _objects.created_at).label("since"),
        quarantine.c.stage,
        quarantine.c.error,
        quarantine.c.reason,
    ).outerjoin(quarantine, quarantine.c.source_object_id == _objects.id)


def _counted(states: sa.CTE) -> sa.Select[Any]:
    def of(state: str) -> sa.ColumnElement[int]:
        return sa.func.count().filter(states.c.state == state).label(state)

    return sa.select(
        states.c.source_id,
        sa.func.count().filter(states.c.state != "tombstoned").label("found"),
        *(of(state) for state in ("indexed", "waiting", "empty", "quarantined", "tombstoned")),
        sa.func.min(states.c.since).filter(states.c.state == "waiting").label("oldest_pending"),
    ).group_by(states.c.source_id)


def _reasons(states: sa.CTE) -> sa.Select[Any]:
    """Return the most frequent reasons of each source as a JSON array."""
    count = sa.func.count()
    grouped = (
        sa.select(
            states.c.source_id,
            states.c.stage,
            states.c.error,
            count.label("count"),
            sa.func.min(states.c.reason).label("example"),
            sa.func.row_number()
            .over(partition_by=states.c.source_id, order_by=(count.desc(), states.c.error, states.c.stage))
            .label("rank"),
        )
        .where(states.c.state == "quarantined")
        .group_by(states.c.source_id, states.c.stage, states.c.error)
        .subquery("grouped")
    )
    one = sa.func.jsonb_build_object(
        *(
            part
            for name in ("stage", "error", "count", "example")
            for part in (sa.literal_column(f"'{name}'"), grouped.c[name])
        )
    )
    listed = sa.func.jsonb_agg(pg.aggregate_order_by(one, grouped.c.rank), type_=pg.JSONB)
    return (
        sa.select(grouped.c.source_id, listed.label("reasons"))
        .where(grouped.c.rank <= TOP_REASONS)
        .group_by(grouped.c.source_id)
    )
