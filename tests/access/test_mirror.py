from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from shared.access.mirror import MAX_ENTRIES, UnreadableAcl, replace_memberships, replace_object_acl
from shared.db.tables.access import scope_log, source_group_members, source_object_grants
from shared.db.tables.sources import source_objects
from shared.errors import NotVisibleError
from shared.types import Effect, SourceId, SourceObjectId
from tests.access.world import World, allow, id_of, sees, write

NOW = datetime(2026, 12, 1, tzinfo=UTC)
OBJECT, SOURCE = SourceObjectId(id_of("object/o")), SourceId(id_of("source/dms"))
ALLOW, DENY = Effect.ALLOW, Effect.DENY


@pytest.fixture
def world(connection: sa.Connection) -> World:
    made = World().source("dms", "external").document("d", None, allow("user:lokal")).file("o", "dms", "d")
    write(connection, made)
    return made


def logged(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(scope_log)) or 0


def test_a_snapshot_replaces_the_one_before(connection: sa.Connection, world: World) -> None:
    first = replace_object_acl(connection, OBJECT, [("User:Anna", ALLOW), ("user:ben", ALLOW)], as_of=NOW)
    assert (first.added, first.removed, first.changed) == (2, 0, True)
    assert sees(connection, world, "user:anna") == {"o"}
    second = replace_object_acl(connection, OBJECT, [("user:ben", ALLOW), ("user:cem", DENY)], as_of=NOW)
    assert (second.added, second.removed) == (1, 1)
    assert sees(connection, world, "user:anna") == set()
    assert sees(connection, world, "user:ben") == {"o"}
    assert sees(connection, world, "user:ben", "user:cem") == set()


def test_an_identical_snapshot_writes_nothing(connection: sa.Connection, world: World) -> None:
    entries = [("user:anna", ALLOW), ("group:partner", ALLOW), ("", ALLOW)]
    replace_object_acl(connection, OBJECT, entries, as_of=NOW)
    before = logged(connection), connection.scalar(sa.select(source_objects.c.acl_as_of))
    again = replace_object_acl(connection, OBJECT, [*entries, ("USER:ANNA", ALLOW)], as_of=datetime.now(UTC))
    assert not again.changed
    assert (logged(connection), connection.scalar(sa.select(source_objects.c.acl_as_of))) == before


def test_an_empty_snapshot_is_honoured(connection: sa.Connection, world: World) -> None:
    replace_object_acl(connection, OBJECT, [("user:anna", ALLOW)], as_of=NOW)
    assert replace_object_acl(connection, OBJECT, [], as_of=NOW).removed == 1
    assert sees(connection, world, "user:anna") == set()
    assert sees(connection, world, "role:admin") == {"o"}


def test_the_first_empty_snapshot_makes_an_unknown_acl_known(connection: sa.Connection, world: World) -> None:
    assert replace_object_acl(connection, OBJECT, [], as_of=NOW).changed
    assert not replace_object_acl(connection, OBJECT, [], as_of=NOW).changed
    assert connection.scalar(sa.select(source_objects.c.acl_state)) == "known"


@pytest.mark.parametrize(
    ("entries", "warning"),
    [
        (UnreadableAcl("access denied"), "access denied"),
        ([(f"user:n{n}", ALLOW) for n in range(MAX_ENTRIES + 1)], "too large"),
        ([("user:anna", ALLOW), ("domain:kanzlei", DENY)], "domain:kanzlei"),
    ],
    ids=["unreadable", "too large", "a deny nobody understands"],
)
def test_what_cannot_be_trusted_whole_closes_the_object_with_a_warning(
    connection: sa.Connection, world: World, entries: object, warning: str
) -> None:
    replace_object_acl(connection, OBJECT, [("user:anna", ALLOW)], as_of=NOW)
    outcome = replace_object_acl(connection, OBJECT, entries, as_of=NOW)  # type: ignore[arg-type]
    assert warning in outcome.warnings[0]
    assert sees(connection, world, "user:anna") == set()
    assert connection.scalar(sa.select(source_objects.c.acl_state)) == "known"
    assert warning in connection.scalar(sa.select(source_objects.c.acl_warning))
    assert not replace_object_acl(connection, OBJECT, entries, as_of=NOW).changed  # type: ignore[arg-type]


def test_an_allow_nobody_understands_is_left_out_with_a_warning(connection: sa.Connection, world: World) -> None:
    outcome = replace_object_acl(connection, OBJECT, [("domain:x", ALLOW), ("user:anna", ALLOW)], as_of=NOW)
    assert outcome.added == 1
    assert "domain:x" in outcome.warnings[0]


def test_groups_of_a_snapshot_are_qualified_on_both_sides(connection: sa.Connection, world: World) -> None:
    replace_object_acl(connection, OBJECT, [("group:Partner", ALLOW), ("group:praktikum", DENY)], as_of=NOW)
    edges = [("group:partner", "user:Anna"), ("group:partner", "user:ben"), ("group:praktikum", "group:neu")]
    assert replace_memberships(connection, SOURCE, [*edges, ("group:neu", "user:ben")], as_of=NOW).added == 4
    stored = connection.scalars(sa.select(source_object_grants.c.principal)).all()
    assert set(stored) == {f"group:src.{SOURCE}.partner", f"group:src.{SOURCE}.praktikum"}
    assert sees(connection, world, "user:anna") == {"o"}
    assert sees(connection, world, "user:ben") == set()
    assert sees(connection, world, "group:partner") == set()


def test_memberships_are_replaced_as_a_whole_and_an_empty_snapshot_revokes(
    connection: sa.Connection, world: World
) -> None:
    edges = [("group:g", f"user:n{n}") for n in range(3000)]
    assert replace_memberships(connection, SOURCE, edges, as_of=NOW).added == 3000
    again = replace_memberships(connection, SOURCE, [*reversed(edges), edges[0]], as_of=NOW)
    assert (again.added, again.removed, again.changed) == (0, 0, False)
    change = replace_memberships(connection, SOURCE, [*edges[1:], ("group:h", "user:neu")], as_of=NOW)
    assert (change.added, change.removed) == (1, 1)
    assert replace_memberships(connection, SOURCE, [], as_of=NOW).removed == 3000
    assert connection.execute(sa.select(source_group_members)).all() == []


def test_members_are_people_and_groups_only(connection: sa.Connection, world: World) -> None:
    outcome = replace_memberships(
        connection,
        SOURCE,
        [("group:g", "role:authenticated"), ("role:admin", "user:anna"), ("group:g", "anna"), ("group:g", "user:anna")],
        as_of=NOW,
    )
    assert outcome.added == 1
    assert len(outcome.warnings) == 3


def test_another_source_keeps_its_memberships(connection: sa.Connection, world: World) -> None:
    write(connection, World().source("andere", "external"))
    other = SourceId(id_of("source/andere"))
    replace_memberships(connection, other, [("group:g", "user:anna")], as_of=NOW)
    replace_memberships(connection, SOURCE, [], as_of=NOW)
    assert len(connection.execute(sa.select(source_group_members)).all()) == 1


def test_unknown_objects_and_sources_are_not_found(connection: sa.Connection) -> None:
    with pytest.raises(NotVisibleError):
        replace_object_acl(connection, SourceObjectId(uuid.UUID(int=0)), [], as_of=NOW)
    with pytest.raises(NotVisibleError):
        replace_memberships(connection, SourceId(uuid.UUID(int=0)), [], as_of=NOW)
