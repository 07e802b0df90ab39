from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from shared.access import grants
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
from shared.access.requests import GrantPlace
from shared.db.tables.access import document_grants, principal_aliases, project_grants
from shared.db.tables.audit import audit_events
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


AUDITED = sa.select(audit_events.c.action, audit_events.c.subject, audit_events.c.detail).order_by(audit_events.c.id)
WRITES: dict[str, tuple[Callable[[sa.Connection], object], list[object], list[object]]] = {
    "set project": (
        lambda c: set_project_grants(c, PROJECT, [("user:a", DENY)], by="chef", reason="why"),
        [("group:old", "allow")],
        [("user:a", "deny")],
    ),
    "set document": (
        lambda c: set_document_grants(c, DOCUMENT, [("user:a", ALLOW)], by="chef", reason="why"),
        [],
        [("user:a", "allow")],
    ),
    "add to project": (
        lambda c: add_project_grant(c, PROJECT, "user:a", ALLOW, by="chef", reason="why"),
        [("group:old", "allow")],
        [("group:old", "allow"), ("user:a", "allow")],
    ),
    "add to document": (
        lambda c: add_document_grant(c, DOCUMENT, "user:a", DENY, by="chef", reason="why"),
        [],
        [("user:a", "deny")],
    ),
    "remove from project": (
        lambda c: remove_project_grant(c, PROJECT, "group:old", ALLOW, by="chef", reason="why"),
        [("group:old", "allow")],
        [],
    ),
    "remove from document": (
        lambda c: (
            connection_grant(c),
            remove_document_grant(c, DOCUMENT, "user:was", DENY, by="chef", reason="why"),
        ),
        [("user:was", "deny")],
        [],
    ),
    "add alias": (lambda c: add_alias(c, "user:a", "user:b", by="chef", reason="why"), [], ["user:b"]),
    "remove alias": (
        lambda c: (
            c.execute(sa.insert(principal_aliases).values(principal="user:b", alias="user:a")),
            remove_alias(c, "user:a", "user:b", by="chef", reason="why"),
        ),
        ["user:b"],
        [],
    ),
}


def connection_grant(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(document_grants).values(document_id=DOCUMENT, principal="user:was", effect="deny", reason="wall")
    )


@pytest.mark.parametrize("write_", WRITES)
def test_every_way_to_write_leaves_one_row_with_who_what_before_after_and_why(
    connection: sa.Connection, world: World, write_: str
) -> None:
    work, before, after = WRITES[write_]
    work(connection)
    [row] = connection.execute(AUDITED).all()
    told = {
        side: [(one["principal"], one["effect"]) if isinstance(one, dict) else one for one in row.detail[side]]
        for side in ("before", "after")
    }
    assert told == {"before": before, "after": after}
    assert (row.subject, row.detail["reason"]) == ("chef", "why")


def test_no_public_function_writes_without_being_tried_above() -> None:
    writers = {
        name
        for name, function in vars(grants).items()
        if inspect.isfunction(function)
        and function.__module__ == grants.__name__
        and not name.startswith("_")
        and name.startswith(("set_", "add_", "remove_"))
    }
    tried = inspect.getsource(inspect.getmodule(test_no_public_function_writes_without_being_tried_above) or grants)
    # Those that the named ones are made of.
    assert {name for name in writers if f"lambda c: {name}(" not in tried and f"            {name}(c" not in tried} == {
        "add_grant",
        "remove_grant",
    }


def test_what_changes_nothing_leaves_no_row(connection: sa.Connection, world: World) -> None:
    add_project_grant(connection, PROJECT, "group:old", ALLOW, by="x", reason="y")
    remove_document_grant(connection, DOCUMENT, "user:x", DENY, by="x", reason="y")
    remove_alias(connection, "user:x", "user:y", by="x", reason="y")
    assert connection.execute(AUDITED).all() == []


def test_a_deny_is_neither_built_nor_lifted_without_a_reason_and_an_allow_is(
    connection: sa.Connection, world: World
) -> None:
    add_document_grant(connection, DOCUMENT, "user:a", DENY, by="x", reason="wall")
    for reason in (None, "", "  "):
        author = grants.Author("x", reason)
        with pytest.raises(InvalidRequestError, match="say why"):
            grants.add_grant(connection, GrantPlace.PROJECT, PROJECT, Grant.of("user:b", DENY), author)
        with pytest.raises(InvalidRequestError, match="say why"):
            grants.replace_grants(connection, GrantPlace.DOCUMENT, DOCUMENT, [], author)
    assert grants.add_grant(
        connection, GrantPlace.DOCUMENT, DOCUMENT, Grant.of("user:b", ALLOW), grants.Author("x", None)
    ).changed
    listed = grants.held_grants(connection, GrantPlace.DOCUMENT, DOCUMENT)
    assert [(one.grant.principal, one.granted_by, one.reason) for one in listed] == [
        ("user:a", "x", "wall"),
        ("user:b", "x", None),
    ]


def test_the_role_that_writes_grants_needs_no_right_over_documents(connection: sa.Connection, world: World) -> None:
    connection.execute(sa.text("set local role knowledge_index_sync"))
    for work, _, _ in (WRITES[name] for name in ("set project", "add to document", "add alias")):
        work(connection)
    assert grants.held_grants(connection, GrantPlace.DOCUMENT, DOCUMENT)
