"""What sources report about rights: whole, in order, and each message in one transaction with its audit row."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from shared.access.caller import Caller
from shared.access.snapshots import MAX_OBJECTS, AclSnapshot, MembershipSnapshot, schemas
from shared.access.sync import AccessSync
from shared.db.engine import make_engine
from shared.db.tables.access import scope_log, source_group_members, source_object_grants
from shared.db.tables.audit import audit_events
from shared.db.tables.sources import source_objects, sources
from shared.errors import ConflictError, InvalidRequestError, NotVisibleError
from shared.settings import load_settings
from shared.types import Principal

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ROBOT = Caller("robot", frozenset({Principal("user:robot"), Principal("role:sync")}))


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    yield made
    made.dispose()


@pytest.fixture
def source(engine: sa.Engine) -> UUID:
    source_id, outer = uuid4(), uuid4()
    rows = [
        {"id": outer, "external_id": "mail", "path": "post/mail.eml", "name": "mail.eml"},
        {"external_id": "brief", "path": "post/Ku\u0308ndigung.txt".replace("u\u0308", "ü"), "name": "b.txt"},
    ]
    with engine.begin() as connection:
        connection.execute(sa.insert(sources).values(id=source_id, name="dms", kind="external"))
        for row in rows:
            connection.execute(sa.insert(source_objects).values(source_id=source_id, **row))
        connection.execute(
            sa.insert(source_objects).values(
                source_id=source_id, parent_id=outer, external_id="mail!/1", path="post/mail.eml/a.txt", name="a.txt"
            )
        )
    return source_id


def acl(*objects: dict[str, Any], as_of: datetime = NOW, **changes: Any) -> AclSnapshot:
    return AclSnapshot.model_validate({"as_of": as_of, "complete": True, "objects": list(objects), **changes})


def members(*groups: tuple[str, list[str]], as_of: datetime = NOW) -> MembershipSnapshot:
    listed = [{"group": group, "members": names} for group, names in groups]
    return MembershipSnapshot.model_validate({"as_of": as_of, "complete": True, "groups": listed})


def one(external_id: str, *principals: str) -> dict[str, Any]:
    return {"external_id": external_id, "entries": [{"principal": principal} for principal in principals]}


def grants(engine: sa.Engine, source: UUID) -> dict[str, list[str]]:
    with engine.connect() as connection:
        rows = connection.execute(
            sa.select(source_objects.c.external_id, source_object_grants.c.principal)
            .join(source_object_grants, source_object_grants.c.source_object_id == source_objects.c.id)
            .order_by(source_objects.c.external_id, source_object_grants.c.principal)
        )
        found: dict[str, list[str]] = {}
        for external_id, principal in rows:
            found.setdefault(external_id, []).append(principal.replace(f"src.{source}.", ""))
        return found


def count(engine: sa.Engine, table: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_objects_get_the_acl_that_is_reported_and_what_is_in_them_too(engine: sa.Engine, source: UUID) -> None:
    report = AccessSync(engine).acls(
        ROBOT, str(source), acl(one("mail", "user:a@x.example", "group:team"), one("brief"))
    )
    assert report == {"changed": 2, "unchanged": 0, "warnings": []}
    rights = ["group:team", "user:a@x.example"]
    assert grants(engine, source) == {"mail": rights, "mail!/1": rights}


def test_the_same_snapshot_again_writes_nothing(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    sync.acls(ROBOT, str(source), acl(one("mail", "user:a@x.example")))
    sync.memberships(ROBOT, str(source), members(("group:team", ["user:a@x.example"])))
    logged = count(engine, scope_log)
    later = NOW + timedelta(hours=1)
    again = sync.acls(ROBOT, str(source), acl(one("mail", "user:a@x.example"), as_of=later))
    assert again == {"changed": 0, "unchanged": 1, "warnings": []}
    assert sync.memberships(ROBOT, str(source), members(("group:team", ["user:a@x.example"]), as_of=later)) == {
        "changed": 0,
        "unchanged": 1,
        "warnings": [],
    }
    assert count(engine, scope_log) == logged


def test_an_object_is_found_by_its_path_in_either_unicode_form(engine: sa.Engine, source: UUID) -> None:
    named = {"path": "post/Ku\u0308ndigung.txt", "entries": [{"principal": "user:a@x.example"}]}
    AccessSync(engine).acls(ROBOT, str(source), acl(named))
    assert grants(engine, source) == {"brief": ["user:a@x.example"]}


def test_an_acl_that_could_not_be_read_closes_the_object(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    sync.acls(ROBOT, str(source), acl(one("mail", "user:a@x.example")))
    later = NOW + timedelta(seconds=1)
    report = sync.acls(ROBOT, str(source), acl({"external_id": "mail", "entries": None}, as_of=later))
    assert report["changed"] == 1
    assert "unreadable" in report["warnings"][0]
    assert grants(engine, source) == {}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([one("nowhere")], "no object 'nowhere'"),
        ([one("mail!/1", "user:a@x.example")], "lies in another file"),
        ([one("mail"), one("mail")], "stands there twice"),
        ([one("mail"), {"path": "post/mail.eml", "entries": []}], "by its id and its path"),
    ],
)
def test_a_snapshot_that_means_something_else_is_refused_whole(
    engine: sa.Engine, source: UUID, objects: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        AccessSync(engine).acls(ROBOT, str(source), acl(one("brief", "user:a@x.example"), *objects))
    assert grants(engine, source) == {}
    assert count(engine, audit_events) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"as_of": "2026-01-01T00:00:00Z", "objects": []}, "complete"),
        ({"as_of": "2026-01-01T00:00:00Z", "complete": False, "objects": []}, "complete"),
        ({"as_of": "2026-01-01T00:00:00", "complete": True, "objects": []}, "as_of"),
        ({"as_of": "2026-01-01T00:00:00Z", "complete": True, "objects": [{"external_id": "a"}]}, "entries"),
        ({"as_of": "2026-01-01T00:00:00Z", "complete": True, "objects": [{"entries": []}]}, "objects"),
        (
            {
                "as_of": "2026-01-01T00:00:00Z",
                "complete": True,
                "objects": [{"external_id": "a", "entries": [{"principal": "user:a", "effect": "maybe"}]}],
            },
            "effect",
        ),
        ({"as_of": "2026-01-01T00:00:00Z", "complete": True, "objects": [], "colour": 1}, "colour"),
        ({"as_of": "2026-01-01T00:00:00Z", "complete": True, "objects": [one("a")] * (MAX_OBJECTS + 1)}, "objects"),
    ],
)
def test_a_message_that_is_not_whole_is_refused(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AclSnapshot.model_validate(body)
    assert field in str(caught.value)


def test_an_older_snapshot_never_comes_back_into_force(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    sync.acls(ROBOT, str(source), acl(one("mail"), as_of=NOW))
    sync.memberships(ROBOT, str(source), members(("group:team", []), as_of=NOW))
    sync.memberships(ROBOT, str(source), members(("group:team", ["user:a"]), as_of=NOW))
    earlier = NOW - timedelta(seconds=1)
    with pytest.raises(ConflictError, match="is in force"):
        sync.acls(ROBOT, str(source), acl(one("mail", "user:a@x.example"), as_of=earlier))
    with pytest.raises(ConflictError, match="is in force"):
        sync.memberships(ROBOT, str(source), members(as_of=earlier))
    assert grants(engine, source) == {}


def test_a_time_ahead_is_refused_because_it_would_outlive_every_later_one(engine: sa.Engine, source: UUID) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(InvalidRequestError, match="future"):
        AccessSync(engine).acls(ROBOT, str(source), acl(one("mail"), as_of=ahead))


def test_an_empty_list_of_groups_revokes(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    sync.memberships(ROBOT, str(source), members(("group:team", ["user:a", "user:b"])))
    sync.memberships(ROBOT, str(source), members(as_of=NOW + timedelta(seconds=1)))
    assert count(engine, source_group_members) == 0


def test_a_group_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="stands there twice"):
        members(("group:team", ["user:a"]), ("group:team", ["user:b"]))


@pytest.mark.parametrize("source_id", [str(uuid4()), "dms", "../x", ""])
def test_an_unknown_source_is_not_there(engine: sa.Engine, source_id: str) -> None:
    with pytest.raises(NotVisibleError):
        AccessSync(engine).acls(ROBOT, source_id, acl())


def test_every_message_leaves_one_audit_row(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    sync.acls(ROBOT, str(source), acl(one("mail", "user:a@x.example"), one("brief", "nobody")), correlation_id="c-1")
    with engine.connect() as connection:
        [row] = connection.execute(sa.select(audit_events)).all()
    assert (row.action, row.subject, row.correlation_id) == ("access.acl", "robot", "c-1")
    assert row.detail == {
        "source_id": str(source),
        "as_of": NOW.isoformat(),
        "changed": 2,
        "unchanged": 0,
        "warnings": 1,
    }


def test_of_two_senders_at_once_the_newer_one_wins(engine: sa.Engine, source: UUID) -> None:
    sync = AccessSync(engine)
    barrier = threading.Barrier(2)
    refused = []

    def send(as_of: datetime, *principals: str) -> None:
        barrier.wait()
        try:
            sync.acls(ROBOT, str(source), acl(one("mail", *principals), as_of=as_of))
        except ConflictError:
            refused.append(as_of)

    for round_number in range(10):
        older, newer = (NOW + timedelta(minutes=2 * round_number + step) for step in (0, 1))
        threads = [
            threading.Thread(target=send, args=(older, f"user:old{round_number}")),
            threading.Thread(target=send, args=(newer, f"user:new{round_number}")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert grants(engine, source)["mail"] == [f"user:new{round_number}"]


def test_a_hundred_thousand_members_come_in_one_message(engine: sa.Engine, source: UUID) -> None:
    names = [f"user:u{number}@x.example" for number in range(100_000)]
    report = AccessSync(engine).memberships(ROBOT, str(source), members(("group:all", names)))
    assert report["changed"] == 1
    assert count(engine, source_group_members) == 100_000


def test_the_published_schemas_say_what_is_needed() -> None:
    assert set(schemas()["AclSnapshot"]["required"]) == {"as_of", "complete", "objects"}
    assert set(schemas()["MembershipSnapshot"]["required"]) == {"as_of", "complete", "groups"}
