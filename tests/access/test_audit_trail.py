"""The audit trail as evidence: nothing in it changes, and what is changed nevertheless is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from shared.access import audit_trail
from shared.access.audit import AuditEntry, AuditHasher, insertion
from shared.db import migrate
from shared.db.tables.audit import audit_events, audit_seals
from shared.errors import InvalidRequestError, TransientError
from shared.types import Principal

HASHER = AuditHasher(b"a key of the audit trail")


@pytest.fixture
def engine(database_url: str):
    made = sa.create_engine(database_url)
    yield made
    made.dispose()


def add(engine: sa.Engine, number: int, *, at: datetime | None = None) -> None:
    entry = AuditEntry(action="search", subject="user:anna", principals=[Principal("user:anna")], outcome="allowed")
    with engine.begin() as connection:
        for _ in range(number):
            connection.execute(insertion(entry) if at is None else insertion(entry).values(at=at))


def verified(engine: sa.Engine, **options: Any) -> audit_trail.Verification:
    with engine.connect() as connection:
        return audit_trail.verify(connection, HASHER, **options)


def tampering(engine: sa.Engine, *statements: str) -> None:
    """Do what only somebody with all rights over the database can do."""
    with engine.begin() as connection:
        connection.execute(sa.text("set local session_replication_role = replica"))
        for statement in statements:
            connection.execute(sa.text(statement))


def test_a_chain_of_seals_covers_every_row_once(engine: sa.Engine) -> None:
    add(engine, 5)
    assert len(audit_trail.seal(engine, HASHER)) == 1
    assert audit_trail.seal(engine, HASHER) == []
    add(engine, 3)
    add(engine, 2, at=datetime(2020, 5, 31, 23, 59, tzinfo=UTC))
    months = [one.month for one in audit_trail.seal(engine, HASHER)]
    assert months == [date(2020, 5, 1), datetime.now(UTC).date().replace(day=1)]
    add(engine, 1)
    found = verified(engine)
    assert (found.seals, found.events, found.unsealed, found.dropped) == (3, 10, 1, 0)
    assert found.is_whole


@pytest.mark.parametrize("statement", ["update audit_events set subject = 'user:bernd'", "delete from audit_events"])
def test_a_row_is_neither_changed_nor_removed_by_its_owner(engine: sa.Engine, statement: str) -> None:
    add(engine, 1)
    audit_trail.seal(engine, HASHER)
    for table in ("audit_events", f"audit_events_{datetime.now(UTC):%Y_%m}"):
        with pytest.raises(sa.exc.DBAPIError, match="only added to"), engine.begin() as connection:
            connection.execute(sa.text(statement.replace("audit_events", table)))


@pytest.mark.parametrize("table", ["audit_events", "audit_events_rest", "audit_seals", "current"])
def test_nothing_is_emptied(engine: sa.Engine, table: str) -> None:
    name = f"audit_events_{datetime.now(UTC):%Y_%m}" if table == "current" else table
    with pytest.raises(sa.exc.DBAPIError, match="only added to"), engine.begin() as connection:
        connection.execute(sa.text(f"truncate {name}"))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("update audit_events set subject = 'user:x' where id = 3", "a row was changed"),
        ("update audit_events set detail = '{\"a\": 1}' where id = 3", "a row was changed"),
        ("update audit_events set at = at + interval '1 microsecond' where id = 3", "a row was changed"),
        ("delete from audit_events where id = 3", "3 rows where 4 were sealed"),
        ("delete from audit_seals where number = 1", "the seals 1 to 1 are gone"),
        ("update audit_seals set digest = repeat('a', 64) where number = 1", "a row was changed"),
        ("update audit_events set at = '2020-01-01' where id = 3", "3 rows where 4 were sealed"),
        (
            "insert into audit_events (id, at, action, subject, outcome) values (2, '2020-01-01', 'a', 'b', 'c')",
            "rows lie in the sealed ranges",
        ),
        ("update audit_seals set after_id = 5, until_id = 9 where number = 2", "begins behind id 5 instead of 4"),
    ],
)
def test_what_was_changed_in_the_database_is_found(engine: sa.Engine, statement: str, problem: str) -> None:
    add(engine, 4)
    audit_trail.seal(engine, HASHER)
    add(engine, 4)
    audit_trail.seal(engine, HASHER)
    assert verified(engine).is_whole
    tampering(engine, statement)
    found = verified(engine)
    assert not found.is_whole
    assert any(problem in fault.problem for fault in found.faults), found.faults


def test_seals_made_anew_without_the_key_do_not_fit(engine: sa.Engine) -> None:
    add(engine, 4)
    audit_trail.seal(engine, HASHER)
    tampering(engine, "delete from audit_events where id = 2", "delete from audit_seals")
    audit_trail.seal(engine, AuditHasher(b"another key, not the firm's"))
    assert not verified(engine).is_whole


def test_newest_seals_that_were_removed_are_found_by_a_noted_digest(engine: sa.Engine) -> None:
    add(engine, 4)
    audit_trail.seal(engine, HASHER)
    add(engine, 4)
    noted = audit_trail.seal(engine, HASHER)[-1].digest
    assert verified(engine, anchor=noted).is_whole
    tampering(engine, "delete from audit_seals where number = 2", "delete from audit_events where id > 4")
    assert verified(engine).is_whole
    assert not verified(engine, anchor=noted).is_whole


def test_a_row_that_is_written_while_sealing_is_sealed_once(engine: sa.Engine) -> None:
    entry = AuditEntry(action="search", subject="user:anna", principals=[], outcome="allowed")
    with engine.connect() as late:
        late.execute(insertion(entry))
        add(engine, 2)
        with pytest.raises(TransientError, match="next run"):
            audit_trail.seal(engine, HASHER)
        late.commit()
    audit_trail.seal(engine, HASHER)
    assert verified(engine).events == 3


def test_many_writers_and_two_that_seal(engine: sa.Engine) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            add(engine, 1)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        sealing = [threading.Thread(target=lambda: [audit_trail.seal(engine, HASHER) for _ in range(10)]) for _ in "ab"]
        for one in sealing:
            one.start()
        for one in sealing:
            one.join()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    audit_trail.seal(engine, HASHER)
    found = verified(engine)
    assert found.is_whole
    assert found.unsealed == 0


def test_the_export_holds_every_row_as_a_line(engine: sa.Engine) -> None:
    add(engine, 2, at=datetime(2020, 5, 1, tzinfo=UTC))
    add(engine, 3)
    with engine.connect() as connection:
        rows = [json.loads(line) for line in audit_trail.export(connection)]
        recent = list(audit_trail.export(connection, since=datetime(2021, 1, 1, tzinfo=UTC)))
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["at"] == "2020-05-01T00:00:00.000000+00:00"
    assert len(recent) == 3


def partition(engine: sa.Engine, month: date) -> None:
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.audit_partition(month)))


def test_old_months_are_dropped_whole_and_leave_a_record(engine: sa.Engine) -> None:
    for month in (date(2024, 1, 1), date(2024, 2, 1)):
        partition(engine, month)
        add(engine, 2, at=datetime(month.year, month.month, 15, tzinfo=UTC))
    with pytest.raises(InvalidRequestError, match="not sealed"):
        audit_trail.drop_expired(engine, keep_months=1, by="user:ilse", reason="rule 7", today=date(2024, 3, 15))
    audit_trail.seal(engine, HASHER)
    dropped = audit_trail.drop_expired(engine, keep_months=1, by="user:ilse", reason="rule 7", today=date(2024, 3, 15))
    assert dropped == ["audit_events_2024_01"]
    audit_trail.seal(engine, HASHER)
    found = verified(engine)
    assert found.is_whole
    assert (found.dropped, found.events) == (2, 3)
    with engine.connect() as connection:
        row = connection.execute(sa.select(audit_events).where(audit_events.c.action == "audit.retention")).one()
    assert row.detail == {"month": "2024-01-01", "events": 2, "from_id": 1, "to_id": 2, "reason": "rule 7"}


def test_a_month_that_is_missing_without_a_record_is_found(engine: sa.Engine) -> None:
    partition(engine, date(2024, 1, 1))
    add(engine, 2, at=datetime(2024, 1, 15, tzinfo=UTC))
    audit_trail.seal(engine, HASHER)
    tampering(engine, "drop table audit_events_2024_01")
    assert not verified(engine).is_whole


@pytest.mark.parametrize(("months", "reason"), [(0, "rule 7"), (3, " ")])
def test_a_retention_needs_a_month_and_a_reason(engine: sa.Engine, months: int, reason: str) -> None:
    with pytest.raises(InvalidRequestError):
        audit_trail.drop_expired(engine, keep_months=months, by="user:ilse", reason=reason)


def test_partitions_are_made_ahead_and_what_fits_none_is_kept(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        names = audit_trail.prepare(connection, date(2031, 11, 5))
    assert names == [f"audit_events_{month}" for month in ("2031_11", "2031_12", "2032_01", "2032_02")]
    add(engine, 1, at=datetime(2031, 12, 31, 23, 59, 59, tzinfo=UTC))
    add(engine, 1, at=datetime(2040, 1, 1, tzinfo=UTC))
    with engine.connect() as connection:
        places = connection.execute(sa.text("select tableoid::regclass::text from audit_events order by id")).scalars()
        assert list(places) == ["audit_events_2031_12", "audit_events_rest"]
        assert connection.execute(sa.select(audit_seals)).all() == []


def test_rows_of_before_are_kept_in_the_months_they_are_of(empty_database: Callable[[], str]) -> None:
    url = empty_database()
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        command.upgrade(migrate._configuration(connection), "0007")
        connection.execute(
            sa.text(
                "insert into audit_events (at, action, subject, outcome) values "
                "('2026-10-31 23:30+00', 'search', 'user:a', 'allowed'), (now(), 'search', 'user:b', 'allowed')"
            )
        )
    migrate.upgrade(url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text("select tableoid::regclass::text, subject from audit_events order by id"))
        assert [tuple(row) for row in rows] == [
            ("audit_events_2026_10", "user:a"),
            (f"audit_events_{datetime.now(UTC):%Y_%m}", "user:b"),
        ]
