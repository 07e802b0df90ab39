"""The audit trail as evidence: sealed in a chain, verified, exported, and shortened by a rule that leaves a record.

A seal is `HMAC-SHA-256(key, previous digest || row || row ...)` over the rows of one month within a range of ids, each
row as JSON with sorted keys on a line of its own. Whoever changes, removes or slips in a sealed row must know the key;
whoever removes the newest seals is found by a digest that was noted elsewhere (`sealed` logs each one).

Rows are sealed once no transaction can still add one below the last: a lock that lets every writer finish is held for
the moment of reading the highest id.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from shared.access.audit import ALLOWED, AuditEntry, AuditHasher, insertion
from shared.db.engine import sqlstate
from shared.db.tables.audit import audit_events, audit_seals
from shared.errors import InvalidRequestError, TransientError
from shared.types import Principal

_log = logging.getLogger(__name__)

KEY_LABEL: Final = "audit seals"
_BEGINNING: Final = "0" * 64
_LOCK_WAIT_MS: Final = 2_000
_NOT_GRANTED: Final = "55P03"
_PAGE: Final = 5_000
_AHEAD_MONTHS: Final = 3
_SEAL_LOCK: Final = 0x6B690008  # any constant that no other lock takes
_REST: Final = "audit_events_rest"


@dataclass(frozen=True, slots=True)
class Seal:
    """One link of the chain: the rows of `month` (its first day, UTC) with after_id < id <= until_id."""

    number: int
    month: date
    after_id: int
    until_id: int
    events: int
    digest: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What does not fit: the seal, and what is wrong with it or with its rows."""

    seal: int
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked. `dropped` counts rows that a recorded retention removed; `unsealed` rows wait for a seal."""

    seals: int
    events: int
    dropped: int
    unsealed: int
    last_digest: str
    faults: tuple[Fault, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing was changed, removed or slipped in."""
        return not self.faults


def prepare(connection: sa.Connection, today: date | None = None) -> list[str]:
    """Make the partitions of this month and the next ones, and return their names."""
    first = (today or datetime.now(UTC).date()).replace(day=1)
    months = [_later(first, number) for number in range(_AHEAD_MONTHS + 1)]
    return [connection.execute(sa.select(sa.func.audit_partition(month))).scalar_one() for month in months]


def seal(engine: sa.Engine, hasher: AuditHasher) -> list[Seal]:
    """Seal every row that is not sealed yet and return the new seals.

    Raises `TransientError` when a writer does not finish in time; nothing is sealed then, and nothing is lost.
    """
    key = hasher.derived_key(KEY_LABEL)
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SEAL_LOCK)))
        last = _last_seal(connection)
        after = last.until_id if last else 0
        highest = _highest_final_id(engine)
        made: list[Seal] = []
        if highest > after:
            previous = last.digest if last else _BEGINNING
            number = last.number if last else 0
            for month in _months(connection, after, highest):
                number += 1
                digest, events = _digest(connection, key, previous, _Range(month, after, highest))
                made.append(Seal(number, month, after, highest, events, digest))
                previous = digest
            connection.execute(sa.insert(audit_seals), [asdict(one) for one in made])
    for one in made:
        # Where logs go, the database's owner has no hand: a chain cut short there is found by this line.
        _log.info("audit_sealed", extra={"seal": one.number, "until_id": one.until_id, "digest": one.digest})
    return made


def verify(
    connection: sa.Connection,
    hasher: AuditHasher,
    *,
    anchor: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verification:
    """Compute every seal anew and return what does not fit. `anchor` is a digest that must be one of the chain's."""
    key = hasher.derived_key(KEY_LABEL)
    faults: list[Fault] = []
    dropped = {one for _, one in _dropped_months(connection)}
    previous, events, gone, number = _BEGINNING, 0, 0, 0
    before = _Range(date.min, 0, 0)
    digests: set[str] = set()
    for one in _seals(connection):
        if one.number != number + 1:
            faults.append(Fault(one.number, f"the seals {number + 1} to {one.number - 1} are gone"))
        here = _Range(one.month, one.after_id, one.until_id)
        # The months of one run share their range; else each begins where the last one ended.
        if here[1:] != before[1:] and here.after_id != before.until_id:
            faults.append(Fault(one.number, f"begins behind id {here.after_id} instead of {before.until_id}"))
        if one.month in dropped:
            # Its rows cannot be read any more; the links before and behind it still are.
            gone += one.events
        else:
            digest, found = _digest(connection, key, previous, here)
            events += found
            if digest != one.digest:
                detail = "a row was changed" if found == one.events else f"{found} rows where {one.events} were sealed"
                faults.append(Fault(one.number, f"{one.month:%Y-%m}, ids to {one.until_id}: {detail}"))
        previous, before, number = one.digest, here, one.number
        digests.add(one.digest)
        if progress is not None:
            progress(one.number)
    if anchor is not None and anchor not in digests:
        faults.append(Fault(number, "the noted digest is in no seal: the newest seals were removed or made anew"))
    sealed = sa.func.count().filter(audit_events.c.id <= before.until_id)
    there, all_rows = connection.execute(sa.select(sealed, sa.func.count()).select_from(audit_events)).one()
    if there != events:
        faults.append(Fault(number, f"{there} rows lie in the sealed ranges, {events} of them were sealed"))
    return Verification(number, events, gone, all_rows - there, previous, tuple(faults))


def export(connection: sa.Connection, *, since: datetime | None = None, until: datetime | None = None) -> Iterator[str]:
    """Yield the rows as JSON, one a line, in the order of ids: exactly what was sealed."""
    bounds = []
    if since is not None:
        bounds.append(audit_events.c.at >= since)
    if until is not None:
        bounds.append(audit_events.c.at < until)
    yield from _lines(connection, *bounds)


def drop_expired(engine: sa.Engine, *, keep_months: int, by: str, reason: str, today: date | None = None) -> list[str]:
    """Drop the months before the last `keep_months` whole ones and return their names. Each leaves an audit row.

    Raises `InvalidRequestError` without a reason, for less than one month, or while rows of such a month are unsealed.
    """
    if keep_months < 1:
        raise InvalidRequestError("keep_months: at least one whole month is kept")
    if not reason.strip():
        raise InvalidRequestError("reason: say by which rule the months are dropped")
    first = _later((today or datetime.now(UTC).date()).replace(day=1), -keep_months)
    dropped: list[str] = []
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SEAL_LOCK)))
        last = _last_seal(connection)
        for name, month in _partitions(connection):
            if month >= first:
                continue
            table = sa.table(name, sa.column("id"))
            count, lowest, highest = connection.execute(
                sa.select(sa.func.count(), sa.func.min(table.c.id), sa.func.max(table.c.id))
            ).one()
            if count and (last is None or highest > last.until_id):
                raise InvalidRequestError(f"{month:%Y-%m} holds rows that are not sealed; run ki audit seal first")
            connection.execute(sa.text(f"drop table {name}"))  # a name that PostgreSQL gave us
            detail = {"month": month.isoformat(), "events": count, "from_id": lowest, "to_id": highest}
            entry = AuditEntry(
                action="audit.retention",
                subject=by,
                principals=[Principal(by)],
                outcome=ALLOWED,
                detail={**detail, "reason": reason},
            )
            connection.execute(insertion(entry))
            dropped.append(name)
    return dropped


def _highest_final_id(engine: sa.Engine) -> int:
    """Return the highest id below which no row can still appear, 0 without rows."""
    try:
        with engine.begin() as connection:
            # The lock lasts as long as this transaction.
            return int(connection.execute(sa.select(sa.func.audit_final_id(_LOCK_WAIT_MS))).scalar_one())
    except sa.exc.DBAPIError as error:
        if sqlstate(error) != _NOT_GRANTED:
            raise
        raise TransientError("a transaction holds the audit trail open; the rows are sealed by the next run") from error


class _Range(NamedTuple):
    """What one seal stands for."""

    month: date
    after_id: int
    until_id: int


def _digest(connection: sa.Connection, key: bytes, previous: str, sealed: _Range) -> tuple[str, int]:
    """Return the digest over the rows of a range, and how many there are."""
    made, events = hmac.new(key, previous.encode(), hashlib.sha256), 0
    within = (audit_events.c.id > sealed.after_id, audit_events.c.id <= sealed.until_id, *_within(sealed.month))
    for line in _lines(connection, *within):
        made.update(line.encode())
        made.update(b"\n")
        events += 1
    return made.hexdigest(), events


def _lines(connection: sa.Connection, *bounds: sa.ColumnElement[bool]) -> Iterator[str]:
    last = 0
    while True:
        page = sa.select(audit_events).where(audit_events.c.id > last, *bounds).order_by(audit_events.c.id).limit(_PAGE)
        rows = connection.execute(page).mappings().all()
        for row in rows:
            yield _line(row)
        if len(rows) < _PAGE:
            return
        last = rows[-1]["id"]


def _line(row: Any) -> str:
    plain = {**row, "at": row["at"].astimezone(UTC).isoformat(timespec="microseconds")}
    return json.dumps(plain, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _months(connection: sa.Connection, after: int, until: int) -> list[date]:
    """Return the months of the rows in a range of ids; at least one, so that every range has its seal."""
    month = sa.func.date_trunc("month", sa.func.timezone("UTC", audit_events.c.at))
    found = sa.select(sa.cast(month, sa.Date).label("month")).where(
        audit_events.c.id > after, audit_events.c.id <= until
    )
    return sorted(connection.execute(found.distinct()).scalars())


def _within(month: date) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    first, behind = (datetime(one.year, one.month, 1, tzinfo=UTC) for one in (month, _later(month, 1)))
    return audit_events.c.at >= first, audit_events.c.at < behind


def _last_seal(connection: sa.Connection) -> Seal | None:
    columns = [audit_seals.c[name] for name in Seal.__slots__]
    row = connection.execute(sa.select(*columns).order_by(audit_seals.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else Seal(*row)


def _seals(connection: sa.Connection) -> Iterator[Seal]:
    columns = [audit_seals.c[name] for name in Seal.__slots__]
    for row in connection.execute(sa.select(*columns).order_by(audit_seals.c.number)).all():
        yield Seal(*row)


def _dropped_months(connection: sa.Connection) -> list[tuple[int, date]]:
    """Return the months that a retention removed, by the rows that say so."""
    rows = connection.execute(
        sa.select(audit_events.c.id, audit_events.c.detail["month"].astext).where(
            audit_events.c.action == "audit.retention"
        )
    )
    return [(number, date.fromisoformat(month)) for number, month in rows]


def _partitions(connection: sa.Connection) -> list[tuple[str, date]]:
    """Return the partitions of single months with their first day, oldest first."""
    rows = connection.execute(
        sa.text("select inhrelid::regclass::text from pg_inherits where inhparent = 'audit_events'::regclass")
    ).scalars()
    months = [(name, name.rpartition("audit_events_")[2]) for name in rows if not name.endswith(_REST)]
    return sorted(((name, date(int(m[:4]), int(m[5:7]), 1)) for name, m in months), key=lambda one: one[1])


def _later(month: date, number: int) -> date:
    index = month.year * 12 + month.month - 1 + number
    return date(index // 12, index % 12 + 1, 1)
