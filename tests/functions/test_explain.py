"""POST /access/explain and POST /access/who: for administrators, however they came to be it; audited; by the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.access.grants import add_alias, remove_alias
from shared.db.tables.access import source_group_members
from shared.db.tables.audit import audit_events
from tests.functions.api import Api
from tests.functions.firm import CONTROL, PERSONAS, Firm

DRAFT = "nord/Kaufvertrag v1 Entwurf 19870713.txt"
DENIED = "nord/Vermerk candenyname.txt"
COPY = "nord/Protokoll.txt"
ADMIN = "role:admin"


@contextmanager
def alias(firm: Firm, principal: str, other: str) -> Iterator[None]:
    with firm.parts.engine.begin() as connection:
        assert add_alias(connection, principal, other, by="test", reason="stands in")
    try:
        yield
    finally:
        with firm.parts.engine.begin() as connection:
            assert remove_alias(connection, principal, other, by="test", reason="is back")


def last_event(firm: Firm) -> Any:
    with firm.parts.engine.connect() as connection:
        return connection.execute(sa.select(audit_events).order_by(audit_events.c.id.desc()).limit(1)).one()


def explained(api: Api, firm: Firm, token: str, path: str, **who: Any) -> Any:
    reply = api.post("/access/explain", token, {"document_id": str(firm.documents[path]), **who})
    assert reply.status == 200, reply.body
    return reply.json


@pytest.mark.parametrize("path", ["/access/explain", "/access/who"])
@pytest.mark.parametrize("body", [{}, {"document_id": "x"}, {"nonsense": 1}, None])
def test_for_others_there_is_no_such_route_whatever_they_send(
    api: Api, firm: Firm, token_of: Callable[[str], str], path: str, body: Any
) -> None:
    replies = [api.post(place, token_of("anna"), body) for place in (path, "/access/no-such-route")]
    assert [reply.status for reply in replies] == [404, 404]
    assert replies[0].json["detail"] == "there is no such route"


def test_an_alias_or_a_membership_makes_an_administrator_at_once_and_no_longer_than_it_lasts(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    token, body = token_of("dora"), {"document_id": str(firm.documents[CONTROL]), "principals": ["group:nord-team"]}
    assert api.post("/access/explain", token, body).status == 404
    with alias(firm, "user:dora@kanzlei.example", ADMIN):
        assert api.post("/access/explain", token, body).status == 200
        assert api.post("/access/who", token, {"document_id": body["document_id"]}).status == 200
    assert api.post("/access/explain", token, body).status == 404
    edge = {
        "source_id": firm.sources["dms"],
        "group_principal": "group:entra:chiefs",
        "member_principal": "user:dora@kanzlei.example",
    }
    with alias(firm, "group:entra:chiefs", "system:admin"):
        with firm.parts.engine.begin() as connection:
            connection.execute(sa.insert(source_group_members).values(edge))
        assert api.post("/access/explain", token, body).status == 200
        with firm.parts.engine.begin() as connection:
            connection.execute(
                sa.delete(source_group_members).where(source_group_members.c.group_principal == "group:entra:chiefs")
            )
    assert api.post("/access/explain", token, body).status == 404


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_verdict_is_what_the_person_gets(
    api: Api, firm: Firm, token_of: Callable[[str], str], persona: str
) -> None:
    email, groups, admin = PERSONAS[persona]
    who = {"principals": [ADMIN]} if admin else {"subject": email, "groups": list(groups)}
    verdicts = set()
    for path, version in firm.versions.items():
        told = explained(api, firm, token_of("root"), path, **who)
        [one] = [one for one in told["versions"] if one["version_id"] == str(version)]
        place = f"/documents/{firm.documents[path]}"
        reply = api.get(place, token_of(persona), version_id=str(version))
        assert one["visible"] == (reply.status == 200), (path, one["line"])
        if reply.status == 200:
            cited = {source["source_object_id"] for source in reply.json["sources"]}
            assert cited == {place["source_object_id"] for place in one["observations"] if place["citable"]}
        verdicts.add(one["visible"])
    assert verdicts == ({False} if persona == "dora" else {True, False})


def test_each_version_is_explained_with_rows_and_places(api: Api, firm: Firm, token_of: Callable[[str], str]) -> None:
    root = token_of("root")
    told = explained(api, firm, root, DRAFT, subject=PERSONAS["anna"][0], groups=["nord-team"])
    lines = {one["version_id"]: one["line"] for one in told["versions"]}
    assert lines[str(firm.versions[DRAFT])] == "not visible: open at no source"
    assert len(lines) == 2
    denied = explained(api, firm, root, DENIED, subject=PERSONAS["bruno"][0], groups=["nord-team"])
    [row] = denied["versions"][0]["rule"]["not_denied"]["rows"]
    assert (row["principal"], row["reason"], row["granted_by"]) == ("user:bruno@kanzlei.example", "conflict", "test")
    assert row["granted_at"]
    assert denied["versions"][0]["rule"]["allowed"]["holds"]
    copies = explained(api, firm, root, COPY, subject=PERSONAS["anna"][0], groups=["nord-team"])
    places = {place["path"]: place["citable"] for place in copies["versions"][0]["observations"]}
    assert places == {COPY: True, "geheim cancopypath/Protokoll.txt": False}
    with alias(firm, "group:aushilfe", "group:nord-team"):
        by_alias = explained(api, firm, root, CONTROL, principals=["GROUP:Aushilfe "])
        [row] = by_alias["versions"][0]["rule"]["allowed"]["rows"]
        assert row["chain"] == [
            {"principal": "group:aushilfe", "via": "own"},
            {"principal": "group:nord-team", "via": "alias", "granted_by": "test", "reason": "stands in"},
        ]


def test_every_explanation_leaves_a_row_with_who_asked_and_about_whom(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    explained(api, firm, token_of("root"), CONTROL, subject="clara@kanzlei.example")
    row = last_event(firm)
    assert (row.action, row.outcome) == ("access.explain", "allowed")
    assert "user:root@kanzlei.example" in row.principals
    assert row.detail["document_id"] == str(firm.documents[CONTROL])
    assert "user:clara@kanzlei.example" in row.detail["about"]
    unknown = str(uuid4())
    assert api.post("/access/who", token_of("root"), {"document_id": unknown}).status == 404
    row = last_event(firm)
    assert (row.action, row.outcome, row.detail["document_id"]) == ("access.who", "not_visible", unknown)


def test_who_lists_all_page_by_page(api: Api, firm: Firm, token_of: Callable[[str], str]) -> None:
    root, body = token_of("root"), {"document_id": str(firm.documents[DENIED])}
    whole = api.post("/access/who", root, body).json
    found = {one["principal"]: one["visible"] for one in whole["principals"]}
    assert found["group:nord-team"]
    assert not found["user:bruno@kanzlei.example"]
    assert found[ADMIN]
    assert whole["page"]["total"] == len(found)
    listed: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        part = api.post("/access/who", root, {**body, "limit": 2, "offset": offset}).json
        listed += part["principals"]
        offset = part["page"]["next_offset"]
    assert listed == whole["principals"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"principals": ["anna"]}, "principals.0"),
        ({"principals": ["user:a", "planet:x"]}, "principals.1"),
        ({"principals": []}, "principals"),
        ({"subject": " "}, "subject"),
        ({"subject": "\U0001f600" * 400}, "subject"),
        ({"subject": "a", "groups": ["x", "src.1.partners"]}, "groups.1"),
        ({"subject": "a", "groups": [" "]}, "groups.0"),
        ({"document_id": "x", "subject": "a"}, "document_id"),
        ({"as": "root", "subject": "a"}, "as"),
        ({}, None),
        ({"principals": ["user:a"], "subject": "a"}, None),
        ({"principals": ["user:a"], "groups": ["b"]}, None),
    ],
)
def test_what_is_wrong_is_named(
    api: Api, firm: Firm, token_of: Callable[[str], str], change: dict[str, Any], field: str | None
) -> None:
    body = {"document_id": str(firm.documents[CONTROL]), **change}
    reply = api.post("/access/explain", token_of("root"), body)
    assert reply.status == 400, reply.body
    assert reply.json.get("field") == field
