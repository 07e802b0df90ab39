"""An engine that is away is a 503 within seconds that says when to come back, and nothing about the engine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from local.issuer import LocalIssuer
from local.ports import LOOPBACK, choose_port
from shared.runtime import bootstrap
from shared.runtime.bootstrap import build
from tests.functions.api import Api
from tests.functions.conftest import WIDTH, settings_for
from tests.functions.firm import CONTROL, Firm
from tests.stub_embedding import StubEmbedding

WITHIN_S = 8.0
REQUESTS: tuple[tuple[str, str, dict[str, str] | None], ...] = (
    ("POST", "/search", {"query": "Kündigungsfrist"}),
    ("POST", "/search/filter", {}),
    ("GET", "/documents/{id}", None),
    ("GET", "/documents/{id}/download", None),
    ("GET", "/access/scope", None),
)


@pytest.fixture
def nowhere() -> str:
    return f"{LOOPBACK}:{choose_port()}"


@pytest.fixture(params=["database", "index", "issuer"])
def broken(
    request: pytest.FixtureRequest, firm: Firm, issuer: LocalIssuer, nowhere: str, tmp_path: Path
) -> Iterator[str]:
    """The firm's services with one engine at an address where nothing listens."""
    good = firm.parts.settings
    more = {"KI_RETRIEVAL__INDEX_NAME": good.retrieval.index_name, "KI_STORAGE__ROOT": str(good.storage.root)}
    database, index = str(good.database.url), str(good.opensearch.url)
    if request.param == "database":
        database = f"postgresql+pg8000://ki:zzsecret@{nowhere}/ki"
    elif request.param == "index":
        index = f"http://{nowhere}"
    else:
        more["KI_IDENTITY__JWKS_URL"] = f"http://{nowhere}/keys"
    settings = settings_for(issuer, database_url=database, opensearch_url=index, folder=tmp_path, **more)
    parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH))
    bootstrap.install(parts)
    yield request.param
    parts.close()


def test_every_route_that_needs_the_engine_answers_503_and_the_others_go_on(
    api: Api, firm: Firm, token_of: Callable[[str], str], broken: str, nowhere: str
) -> None:
    for method, path, body in REQUESTS:
        began = time.monotonic()
        reply = api.send(method, path.replace("{id}", str(firm.documents[CONTROL])), token=token_of("anna"), body=body)
        took_s = time.monotonic() - began
        if broken == "index" and not path.startswith("/search"):
            assert reply.status == 200, (path, reply.body)
            continue
        assert reply.status == 503, (path, reply.body)
        assert int(reply.headers["retry-after"]) > 0
        assert reply.headers["content-type"] == "application/problem+json"
        assert took_s < WITHIN_S
        for secret in (nowhere, "zzsecret", "Traceback", "pg8000", "urllib3", "SELECT"):
            assert secret not in reply.everything


def test_health_needs_no_engine(api: Api, broken: str) -> None:
    assert api.get("/health").json == {"status": "ok"}


def test_an_index_of_another_width_is_a_fault_without_details(
    api: Api, firm: Firm, issuer: LocalIssuer, token_of: Callable[[str], str], tmp_path: Path
) -> None:
    good = firm.parts.settings
    settings = settings_for(
        issuer,
        database_url=str(good.database.url),
        opensearch_url=str(good.opensearch.url),
        folder=tmp_path,
        KI_RETRIEVAL__INDEX_NAME=good.retrieval.index_name,
        KI_RETRIEVAL__EMBEDDING_DIMENSIONS=str(WIDTH * 2),
    )
    parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH * 2))
    bootstrap.install(parts)
    reply = api.post("/search", token_of("anna"), {"query": "Kündigungsfrist"})
    parts.close()
    assert reply.status == 500
    assert "detail" not in reply.json


AUDITED = tuple(request for request in REQUESTS if request[1] != "/access/scope")


@pytest.fixture(params=[("denied", "42501"), ("read-only", "25006"), ("missing", "42P01")], ids=lambda param: param[0])
def unrecorded(request: pytest.FixtureRequest, firm: Firm, issuer: LocalIssuer, tmp_path: Path) -> Iterator[str]:
    """The code of a database of the firm that can be read and takes no audit rows."""
    what, code = request.param
    good = firm.parts.settings
    role = f"reader_{uuid4().hex}"
    url = sa.make_url(str(good.database.url)).set(username=role, password="zzsecret")
    prepare = [
        f"CREATE ROLE {role} LOGIN PASSWORD 'zzsecret'",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}",
        {
            "denied": f"REVOKE INSERT ON audit_events FROM {role}",
            "read-only": f"ALTER ROLE {role} SET default_transaction_read_only = on",
            "missing": "ALTER TABLE audit_events RENAME TO audit_elsewhere",
        }[what],
    ]
    restore = [f"DROP OWNED BY {role}", f"DROP ROLE {role}"]
    if what == "missing":
        restore.insert(0, "ALTER TABLE audit_elsewhere RENAME TO audit_events")
    settings = settings_for(
        issuer,
        database_url=url.render_as_string(hide_password=False),
        opensearch_url=str(good.opensearch.url),
        folder=tmp_path,
        KI_RETRIEVAL__INDEX_NAME=good.retrieval.index_name,
        KI_STORAGE__ROOT=str(good.storage.root),
    )
    _run(firm, prepare)
    parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH))
    bootstrap.install(parts)
    yield code
    parts.close()
    _run(firm, restore)


def test_what_cannot_be_recorded_does_not_leave_and_is_logged_as_a_fault(
    api: Api,
    firm: Firm,
    token_of: Callable[[str], str],
    unrecorded: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for method, path, body in AUDITED:
        reply = api.send(method, path.replace("{id}", str(firm.documents[CONTROL])), token=token_of("anna"), body=body)
        assert reply.status == 503, (path, reply.body)
        assert int(reply.headers["retry-after"]) > 0
        for secret in ("zzsecret", "audit", "Kontrollbau", "SELECT", unrecorded):
            assert secret not in reply.everything
        logged = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        [failure] = [line for line in logged if line.get("message") == "request_failed"]
        assert (failure["level"], failure["sqlstate"]) == ("ERROR", unrecorded)


def _run(firm: Firm, statements: list[str]) -> None:
    with firm.parts.engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
