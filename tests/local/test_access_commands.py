"""`ki grant`, `ki grants`, `ki alias`, `ki explain` and `ki who` say in plain words who may see what, and change it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from local.cli.main import main
from local.issuer import subject_of
from shared.db.engine import make_engine
from shared.db.tables.audit import audit_events
from shared.runtime.bootstrap import build
from shared.settings import load_settings
from tests.access.world import World, allow, id_of, write

DOCUMENT = str(id_of("document/spa"))


@pytest.fixture
def firm(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    """A project with one document, which a group of a group of the directory may see."""
    settings = load_settings({"KI_DATABASE__URL": database_url})
    engine = make_engine(settings.database)
    services = build(settings, engine=engine)
    for module in ("grant", "grants", "alias", "explain", "who"):
        monkeypatch.setattr(f"local.cli.{module}.running_services", lambda: services)
    signed_in = lambda email, groups=(): SimpleNamespace(subject=subject_of(email), groups=tuple(groups))  # noqa: E731
    monkeypatch.setattr("local.cli.explain.sign_in", signed_in)
    team = SimpleNamespace(token_groups=("team",))
    monkeypatch.setattr("local.cli.who.everybody", lambda: {"anna@kanzlei.example": team})
    world = World().project("nord", allow("group:entra:deals")).source("ablage", "local_fs").source("dms", "external")
    world.document("spa", "nord").file("spa.docx", "ablage", "spa")
    world.member("dms", "group:entra:deals", "group:entra:m-and-a")
    world.member("dms", "group:entra:m-and-a", "user:ben@kanzlei.example")
    with engine.begin() as connection:
        write(connection, world)
    yield engine
    engine.dispose()


def run(*words: str, code: int = 0) -> Result:
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == code, ran.output
    return ran


def answer(*words: str, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code).stdout)


def test_a_wall_around_a_document_is_built_listed_explained_and_lifted(firm: sa.Engine) -> None:
    who = ("--as", "ben@kanzlei.example")
    told = run("explain", DOCUMENT, *who).stdout
    assert (
        "allowed by project grant for group:entra:deals on nord, held by user:ben@kanzlei.example, "
        "in group:entra:m-and-a of dms, in group:entra:deals of dms"
    ) in told
    assert (
        answer("grant", DOCUMENT, "USER:ben@kanzlei.example", "--deny", "--reason", "conflict")["outcome"] == "changed"
    )
    [wall] = answer("grants", DOCUMENT)
    assert (wall["principal"], wall["effect"], wall["reason"]) == ("user:ben@kanzlei.example", "deny", "conflict")
    assert "by local:" in run("grants", DOCUMENT).stdout
    [version] = answer("explain", DOCUMENT, *who, code=1)
    assert version["line"] == ("not visible: denied by document grant for user:ben@kanzlei.example on spa (conflict)")
    assert "seen: spa.docx at ablage has no ACL of its own: the project or document decides" in version["reasons"]
    lifted = ("grant", DOCUMENT, "user:ben@kanzlei.example", "--deny", "--lift", "--reason", "settled")
    assert answer(*lifted)["outcome"] == "changed"
    assert answer(*lifted)["outcome"] == "unchanged"
    assert run("grants", DOCUMENT).stdout.strip() == f"There are no grants on {DOCUMENT}."
    run("explain", DOCUMENT, *who)


def test_projects_are_named_by_key_or_id_and_what_is_nothing_is_said(firm: sa.Engine) -> None:
    for name in ("nord", str(id_of("project/nord"))):
        assert [one["principal"] for one in answer("grants", name)] == ["group:entra:deals"]
    for words in (("grants", "sued"), ("grant", "sued", "user:a", "--reason", "r"), ("who", str(id_of("nothing")))):
        assert answer(*words, code=1)["error"]["type"] == "NotVisibleError"
    assert answer("grant", "nord", "anna", "--reason", "r", code=2)["error"]["type"] == "InvalidRequestError"
    run("grant", "nord", "user:a", code=2)


def test_an_alias_opens_and_closes_and_stands_in_the_explanation(firm: sa.Engine) -> None:
    who = ("--as", "anna@kanzlei.example")
    run("explain", DOCUMENT, *who, code=1)
    names = ("user:anna@kanzlei.example", "group:entra:deals")
    assert answer("alias", "add", *names, "--reason", "secondment")["outcome"] == "changed"
    assert "also known as group:entra:deals" in run("explain", DOCUMENT, *who).stdout
    listed = answer("alias", "list", names[0])
    assert [(one["alias"], one["reason"]) for one in listed["aliases"]] == [(names[1], "secondment")]
    run("alias", "add", "user:x", "user:y", "--reason", "r")
    part = run("alias", "list", "--limit", "1")
    assert "1 more: --offset 1" in part.stderr
    assert answer("alias", "remove", *reversed(names), "--reason", "is back")["outcome"] == "changed"
    run("explain", DOCUMENT, *who, code=1)


def test_who_tells_of_people_and_of_principals_and_never_cuts_silently(firm: sa.Engine) -> None:
    found = answer("who", DOCUMENT)
    assert [(one["email"], one["visible"]) for one in found["people"]] == [("anna@kanzlei.example", False)]
    visible = {one["principal"]: one["visible"] for one in found["principals"]}
    assert visible["user:ben@kanzlei.example"]
    assert visible["group:entra:deals"]
    assert found["total"] == len(found["principals"])
    part = run("who", DOCUMENT, "--limit", "2")
    assert f"{found['total'] - 2} more principals: --offset 2" in part.stderr


def test_every_change_and_every_question_leaves_its_row(firm: sa.Engine) -> None:
    run("grant", "nord", "user:a", "--reason", "r")
    run("alias", "add", "user:a", "user:b", "--reason", "r")
    run("explain", DOCUMENT, "--as", "ben@kanzlei.example")
    run("who", DOCUMENT)
    with firm.connect() as connection:
        rows = connection.execute(sa.select(audit_events).order_by(audit_events.c.id)).all()
    assert [row.action for row in rows][:3] == ["access.grants", "access.aliases", "access.explain"]
    assert "access.who" in {row.action for row in rows}
    assert all(row.subject.startswith("local:") for row in rows)
