"""Grants and aliases by route: whole lists, differences, reasons, audit rows, and at once in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.access.caller import Caller
from shared.access.requests import AliasList, AliasRead, GrantList, GrantPlace, GrantRemoval
from shared.db.tables.access import document_grants, principal_aliases, project_grants
from shared.db.tables.audit import audit_events
from shared.errors import NotVisibleError
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.types import Principal
from tests.functions.api import Api, Reply
from tests.functions.firm import CONTROL, Firm

TEAM = {"principal": "group:nord-team", "effect": "allow"}
WALL = {"principal": "user:anna@kanzlei.example", "effect": "deny"}


@pytest.fixture
def root(firm: Firm, token_of: Callable[[str], str]) -> Iterator[str]:
    """An administrator's token; afterwards the firm is what it was."""
    tables = (project_grants, document_grants, principal_aliases)
    with firm.parts.engine.connect() as connection:
        before = [[dict(row._mapping) for row in connection.execute(sa.select(table))] for table in tables]
    yield token_of("root")
    with firm.parts.engine.begin() as connection:
        for table, rows in zip(tables, before, strict=True):
            connection.execute(sa.delete(table))
            if rows:
                connection.execute(sa.insert(table), rows)


@pytest.fixture
def second(firm: Firm) -> Iterator[Services]:
    """Another process's services: the same engines, nothing kept in common but SQL."""
    parts = build(firm.parts.settings, embedding=firm.parts.embedding)
    yield parts
    parts.close()


def state(firm: Firm) -> list[Any]:
    with firm.parts.engine.connect() as connection:
        return [
            sorted(map(str, connection.execute(sa.select(table))))
            for table in (project_grants, document_grants, principal_aliases)
        ]


def events(firm: Firm, action: str) -> list[Any]:
    with firm.parts.engine.connect() as connection:
        rows = connection.execute(
            sa.select(audit_events).where(audit_events.c.action == action).order_by(audit_events.c.id)
        )
        return list(rows)


def places(firm: Firm) -> dict[str, str]:
    return {
        "project": f"/projects/{firm.projects['nord']}/grants",
        "document": f"/documents/{firm.documents[CONTROL]}/grants",
    }


def orders(firm: Firm) -> list[tuple[str, str, dict[str, Any]]]:
    """Every order that changes something in the firm as it is."""
    project, document = places(firm).values()
    return [
        ("PUT", project, {"grants": [TEAM, WALL], "reason": "conflict"}),
        ("DELETE", project, TEAM),
        ("PUT", document, {"grants": [WALL], "reason": "conflict"}),
        ("DELETE", document, {**WALL, "reason": "settled"}),
        ("PUT", "/aliases", {"principal": "user:dora@kanzlei.example", "aliases": ["group:nord-team"], "reason": "r"}),
        ("DELETE", "/aliases", {"principal": "group:nord-team", "alias": "user:dora@kanzlei.example", "reason": "r"}),
    ]


def test_a_list_says_who_when_and_why_and_a_put_says_what_it_changed(api: Api, firm: Firm, root: str) -> None:
    for place in places(firm).values():
        body = {"grants": [TEAM, {"principal": " USER:Anna@Kanzlei.example", "effect": "deny"}], "reason": "conflict"}
        before = {one["principal"] for one in api.get(place, root).json["grants"]}
        changed = api.send("PUT", place, token=root, body=body).json
        assert changed["added"] == [one for one in (TEAM, WALL) if one["principal"] not in before]
        assert (changed["changed"], changed["removed"], changed["dry_run"]) == (True, [], False)
        [wall] = [one for one in api.get(place, root).json["grants"] if one["effect"] == "deny"]
        assert wall["principal"] == WALL["principal"]
        assert wall["reason"] == "conflict"
        assert wall["granted_by"]
        assert wall["granted_at"]
        again = api.send("PUT", place, token=root, body=body).json
        assert (again["changed"], again["added"], again["removed"]) == (False, [], [])
        lifted = api.send("DELETE", place, token=root, body={**WALL, "reason": "settled"}).json
        assert lifted["removed"] == [WALL]


def test_a_dry_run_answers_the_difference_and_writes_nothing(api: Api, firm: Firm, root: str) -> None:
    before, audited = state(firm), len(events(firm, "access.grants")) + len(events(firm, "access.aliases"))
    for method, place, body in orders(firm):
        reply = api.send(method, place, token=root, body={**body, "dry_run": True})
        assert reply.status == 200, reply.body
        assert (reply.json["changed"], reply.json["dry_run"]) == (False, True)
    assert state(firm) == before
    assert len(events(firm, "access.grants")) + len(events(firm, "access.aliases")) == audited
    [whole] = [
        api.send("PUT", places(firm)["project"], token=root, body={"grants": [WALL], "dry_run": True}).json,
    ]
    assert (whole["added"], whole["removed"]) == ([WALL], [TEAM])


def test_every_order_leaves_one_row_with_who_what_before_after_and_why(api: Api, firm: Firm, root: str) -> None:
    for method, place, body in orders(firm):
        action = "access.aliases" if place == "/aliases" else "access.grants"
        earlier, unchanged = events(firm, action), state(firm)
        reply = api.send(method, place, token=root, body=body)
        assert reply.status == 200, reply.body
        assert reply.json["changed"] == (state(firm) != unchanged) is True
        [row] = events(firm, action)[len(earlier) :]
        assert row.detail["added"] == reply.json["added"]
        assert row.detail["removed"] == reply.json["removed"]
        assert row.detail["before"] != row.detail["after"]
        assert row.detail["reason"] == body.get("reason")
        assert "user:root@kanzlei.example" in row.principals
        assert row.correlation_id == reply.headers["x-correlation-id"]


def test_what_cannot_be_audited_is_not_changed(api: Api, firm: Firm, root: str) -> None:
    before = state(firm)
    with firm.parts.engine.begin() as connection:
        connection.execute(sa.text("alter table audit_events rename to audit_events_away"))
    try:
        for method, place, body in orders(firm):
            if method == "PUT":
                assert api.send(method, place, token=root, body=body).status >= 500
    finally:
        with firm.parts.engine.begin() as connection:
            connection.execute(sa.text("alter table audit_events_away rename to audit_events"))
    assert state(firm) == before


@pytest.mark.parametrize("persona", ["anna", "clara", "dora"])
def test_for_others_there_is_no_such_route_and_nothing_changes(
    api: Api, firm: Firm, token_of: Callable[[str], str], persona: str
) -> None:
    before, token = state(firm), token_of(persona)
    for method, place, body in [
        *orders(firm),
        *(("GET", place, None) for place in (*places(firm).values(), "/aliases")),
    ]:
        for sent in (body, {"nonsense": 1}):
            reply = api.send(method, place, token=token, body=None if method == "GET" else sent)
            assert (reply.status, reply.json["detail"]) == (404, "there is no such route")
    assert state(firm) == before


def test_the_right_is_looked_at_again_in_the_transaction_that_writes(api: Api, firm: Firm, root: str) -> None:
    """Somebody who ceased to be an administrator after the route had let them in."""
    before, service = state(firm), firm.parts.access_administration
    caller = Caller("anna", frozenset({Principal("user:anna@kanzlei.example")}))
    target = str(firm.projects["nord"])
    wanted = GrantList.model_validate({"grants": [], "reason": "r"})
    gone = GrantRemoval.model_validate({**TEAM, "reason": "r"})
    aliases = AliasList.model_validate({"principal": "user:a", "aliases": ["role:admin"], "reason": "r"})
    for work in (
        lambda: service.grants(caller, GrantPlace.PROJECT, target),
        lambda: service.replace_grants(caller, GrantPlace.PROJECT, target, wanted),
        lambda: service.remove_grant(caller, GrantPlace.PROJECT, target, gone),
        lambda: service.aliases(caller, AliasRead()),
        lambda: service.replace_aliases(caller, aliases),
    ):
        with pytest.raises(NotVisibleError, match="no such route"):
            work()
    assert state(firm) == before


def test_a_deny_is_neither_built_nor_lifted_without_a_reason(api: Api, firm: Firm, root: str) -> None:
    for place in places(firm).values():
        for reason in ({}, {"reason": None}, {"reason": "  "}):
            named(api.send("PUT", place, token=root, body={"grants": [TEAM, WALL], **reason}), "reason")
        assert api.send("PUT", place, token=root, body={"grants": [TEAM, WALL], "reason": "c"}).status == 200
        named(api.send("PUT", place, token=root, body={"grants": [TEAM]}), "reason")
        named(api.send("DELETE", place, token=root, body=WALL), "reason")
        assert api.send("DELETE", place, token=root, body={**WALL, "reason": "settled"}).json["removed"] == [WALL]
        assert api.send("DELETE", place, token=root, body=TEAM).json["removed"] == [TEAM]
    for method in ("PUT", "DELETE"):
        body = (
            {"principal": "user:a", "aliases": ["user:b"]}
            if method == "PUT"
            else {"principal": "user:a", "alias": "user:b"}
        )
        named(api.send(method, "/aliases", token=root, body=body), "reason")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"grants": [{"principal": "anna"}]}, "grants.0.principal"),
        ({"grants": [TEAM, {"principal": "planet:x"}]}, "grants.1.principal"),
        ({"grants": [{"principal": "user:a", "effect": "maybe"}]}, "grants.0.effect"),
        ({"grants": [TEAM], "dry_run": "yes"}, "dry_run"),
        ({"grants": [TEAM], "by": "me"}, "by"),
        ({"grants": {}}, "grants"),
        ({}, "grants"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_of_the_list_is_written(
    api: Api, firm: Firm, root: str, body: dict[str, Any], field: str
) -> None:
    before = state(firm)
    for place in places(firm).values():
        named(api.send("PUT", place, token=root, body=body), field)
    assert state(firm) == before


def test_an_unknown_target_is_not_found_and_an_alias_to_itself_is_refused(api: Api, firm: Firm, root: str) -> None:
    for kind in ("projects", "documents"):
        for id_ in (uuid4(), "x"):
            place = f"/{kind}/{id_}/grants"
            assert api.get(place, root).status == 404
            assert api.send("PUT", place, token=root, body={"grants": [TEAM]}).status == 404
            assert api.send("DELETE", place, token=root, body=TEAM).status == 404
    itself = {"principal": "user:a", "aliases": [" USER:A"], "reason": "r"}
    assert api.send("PUT", "/aliases", token=root, body=itself).status == 400


def test_a_list_that_changed_meanwhile_is_not_overwritten(api: Api, firm: Firm, root: str) -> None:
    place = places(firm)["project"]
    tag = api.get(place, root).json["tag"]
    assert api.send("PUT", place, token=root, body={"grants": [TEAM, WALL], "reason": "c"}).status == 200
    body = {"grants": [TEAM], "reason": "did not know of the wall", "if_tag": tag}
    assert api.send("PUT", place, token=root, body=body).status == 409
    body["if_tag"] = api.get(place, root).json["tag"]
    assert api.send("PUT", place, token=root, body=body).json["removed"] == [WALL]


def test_of_two_who_read_the_same_list_one_is_refused(api: Api, firm: Firm, root: str) -> None:
    place = places(firm)["project"]
    tag = api.get(place, root).json["tag"]

    def order(name: str) -> int:
        body = {"grants": [TEAM, {"principal": name}], "if_tag": tag}
        return api.send("PUT", place, token=root, body=body).status

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(order, ["user:x", "user:y"])) == [200, 409]
    assert len(api.get(place, root).json["grants"]) == 2


def test_aliases_are_listed_by_pages_and_removed_either_way_round(api: Api, firm: Firm, root: str) -> None:
    names = [f"group:g{number}" for number in range(5)]
    body = {"principal": "user:x", "aliases": names, "reason": "merger"}
    assert api.send("PUT", "/aliases", token=root, body=body).json["added"] == names
    listed: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        part = api.get("/aliases", root, principal="USER:x", limit="2", offset=str(offset)).json
        assert part["page"]["total"] == 5
        listed += part["aliases"]
        offset = part["page"]["next_offset"]
    assert [one["alias"] for one in listed] == names
    assert {(one["reason"], bool(one["granted_at"]), bool(one["granted_by"])) for one in listed} == {
        ("merger", True, True)
    }
    gone = {"principal": "group:g0", "alias": "user:x", "reason": "r"}
    assert api.send("DELETE", "/aliases", token=root, body=gone).json["removed"] == ["user:x"]
    rest = api.send("PUT", "/aliases", token=root, body={**body, "aliases": ["group:g4"]}).json
    assert rest["removed"] == ["group:g1", "group:g2", "group:g3"]


def test_each_order_counts_at_the_next_search_of_another_process_with_a_warm_cache(
    api: Api, firm: Firm, second: Services, root: str, token_of: Callable[[str], str]
) -> None:
    anna, dora = token_of("anna"), token_of("dora")

    def found(token: str) -> list[bool]:
        seen = []
        for parts in (second, firm.parts):
            bootstrap.install(parts)
            results = api.post("/search/filter", token, {"limit": 100}).json["results"]
            seen.append(str(firm.documents[CONTROL]) in {one["document_id"] for one in results})
        return seen

    def order(method: str, place: str, **body: Any) -> None:
        bootstrap.install(firm.parts)
        assert api.send(method, place, token=root, body={"reason": "r", **body}).json["changed"]

    project, document = places(firm).values()
    assert (found(anna), found(dora)) == ([True] * 2, [False] * 2)
    for place in (project, document):
        order("PUT", place, grants=[TEAM, WALL])
        assert found(anna) == [False] * 2
        order("DELETE", place, **WALL)
        assert found(anna) == [True] * 2
    order("DELETE", project, **TEAM)
    assert found(anna) == [True] * 2  # the document's own grant
    order("DELETE", document, **TEAM)
    assert found(anna) == [False] * 2
    order("PUT", project, grants=[TEAM])
    order("PUT", "/aliases", principal="user:dora@kanzlei.example", aliases=["group:nord-team"])
    assert (found(anna), found(dora)) == ([True] * 2, [True] * 2)
    order("DELETE", "/aliases", principal="group:nord-team", alias="user:dora@kanzlei.example")
    assert found(dora) == [False] * 2


def named(reply: Reply, field: str) -> None:
    assert reply.status == 400, reply.body
    assert reply.json["field"] == field
