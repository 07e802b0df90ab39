"""Whatever is sent, the answer is a problem that names what is wrong, or an answer; never a fault of ours (RC61, RC73)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.runtime.routes import ROUTES
from tests.functions.api import Api, Reply
from tests.functions.firm import CONTROL, Firm

POSTS = ("/search", "/search/filter")
BASE: dict[str, dict[str, Any]] = {"/search": {"query": "Kündigungsfrist"}, "/search/filter": {}}


def is_problem(reply: Reply, status: int, field: str | None = None) -> None:
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json
    assert set(body) <= {"type", "title", "status", "detail", "field", "correlation_id"}
    assert body["status"] == status
    assert body["correlation_id"] == reply.headers["x-correlation-id"]
    if field is not None:
        assert body["field"] == field, body


@pytest.fixture
def token(firm: Firm, token_of: Callable[[str], str]) -> str:
    return token_of("anna")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "8"}, "limit"),
        ({"limit": 8.5}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": None}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 10**30}, "offset"),
        ({"offset": 10**4300 - 1}, "offset"),
        ({"offset": 500}, "offset"),
        ({"filters": []}, "filters"),
        ({"filters": {"colour": "red"}}, "filters.colour"),
        ({"filters": {"allowed_principals": "x"}}, "filters.allowed_principals"),
        ({"filters": {"project_id": "1; drop table documents"}}, "filters.project_id"),
        ({"filters": {"date_from": "2024-02"}}, "filters.date_from"),
        ({"filters": {"date_from": "2024-02-30"}}, "filters.date_from"),
        ({"filters": {"date_from": 20240201}}, "filters.date_from"),
        ({"filters": {"date_from": "2024-02-02", "date_to": "2024-02-01"}}, "filters.date_from"),
        ({"filters": {"version_status": "signed"}}, "filters.version_status"),
        ({"filters": {"language": ["de"]}}, "filters.language"),
        ({"project_ids": "x"}, "project_ids"),
        ({"project_ids": ["x"]}, "project_ids.0"),
        ({"principals": ["role:admin"]}, "principals"),
        ({"scope": {"mode": "sufficient"}}, "scope"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_a_wrong_field_is_named(api: Api, token: str, path: str, change: dict[str, Any], field: str) -> None:
    is_problem(api.post(path, token, BASE[path] | change), 400, field)


@pytest.mark.parametrize("query", [None, 7, [], {}, "", " ", "\n\t", "a" * 10_000], ids=lambda q: repr(q)[:20])
def test_a_wrong_query_is_named(api: Api, token: str, query: Any) -> None:
    reply = api.post("/search", token, {"query": query})
    is_problem(reply, 400, "query")
    if query == "a" * 10_000:
        assert "2000" in reply.json["detail"]


@pytest.mark.parametrize(
    "query",
    ["10/2019", "12 O 34/21", "der die das", '"Treu und Glauben"', "😀", "a:b AND (", "\\", "*:*", "%", "'; --", "{}",
     "ſ", "\u202e", "\ufeffx", "e\u0301", "{{x}}", "?" * 2000, "(" * 500],
)  # fmt: skip
def test_any_text_is_a_query(api: Api, token: str, query: str) -> None:
    reply = api.post("/search", token, {"query": query})
    assert reply.status == 200, reply.body
    # Stop words alone leave the semantic leg, a file number in any form the identifier leg.
    assert reply.json["results"] or query not in {"10/2019", "12 O 34/21", "der die das", "😀"}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"x",
        b"null",
        b"[]",
        b'"query"',
        b"7",
        b"{",
        b'{"query": "a"} x',
        b'{"query": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"query": "a", "query": "b"}',
        b'{"limit": NaN, "query": "a"}',
        b'{"limit": Infinity, "query": "a"}',
        b'{"limit": 1e999, "query": "a"}',
        b'{"limit": ' + b"9" * 5000 + b', "query": "a"}',
        b'{"query": "\\ud800"}',
        b'{"query": "a\\u0000b"}',
        b'{"\\udfff": 1, "query": "a"}',
        b'{"filters": ' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"query": ' + b"[" * 100_000 + b"}",
        b'{"query": ' + b'{"a":' * 100_000 + b"}",
        json.dumps({"query": "a"}).encode("utf-16"),
    ],
    ids=lambda raw: repr(raw[:30]),
)
def test_what_is_no_json_object_is_refused(api: Api, token: str, path: str, raw: bytes) -> None:
    is_problem(api.send("POST", path, token=token, raw=raw), 400)


@pytest.mark.parametrize("path", POSTS)
def test_a_body_over_the_limit_is_too_large(api: Api, token: str, path: str) -> None:
    filler = b" " * 1_000_001
    is_problem(api.send("POST", path, token=token, raw=b"{}" + filler), 413)
    is_problem(
        api.send("POST", path, token=token, raw=filler, headers={"content-type": "application/octet-stream"}), 400
    )


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
def test_another_content_type_is_refused(api: Api, token: str, path: str, content_type: str) -> None:
    reply = api.send("POST", path, token=token, body=BASE[path], headers={"content-type": content_type})
    is_problem(reply, 400, "content-type")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"project_ids": "x"}, "project_ids.0"),
        ({"project_ids": ""}, "project_ids.0"),
        ({"limit": "0"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"offset": "-1"}, "offset"),
        ({"offset": "9" * 400}, "offset"),
        ({"as": "root"}, "as"),
        ({"limit": "1\x00"}, "limit"),
    ],
)
def test_a_wrong_parameter_of_the_scope_is_named(api: Api, token: str, query: dict[str, str], field: str) -> None:
    is_problem(api.get("/access/scope", token, **query), 400, field)


def test_a_cursor_that_was_given_to_somebody_else_or_changed_is_refused(
    api: Api, token: str, token_of: Callable[[str], str]
) -> None:
    page = api.post("/search/filter", token, {"limit": 1}).json["page"]
    cursor = page["next_cursor"]
    assert api.post("/search/filter", token, {"limit": 1, "cursor": cursor}).status == 200
    is_problem(api.post("/search/filter", token_of("root"), {"cursor": cursor}), 400, "cursor")
    is_problem(api.post("/search/filter", token, {"cursor": cursor, "filters": {"language": "de"}}), 400, "cursor")
    changed = cursor[:50] + ("A" if cursor[50] != "A" else "B") + cursor[51:]
    for wrong in (changed, cursor[:-4], "", "x", cursor * 9):
        is_problem(api.post("/search/filter", token, {"cursor": wrong}), 400, "cursor")


def test_base64_that_is_none_is_refused(api: Api, token: str) -> None:
    from functions.search.handler import handler
    from local.lambda_context import LambdaContext

    event = {
        "routeKey": "POST /search",
        "headers": {"authorization": f"Bearer {token}", "content-type": "application/json"},
        "isBase64Encoded": True,
        "requestContext": {"requestId": "r-1"},
    }
    for body in ("!!!", "eyJ", "e" * 1_500_000, "ÄÖ"):
        answer = handler({**event, "body": body}, LambdaContext("search", "r-1"))
        assert answer["statusCode"] in {400, 413}
        assert json.loads(answer["body"])["correlation_id"] == "r-1"


@pytest.mark.parametrize("event", [{}, {"routeKey": "POST /nothing"}, {"routeKey": "POST /search", "headers": None}])
def test_an_event_of_another_shape_is_answered(firm: Firm, event: dict[str, Any]) -> None:
    from functions.search.handler import handler
    from local.lambda_context import LambdaContext

    assert handler(event, LambdaContext("search", "r-2"))["statusCode"] in {401, 404}


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer " + "a" * 9000, "Bearer a.b.c", "Bearer ..", "Bearer \udcff"],
    ids=lambda text: text[:12],
)
def test_without_a_valid_token_every_route_answers_401_before_anything_else(
    api: Api, firm: Firm, authorization: str
) -> None:
    for route in ROUTES:
        if route.function == "api":
            continue
        path = route.path.replace("{document_id}", str(firm.documents[CONTROL]))
        raw = b"{" if route.method == "POST" else None
        headers = {"authorization": authorization}
        reply = api.send(route.method, path, raw=raw, query={"odd": "1"}, headers=headers)
        is_problem(reply, 401)
        assert reply.headers["www-authenticate"] == 'Bearer realm="knowledge-index"'


def test_an_answer_never_repeats_the_query(api: Api, token: str) -> None:
    for body in ({"query": "zzgeheimzz", "limit": 0}, {"query": "zzgeheimzz" * 400}, {"zzgeheimzz": 1, "query": "a"}):
        detail = api.post("/search", token, body).json.get("detail", "")
        assert "zzgeheimzz" not in detail or body.get("query") == "a"
