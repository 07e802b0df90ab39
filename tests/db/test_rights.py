"""The roles of the database: what each may do is tried, and so is what it may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.access import audit_trail
from shared.access.audit import AuditEntry, AuditHasher, insertion
from shared.db import rights
from shared.db.migrate import upgrade
from shared.db.tables import metadata
from shared.errors import MisconfiguredError

DENIED = "permission denied"
HASHER = AuditHasher(b"a key of the audit trail")


@pytest.fixture(scope="module")
def database_url(make_database: Callable[[], str]) -> str:
    """One database for all of them: what is refused leaves nothing behind."""
    return make_database()


@pytest.fixture(scope="module")
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(database_url)
    yield made
    made.dispose()


def tried(engine: sa.Engine, role: str, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(f"set local role {role}"))
        connection.execute(sa.text(statement))


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (rights.APP, "update audit_events set subject = 'x'"),
        (rights.APP, "delete from audit_events"),
        (rights.APP, "truncate audit_events"),
        (rights.APP, "select * from audit_events"),
        (rights.APP, "insert into audit_seals values (1, now(), now(), 0, 1, 0, 'x')"),
        (
            rights.APP,
            "insert into project_grants (project_id, principal, effect) values (gen_random_uuid(), 'a', 'allow')",
        ),
        (rights.APP, "delete from project_grants"),
        (rights.APP, "delete from document_grants"),
        (rights.APP, "insert into source_group_members values (gen_random_uuid(), 'group:a', 'user:a')"),
        (rights.APP, "delete from principal_aliases"),
        (rights.APP, "insert into scope_log (kind) values ('everything')"),
        (rights.APP, "create table more (a int)"),
        (rights.APP, "alter table documents disable trigger all"),
        (rights.APP, "drop trigger audit_append_only on audit_events"),
        (rights.APP, "set session_replication_role = replica"),
        (rights.SYNC, "select text from chunks"),
        (rights.SYNC, "update documents set title = 'x'"),
        (rights.SYNC, "update source_objects set deleted_at = null"),
        (rights.SYNC, "update source_objects set path = 'x'"),
        (rights.SYNC, "delete from source_objects"),
        (rights.SYNC, "select * from audit_events"),
        (rights.SYNC, "delete from audit_events"),
        (rights.SYNC, "insert into version_sources values (gen_random_uuid(), gen_random_uuid())"),
        (rights.SYNC, "select audit_partition('2030-01-01')"),
        (rights.AUDITOR, "select text from chunks"),
        (rights.AUDITOR, "select title from documents"),
        (rights.AUDITOR, "select facts from document_versions"),
        (rights.AUDITOR, "select * from artifacts"),
        (rights.AUDITOR, "insert into audit_events (action, subject, outcome) values ('a', 'b', 'c')"),
        (rights.AUDITOR, "delete from audit_events"),
        (rights.AUDITOR, "delete from project_grants"),
        (rights.AUDITOR, "delete from audit_seals"),
    ],
)
def test_what_a_role_may_not_do_is_refused(engine: sa.Engine, role: str, statement: str) -> None:
    with pytest.raises(sa.exc.DBAPIError, match=rf"{DENIED}|must be owner"):
        tried(engine, role, statement)


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (rights.APP, "insert into audit_events (action, subject, outcome) values ('a', 'b', 'c')"),
        (rights.APP, "insert into projects (key, title) values ('a', 'A')"),
        (rights.APP, "select count(*) from project_grants"),
        (rights.APP, "select audit_partition('2030-01-01')"),
        (rights.SYNC, "insert into audit_events (action, subject, outcome) values ('a', 'b', 'c')"),
        (rights.SYNC, "delete from project_grants"),
        (rights.SYNC, "update source_objects set acl_state = 'known'"),
        (rights.AUDITOR, "select count(*) from audit_events"),
        (rights.AUDITOR, "select count(*) from project_grants"),
        (rights.AUDITOR, "select id, seq, sha256 from document_versions"),
    ],
)
def test_what_a_role_is_for_works(engine: sa.Engine, role: str, statement: str) -> None:
    tried(engine, role, statement)


def test_a_change_of_grants_is_logged_whoever_makes_it(engine: sa.Engine) -> None:
    project = uuid4()
    with engine.begin() as connection:
        connection.execute(sa.text("insert into projects (id, key, title) values (:id, 'n', 'N')"), {"id": project})
    tried(
        engine,
        rights.SYNC,
        f"insert into project_grants (project_id, principal, effect, granted_by, reason) "
        f"values ('{project}', 'user:a', 'deny', 'user:b', 'wall')",
    )
    with engine.connect() as connection:
        logged = connection.execute(sa.text("select kind from scope_log where target = :id"), {"id": project}).scalars()
        assert "project" in list(logged)


def test_the_auditor_seals_and_verifies_without_any_other_right(engine: sa.Engine, database_url: str) -> None:
    entry = AuditEntry(action="search", subject="user:anna", principals=[], outcome="allowed")
    with engine.begin() as connection:
        connection.execute(insertion(entry))
    auditor = sa.create_engine(database_url)
    sa.event.listen(auditor, "connect", _become_auditor)
    with auditor.begin() as connection:
        audit_trail.prepare(connection)
    assert len(audit_trail.seal(auditor, HASHER)) == 1
    with auditor.connect() as connection:
        assert audit_trail.verify(connection, HASHER).is_whole
    auditor.dispose()


def test_every_table_has_its_line() -> None:
    assert set(rights.RIGHTS) == set(metadata.tables)


def test_a_table_without_a_line_stops_the_migration(engine: sa.Engine) -> None:
    with pytest.raises(MisconfiguredError, match="says nothing about forgotten"), engine.begin() as connection:
        rights.apply(connection, {**metadata.tables, "forgotten": None})


def test_rights_that_were_given_by_hand_are_taken_back_by_the_next_migration(
    engine: sa.Engine, database_url: str
) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(f"grant select on chunks to {rights.AUDITOR}"))
    tried(engine, rights.AUDITOR, "select count(*) from chunks")
    upgrade(database_url)
    with pytest.raises(sa.exc.DBAPIError, match=DENIED):
        tried(engine, rights.AUDITOR, "select count(*) from chunks")


def _become_auditor(driver: Any, _record: Any) -> None:
    driver.cursor().execute(f"set role {rights.AUDITOR}")
    driver.commit()
