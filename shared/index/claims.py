"""Who works on which entry of the index outbox, and what became of it.

A claim is a lease in the row itself, not a lock held while texts are embedded: a long transaction would hold back the
database's clean-up and the change log of scopes. A worker that dies lets its lease run out. No two workers hold a claim
on the same version, because of two writes at one external version the later would win, not the newer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.types import ChunkId, OutboxOperation, VersionId

_CLAIM_LOCK: Final = 0x6B695F696E646578
"""Advisory lock of the few milliseconds in which claims are made ("ki_index")."""
_FIRST_WAIT_S: Final = 5
_LONGEST_WAIT_S: Final = 3600
_MAX_ERROR_CHARS: Final = 4000

_outbox = index_outbox.c


@dataclass(frozen=True, slots=True)
class Claim:
    """All open entries of one version, taken together.

    `write_version` is the newest entry's id, the external version of every write; it counts entries that are done,
    because transactions need not commit in the order of their ids. `entries` are (id, attempts): a lease that ran out
    and was taken over has more attempts, and is no longer ours.
    """

    version_id: VersionId
    version_seq: int
    operation: OutboxOperation
    write_version: int
    entries: tuple[tuple[int, int], ...]
    stale_chunk_ids: frozenset[ChunkId]
    is_rewrite: bool
    """Whether rows of the version may be in the index already."""

    @property
    def attempts(self) -> int:
        """How often this has been tried, this time included."""
        return max(attempts for _, attempts in self.entries)

    @property
    def entry_ids(self) -> set[int]:
        """The ids of the entries."""
        return {entry for entry, _ in self.entries}


def claim(connection: sa.Connection, *, limit: int, lease_s: float) -> list[Claim]:
    """Return up to `limit` versions to work on, the oldest entry first; call in a transaction and commit at once.

    An entry is due when its time has come and no worker holds a lease on its version. A lease is an entry without
    error whose next try lies ahead.
    """
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CLAIM_LOCK)))
    other = index_outbox.alias("other")
    leased = sa.exists().where(
        other.c.version_id == _outbox.version_id,
        other.c.done_at.is_(None),
        other.c.attempts > 0,
        other.c.error.is_(None),
        other.c.next_try_at > sa.func.now(),
    )
    due = (
        sa.select(_outbox.id, _outbox.version_id)
        .where(_outbox.done_at.is_(None), _outbox.next_try_at <= sa.func.now(), ~leased)
        .order_by(_outbox.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    taken = (
        sa.update(index_outbox)
        .where(_outbox.done_at.is_(None), _outbox.version_id.in_(sa.select(due.c.version_id)))
        .values(attempts=_outbox.attempts + 1, error=None, next_try_at=sa.func.now() + _seconds(lease_s))
        .returning(*index_outbox.c)
    )
    by_version: dict[UUID, list[sa.Row[Any]]] = {}
    for row in sorted(connection.execute(taken), key=lambda one: one.id):
        by_version.setdefault(row.version_id, []).append(row)
    ever = _first_and_newest(connection, list(by_version))
    return [_claim(rows, *ever[version_id]) for version_id, rows in by_version.items()]


def renew(connection: sa.Connection, claims: Sequence[Claim], *, lease_s: float) -> list[Claim]:
    """Return the claims that are still ours, with a fresh lease."""
    ours = _renewed(connection, claims, next_try_at=sa.func.now() + _seconds(lease_s))
    return [one for one in claims if ours.issuperset(one.entry_ids)]


def finish(connection: sa.Connection, claims: Sequence[Claim]) -> None:
    """Mark the entries done, and each version indexed unless something newer is queued for it."""
    # Whoever queues a version holds its row. Waiting for it in a statement of its own lets the next one see the entry.
    versions = document_versions.c
    ours = versions.id.in_(sorted({one.version_id for one in claims}))
    connection.execute(sa.select(versions.id).where(ours).order_by(versions.id).with_for_update(key_share=True))
    done = _renewed(connection, claims, done_at=sa.func.now(), error=None)
    finished = sorted({one.version_id for one in claims if done.issuperset(one.entry_ids)})
    if not finished:
        return
    still_open = sa.exists().where(_outbox.version_id == versions.id, _outbox.done_at.is_(None))
    connection.execute(
        sa.update(document_versions).where(versions.id.in_(finished), ~still_open).values(indexed_at=sa.func.now())
    )


def fail(connection: sa.Connection, one: Claim, error: str) -> None:
    """Keep the entries with the error; they are due again after 5 s, 10 s, 20 s ... up to an hour."""
    wait_s = min(_FIRST_WAIT_S * 2 ** min(one.attempts - 1, 20), _LONGEST_WAIT_S)
    _renewed(connection, [one], error=error[:_MAX_ERROR_CHARS], next_try_at=sa.func.now() + _seconds(wait_s))


def _renewed(connection: sa.Connection, claims: Sequence[Claim], **values: Any) -> set[int]:
    """Set `values` on the entries whose claim is still ours; return their ids."""
    entries = [entry for one in claims for entry in one.entries]
    if not entries:
        return set()
    ours = sa.tuple_(_outbox.id, _outbox.attempts).in_(entries)
    changed = sa.update(index_outbox).where(ours, _outbox.done_at.is_(None)).values(**values).returning(_outbox.id)
    return set(connection.execute(changed).scalars())


def _first_and_newest(connection: sa.Connection, version_ids: Sequence[UUID]) -> dict[UUID, tuple[int, int]]:
    """Return the first and the newest entry that each version ever had."""
    if not version_ids:
        return {}
    bounds = (
        sa.select(_outbox.version_id, sa.func.min(_outbox.id), sa.func.max(_outbox.id))
        .where(_outbox.version_id.in_(sorted(version_ids)))
        .group_by(_outbox.version_id)
    )
    return {row[0]: (row[1], row[2]) for row in connection.execute(bounds)}


def _claim(rows: Sequence[sa.Row[Any]], first: int, newest: int) -> Claim:
    last = rows[-1]
    entries = tuple((row.id, row.attempts) for row in rows)
    return Claim(
        version_id=VersionId(last.version_id),
        version_seq=last.version_seq,
        operation=OutboxOperation(last.operation),
        write_version=newest,
        entries=entries,
        stale_chunk_ids=frozenset(ChunkId(chunk_id) for row in rows for chunk_id in row.stale_chunk_ids),
        is_rewrite=first < rows[0].id or any(attempts > 1 for _, attempts in entries),
    )


def _seconds(seconds: float) -> sa.ColumnElement[Any]:
    return sa.cast(sa.literal(f"{seconds} seconds"), pg.INTERVAL)
