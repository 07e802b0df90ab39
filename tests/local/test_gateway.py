"""The gateway finds the function of a route, holds the limits and answers side by side."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.gateway import MAX_INVOCATION_BYTES, MAX_REQUEST_BYTES, Gateway
from local.gateway_event import HttpRequest
from shared.runtime.routes import ROUTES, Route

JSON = (("content-type", "application/json"),)


def echo(event, context):
    answer = {"route": event["routeKey"], "parameters": event.get("pathParameters"), "by": context.function_name}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(answer)}


def gateway_to(handler, routes=ROUTES):
    return Gateway(routes, load=lambda _function: handler)


def problem_of(response):
    assert ("content-type", "application/problem+json") in response.headers
    return json.loads(response.body)


@pytest.mark.parametrize(
    ("method", "target", "route", "parameters", "function"),
    [
        ("POST", "/search", "POST /search", None, "search"),
        ("POST", "/search/filter?x=1", "POST /search/filter", None, "search_filter"),
        ("GET", "/documents/7", "GET /documents/{document_id}", {"document_id": "7"}, "document"),
        (
            "GET",
            "/documents/a%2Fb/download",
            "GET /documents/{document_id}/download",
            {"document_id": "a/b"},
            "document",
        ),
        ("GET", "/access/scope", "GET /access/scope", None, "search"),
        ("GET", "/health", "GET /health", None, "api"),
        ("GET", "/openapi.json", "GET /openapi.json", None, "api"),
    ],
)
def test_each_route_reaches_its_function(method, target, route, parameters, function):
    answer = json.loads(gateway_to(echo).handle(HttpRequest(method, target)).body)
    assert answer == {"route": route, "parameters": parameters, "by": function}


@pytest.mark.parametrize("target", ["/", "/nothing", "/search/", "/documents", "/documents/", "/documents/1/2/3", "x"])
def test_an_unknown_path_is_404(target):
    response = gateway_to(echo).handle(HttpRequest("GET", target))
    assert response.status == 404
    assert problem_of(response)["title"] == "Not Found"


def test_a_wrong_method_is_405_and_names_the_right_ones():
    response = gateway_to(echo).handle(HttpRequest("GET", "/search"))
    assert response.status == 405
    assert ("allow", "POST") in response.headers
    assert problem_of(response)["status"] == 405


def test_a_literal_segment_beats_a_parameter():
    routes = (Route("GET", "/documents/{document_id}", "document"), Route("GET", "/documents/mine", "mine"))
    answer = json.loads(gateway_to(echo, routes).handle(HttpRequest("GET", "/documents/mine")).body)
    assert answer["by"] == "mine"


@pytest.mark.parametrize(
    ("content_type", "size", "status"),
    [
        ("application/json", MAX_INVOCATION_BYTES, 200),
        ("application/json", MAX_INVOCATION_BYTES + 1, 413),
        ("application/octet-stream", MAX_INVOCATION_BYTES * 3 // 4 + 3, 413),
        ("application/json", MAX_REQUEST_BYTES + 1, 413),
    ],
)
def test_a_body_that_lambda_would_not_take_is_413(content_type, size, status):
    request = HttpRequest("POST", "/search", (("content-type", content_type),), b"a" * size)
    assert gateway_to(echo).handle(request).status == status


def test_an_answer_larger_than_lambda_allows_is_an_error():
    large = gateway_to(lambda _event, _context: {"statusCode": 200, "body": "a" * (MAX_INVOCATION_BYTES + 1)})
    assert large.handle(HttpRequest("POST", "/search")).status == 500


def test_a_function_that_fails_is_a_500_that_says_nothing_about_it(capsys):
    def fails(event, context):
        raise KeyError("secret detail")

    gateway = gateway_to(fails)
    response = gateway.handle(HttpRequest("POST", "/search"))
    assert response.status == 500
    assert b"secret" not in response.body
    assert "secret detail" in capsys.readouterr().err


def test_a_function_that_cannot_be_imported_is_tried_again_at_the_next_request():
    calls = []

    def load(function):
        calls.append(function)
        if len(calls) == 1:
            raise ImportError("half written")
        return echo

    gateway = Gateway(load=load)
    statuses = [gateway.handle(HttpRequest("POST", "/search")).status for _ in range(3)]
    assert (statuses, calls) == ([500, 200, 200], ["search", "search"])


def test_a_query_is_never_logged(capsys):
    gateway_to(echo).handle(HttpRequest("GET", "/access/scope?project_ids=very-private", JSON))
    logged = capsys.readouterr().err
    assert '"route": "GET /access/scope"' in logged
    assert "very-private" not in logged


def test_events_are_answered_side_by_side_and_a_function_is_loaded_once():
    inside = threading.Barrier(4)
    loaded = []

    def handler(event, context):
        inside.wait(timeout=20)  # passes only when all four are here
        return {"statusCode": 200, "body": event["requestContext"]["requestId"]}

    def load(function):
        loaded.append(function)
        return handler

    gateway = Gateway(load=load)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: gateway.handle(HttpRequest("GET", "/health")), range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert len({answer.body for answer in answers}) == 4
    assert loaded == ["api"]


def test_the_context_tells_what_lambda_tells():
    seen = []

    def handler(event, context):
        seen.append(context)
        return {"statusCode": 200}

    gateway_to(handler).handle(HttpRequest("GET", "/health"))
    context = seen[0]
    assert context.function_name == "api"
    assert context.invoked_function_arn.endswith(":function:api")
    assert context.memory_limit_in_mb == 1024
    assert 29_000 < context.get_remaining_time_in_millis() <= 30_000
    assert len(context.aws_request_id) == 36
