"""How a kept scope learns what has changed: the state of the database, and the log rows that a snapshot has not seen.

A snapshot has seen a transaction that began before `xmax` and was not among `xip`, those still running. Ids or clock
times would not do: a transaction that began earlier may commit later.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from shared.db.tables.access import scope_epoch, scope_log
from shared.db.tables.base import PgSnapshot

EVERYTHING = "everything"
_log = scope_log.c


def database_state(name: str = "state") -> sa.CTE:
    """Return a CTE of one row: `snapshot` now, `epoch`, `is_clean`, `floor`.

    `epoch` names this life of the database; null on a standby, whose snapshots list no running transactions.
    `is_clean`: this transaction has written nothing that could still be rolled back. A kept scope is worth nothing
    in another epoch, or when the log was pruned past its snapshot (`floor`).
    """
    row = sa.select(scope_epoch.c.token).scalar_subquery()
    control = sa.func.pg_control_system().table_valued(sa.column("system_identifier", sa.BigInteger))
    system = sa.select(sa.cast(control.c.system_identifier, sa.Text)).scalar_subquery()
    # A promoted standby shows its new timeline here at once; pg_control_checkpoint would only after a while.
    timeline = sa.func.substr(sa.func.pg_walfile_name(sa.func.pg_current_wal_lsn()), 1, 8)
    database = (
        sa.select(sa.literal_column("oid::text"))
        .select_from(sa.table("pg_database", sa.column("datname")))
        .where(sa.literal_column("datname") == sa.func.current_database())
        .scalar_subquery()
    )
    slash: sa.ColumnElement[str] = sa.literal_column("'/'")
    epoch = sa.func.concat(system, slash, timeline, slash, database, slash, sa.cast(row, sa.Text), type_=sa.Text)
    writable = sa.and_(sa.not_(sa.func.pg_is_in_recovery()), sa.exists().select_from(scope_epoch))
    return (
        sa.select(
            sa.func.pg_current_snapshot(type_=PgSnapshot).label("snapshot"),
            sa.case((writable, epoch), else_=sa.null()).label("epoch"),
            sa.func.pg_current_xact_id_if_assigned().is_(None).label("is_clean"),
            sa.select(scope_epoch.c.floor).scalar_subquery().label("floor"),
        )
        .cte(name)
        .prefix_with("MATERIALIZED")
    )


def is_within_log(snapshot: Any, state: sa.CTE) -> sa.ColumnElement[bool]:
    """Return: the log still holds everything that this snapshot has not seen."""
    return sa.func.pg_snapshot_xmin(snapshot) >= state.c.floor


def unseen_rows(snapshot: Any, source: Any, concerned: sa.ColumnElement[bool], limit: Any, name: str) -> sa.CTE:
    """Return a CTE `kind`, `target`, `seq`: log rows that `snapshot` (a column of `source`) has not seen.

    `concerned` is a condition on the log row's principal. At most about `limit` rows; ordering by transaction makes
    it a walk along the index from its end, however long the log is.
    """
    columns = (_log.kind, _log.target, _log.seq)
    later = (
        sa.select(*columns)
        .where(_log.xid >= sa.func.pg_snapshot_xmax(snapshot), concerned)
        .order_by(_log.xid)
        .limit(limit)
        .correlate(source)
        .lateral(f"{name}_later")
    )
    running = (
        _still_running(snapshot)
        .table_valued(sa.column("xid"), name=f"{name}_running")
        .render_derived()
        .lateral(f"{name}_running")
    )
    late = (
        sa.select(*columns)
        .where(_log.xid == running.c.xid, concerned)
        .limit(limit)
        .correlate(source, running)
        .lateral(f"{name}_late")
    )
    true = sa.true()
    return sa.union_all(
        sa.select(later.c.kind, later.c.target, later.c.seq).select_from(source.join(later, true)),
        sa.select(late.c.kind, late.c.target, late.c.seq).select_from(source.join(running, true).join(late, true)),
    ).cte(name)


def _still_running(snapshot: Any) -> sa.Function[Any]:
    """Return the transactions that had begun before the snapshot and were not finished: it has not seen them."""
    return sa.func.pg_snapshot_xip(snapshot)
