"""Reading and downloading documents through the API."""

from __future__ import annotations

import base64
from collections.abc import Callable
from urllib.parse import unquote
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.db.tables.audit import audit_events
from tests.functions.api import Api
from tests.functions.firm import CONTROL, FILES, Firm
from tests.statements import counted

FINAL = "nord/Kaufvertrag v2 final.txt"
DRAFT = "nord/Kaufvertrag v1 Entwurf 19870713.txt"


def test_a_document_is_read_with_its_text_its_sources_and_its_citation(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    reply = api.get(f"/documents/{firm.documents[CONTROL]}", token_of("anna"))
    assert reply.status == 200
    body = reply.json
    assert body["text"] == FILES["ablage"][CONTROL]
    assert body["window"]["total_chars"] == len(FILES["ablage"][CONTROL])
    assert [source["path"] for source in body["sources"]] == [CONTROL]
    assert body["citation"]["version"]["id"] == str(firm.versions[CONTROL])
    assert body["project"]["title"] == "Projekt Nord"
    assert body["matter"]["key"] == "N-1"
    assert [found["raw"] for found in body["identifiers"]] == ["3 O 111/22"]


def test_characters_are_read_in_pieces_that_join(api: Api, firm: Firm, token_of: Callable[[str], str]) -> None:
    pieces, offset = [], "0"
    while True:
        body = api.get(f"/documents/{firm.documents[CONTROL]}", token_of("anna"), offset=offset, max_chars="20").json
        pieces.append(body["text"])
        if not body["window"]["has_more"]:
            break
        offset = str(body["window"]["next_offset"])
    assert len(pieces) > 2
    assert "".join(pieces) == FILES["ablage"][CONTROL]


def test_the_default_is_the_latest_final_version_that_the_caller_may_see(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    for persona, seen in (("anna", [FINAL]), ("paula", [DRAFT, FINAL])):
        body = api.get(f"/documents/{firm.documents[FINAL]}", token_of(persona)).json
        assert body["version_id"] == str(firm.versions[FINAL])
        assert body["is_latest_final"] is True
        assert {version["version_id"] for version in body["versions"]} == {str(firm.versions[path]) for path in seen}
    draft = api.get(f"/documents/{firm.documents[FINAL]}", token_of("paula"), version_id=str(firm.versions[DRAFT])).json
    assert draft["version_status"] == "draft"
    assert draft["is_latest_final"] is False


@pytest.mark.parametrize("route", ["", "/download"])
def test_absent_misspelt_and_not_yours_are_one_answer_at_one_price(
    api: Api, firm: Firm, token_of: Callable[[str], str], route: str
) -> None:
    other = firm.documents["sued/Klage canname.txt"]
    ids = [str(other), str(uuid4()), "42", "%00", "..", "{" + str(other) + "}", str(other).replace("-", ""), "a" * 4000]
    answers, prices = [], []
    for id_ in ids:
        with counted(firm.parts.engine) as statements:
            reply = api.get(f"/documents/{id_}{route}", token_of("anna"))
        body = reply.json
        del body["correlation_id"]
        answers.append((reply.status, body))
        prices.append(len(statements))
    assert answers == [answers[0]] * len(ids)
    assert answers[0][0] == 404
    assert prices == [3] * len(ids)


def test_a_version_or_an_object_that_is_not_yours_is_as_absent_as_none(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    place = f"/documents/{firm.documents[FINAL]}"
    for version in (str(firm.versions[DRAFT]), str(firm.versions[CONTROL]), str(uuid4()), "x"):
        assert api.get(place, token_of("anna"), version_id=version).status == 404
        assert api.get(f"{place}/download", token_of("anna"), version_id=version).status == 404
    protocol = f"/documents/{firm.documents['nord/Protokoll.txt']}/download"
    hidden = str(firm.objects["geheim cancopypath/Protokoll.txt"])
    assert api.get(protocol, token_of("anna"), source_object_id=hidden).status == 404
    assert api.get(protocol, token_of("paula"), source_object_id=hidden).status == 200


def test_a_download_keeps_every_letter_of_the_name(api: Api, firm: Firm, token_of: Callable[[str], str]) -> None:
    with firm.parts.engine.begin() as connection:
        connection.execute(
            sa.text("update source_objects set name = :name where id = :id"),
            {"name": "Begründung – Anlage K1.txt", "id": firm.objects[CONTROL]},
        )
    reply = api.get(f"/documents/{firm.documents[CONTROL]}/download", token_of("anna"))
    assert reply.status == 200
    assert reply.body == FILES["ablage"][CONTROL].encode()
    assert reply.headers["content-type"] == "text/plain"
    disposition = reply.headers["content-disposition"]
    assert disposition.startswith("attachment;")
    assert unquote(disposition.partition("filename*=UTF-8''")[2]) == "Begründung – Anlage K1.txt"


def test_every_read_and_every_refusal_is_in_the_audit_trail(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    def newest() -> sa.Row[tuple[object, ...]]:
        with firm.parts.engine.connect() as connection:
            return connection.execute(sa.select(audit_events).order_by(audit_events.c.id.desc()).limit(1)).one()

    reply = api.get(f"/documents/{firm.documents[CONTROL]}", token_of("anna"))
    row = newest()
    assert (row.action, row.outcome) == ("document.read", "allowed")
    assert row.detail == {"document_id": str(firm.documents[CONTROL]), "version_id": str(firm.versions[CONTROL])}
    assert "group:nord-team" in row.principals
    assert row.correlation_id == reply.headers["x-correlation-id"]
    api.get(f"/documents/{firm.documents[CONTROL]}/download", token_of("dora"))
    row = newest()
    assert (row.action, row.outcome) == ("document.download", "not_visible")


def test_a_read_that_cannot_be_audited_fails(api: Api, firm: Firm, token_of: Callable[[str], str]) -> None:
    with firm.parts.engine.begin() as connection:
        connection.execute(sa.text("alter table audit_events rename to audit_events_away"))
    try:
        for route in ("", "/download"):
            reply = api.get(f"/documents/{firm.documents[CONTROL]}{route}", token_of("anna"))
            assert reply.status == 503
            assert "Kündigungsfrist" not in reply.everything
            assert base64.b64encode(b"audit_events") not in reply.body
            assert b"audit_events" not in reply.body
    finally:
        with firm.parts.engine.begin() as connection:
            connection.execute(sa.text("alter table audit_events_away rename to audit_events"))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": "0"}, "page"),
        ({"page": "x"}, "page"),
        ({"page": "1"}, "page"),
        ({"offset": "-1"}, "offset"),
        ({"offset": "99999999999999999999"}, "offset"),
        ({"max_chars": "0"}, "max_chars"),
        ({"page": "1", "offset": "0"}, "offset"),
        ({"format": "pdf"}, "format"),
    ],
)
def test_a_wrong_parameter_is_named(
    api: Api, firm: Firm, token_of: Callable[[str], str], query: dict[str, str], field: str
) -> None:
    reply = api.get(f"/documents/{firm.documents[CONTROL]}", token_of("anna"), **query)
    assert (reply.status, reply.json["field"]) == (400, field)
