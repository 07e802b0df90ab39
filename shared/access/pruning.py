"""Keep the change log and the table of kept scopes short."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from shared.db.tables.access import kept_scopes, scope_epoch, scope_log


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows went."""

    log_rows: int
    scopes: int


def prune(connection: sa.Connection, *, keep_log_rows: int, keep_scopes: int) -> Pruned:
    """Delete log rows beyond the newest `keep_log_rows` and kept scopes beyond the last used `keep_scopes`.

    Run it in a transaction of its own. A scope whose snapshot needs a deleted row is compiled anew; the floor that
    says so moves in the same statement. The floor never passes a transaction that still runs: its rows may come,
    and every scope kept meanwhile would be cold at once.
    """
    log = scope_log.c
    wanted = sa.select(log.xid).order_by(log.xid.desc()).offset(keep_log_rows).limit(1).cte("wanted")
    xmin = sa.func.pg_snapshot_xmin(sa.func.pg_current_snapshot())
    # The row at the offset goes with its whole transaction: the floor is the transaction after it.
    later = log.xid > sa.select(wanted.c.xid).scalar_subquery()
    after = sa.select(log.xid).where(later).order_by(log.xid).limit(1).scalar_subquery()
    floor = sa.func.least(sa.func.coalesce(after, xmin), xmin)
    moved = (
        sa.update(scope_epoch)
        .where(sa.exists().select_from(wanted))
        .values(floor=sa.func.greatest(scope_epoch.c.floor, floor))
        .returning(scope_epoch.c.floor)
        .cte("moved")
    )
    deleted = (
        sa.delete(scope_log)
        .where(log.xid < sa.select(moved.c.floor).scalar_subquery())
        .returning(log.id)
        .cte("deleted")
    )
    log_rows = connection.scalar(sa.select(sa.func.count()).select_from(deleted))
    scopes = connection.execute(
        sa.delete(kept_scopes).where(
            sa.or_(
                sa.func.pg_snapshot_xmin(kept_scopes.c.snapshot) < sa.select(scope_epoch.c.floor).scalar_subquery(),
                kept_scopes.c.key.in_(
                    sa.select(kept_scopes.c.key)
                    .order_by(kept_scopes.c.used_at.desc(), kept_scopes.c.key)
                    .offset(keep_scopes)
                ),
            )
        )
    )
    return Pruned(log_rows or 0, scopes.rowcount)
