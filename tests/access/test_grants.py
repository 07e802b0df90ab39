from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from shared.access.grants import (
    Grant,
    add_alias,
    add_document_grant,
    add_project_grant,
    remove_alias,
    remove_document_grant,
    remove_project_grant,
    set_document_grants,
    set_project_grants,
)
from shared.db.tables.access import principal_aliases, project_grants
from shared.errors import InvalidRequestError, NotVisibleError
from shared.types import DocumentId, Effect, ProjectId
from tests.access.world import World, allow, id_of, sees, write

PROJECT, DOCUMENT = ProjectId(id_of("project/p")), DocumentId(id_of("document/d"))
ALLOW, DENY = Effect.ALLOW, Effect.DENY


@pytest.fixture
def world(connection: sa.Connection) -> World:
    made = World().project("p", allow("group:old")).source("s", "local_fs").document("d", "p").file("d", "s", "d")
    write(connection, made)
    return made


def test_grants_are_normalised_when_they_are_written(connection: sa.Connection, world: World) -> None:
    added = set_project_grants(
        connection, PROJECT, [(" GROUP:Team-A ", ALLOW), ("group:team-a", ALLOW)], by="user:chef", reason="mandate"
    )
    assert added.added == (Grant.of("group:team-a", ALLOW),)
    assert added.removed == (Grant.of("group:old", ALLOW),)
    row = connection.execute(sa.select(project_grants)).one()
    assert (row.principal, row.granted_by, row.reason) == ("group:team-a", "user:chef", "mandate")
    assert sees(connection, world, "group:team-a") == {"d"}


def test_a_repeated_grant_changes_nothing_and_the_first_reason_stays(connection: sa.Connection, world: World) -> None:
    for reason in ("first", "second"):
        change = add_project_grant(connection, PROJECT, "user:anna", ALLOW, by="user:chef", reason=reason)
        assert change.changed == (reason == "first")
    reasons = connection.scalars(sa.select(project_grants.c.reason).where(project_grants.c.principal == "user:anna"))
    assert reasons.all() == ["first"]
    same = set_project_grants(connection, PROJECT, [("user:anna", ALLOW), ("group:old", ALLOW)], by="x", reason="y")
    assert not same.changed


def test_allow_and_deny_for_one_principal_stand_beside_each_other(connection: sa.Connection, world: World) -> None:
    add_document_grant(connection, DOCUMENT, "group:old", DENY, by="user:chef", reason="wall")
    assert sees(connection, world, "group:old") == set()
    assert remove_document_grant(connection, DOCUMENT, "group:old", ALLOW, by="x", reason="y").changed is False
    assert remove_document_grant(connection, DOCUMENT, "group:old", DENY, by="x", reason="y").changed
    assert sees(connection, world, "group:old") == {"d"}
    assert remove_project_grant(connection, PROJECT, "group:old", ALLOW, by="x", reason="y").changed
    assert sees(connection, world, "group:old") == set()
    assert set_document_grants(connection, DOCUMENT, [("user:anna", ALLOW)], by="x", reason="y").changed
    assert sees(connection, world, "user:anna") == {"d"}


def test_what_names_nobody_is_refused_and_an_unknown_target_is_not_found(
    connection: sa.Connection, world: World
) -> None:
    with pytest.raises(InvalidRequestError, match="kind:value"):
        set_project_grants(connection, PROJECT, [("anna", ALLOW)], by="x", reason="y")
    with pytest.raises(NotVisibleError):
        set_document_grants(connection, DocumentId(uuid.UUID(int=0)), [], by="x", reason="y")


def test_an_alias_to_itself_is_refused_and_one_is_removed_either_way_round(connection: sa.Connection) -> None:
    with pytest.raises(InvalidRequestError, match="itself"):
        add_alias(connection, "user:Anna ", "user:anna", by="x", reason="y")
    assert add_alias(connection, "user:anna", "user:a.m", by="x", reason="y")
    assert not add_alias(connection, "user:anna", "user:a.m", by="x", reason="y")
    assert remove_alias(connection, "user:a.m", "user:anna", by="x", reason="y")
    assert connection.execute(sa.select(principal_aliases)).all() == []
