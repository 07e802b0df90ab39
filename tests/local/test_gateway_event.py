"""Events are those of API Gateway, payload format 2.0; answers become the HTTP responses it would send."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from local.gateway_event import HttpRequest, MalformedAnswerError, build_event, to_response
from shared.runtime.routes import Route

NOW = datetime(2026, 3, 12, 19, 3, 58, 390000, tzinfo=UTC)
REQUEST_ID = "0c9a8f3e-6a55-4a55-9d43-0f0b7a3a8f21"
SEARCH = Route("POST", "/search", "search")
DOCUMENT = Route("GET", "/documents/{document_id}", "document")


def event_of(request, route=SEARCH, **path_parameters):
    return build_event(request, route, path_parameters=path_parameters, request_id=REQUEST_ID, now=NOW)


def test_a_request_with_everything_becomes_exactly_this_event():
    request = HttpRequest(
        method="GET",
        target="/documents/M%C3%BCller%202?page=2&tag=a&tag=b&empty=",
        headers=(
            ("Host", "127.0.0.1:8123"),
            ("User-Agent", "curl/8"),
            ("Authorization", "Bearer abc"),
            ("Accept", "application/json"),
            ("ACCEPT", "text/plain"),
            ("Cookie", "a=1; b=2"),
            ("Content-Type", "application/json; charset=utf-8"),
            ("X-Forwarded-For", "203.0.113.9"),
        ),
        body='{"query": "Kündigung"}'.encode(),
    )
    assert event_of(request, DOCUMENT, document_id="Müller 2") == {
        "version": "2.0",
        "routeKey": "GET /documents/{document_id}",
        "rawPath": "/documents/Müller 2",
        "rawQueryString": "page=2&tag=a&tag=b&empty=",
        "cookies": ["a=1", "b=2"],
        "headers": {
            "host": "127.0.0.1:8123",
            "user-agent": "curl/8",
            "authorization": "Bearer abc",
            "accept": "application/json,text/plain",
            "content-type": "application/json; charset=utf-8",
            "x-amzn-trace-id": "Root=1-0c9a8f3e-6a554a559d430f0b7a3a8f21",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "8123",
            "x-forwarded-proto": "http",
        },
        "queryStringParameters": {"page": "2", "tag": "a,b", "empty": ""},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": "127.0.0.1",
            "domainPrefix": "127",
            "http": {
                "method": "GET",
                "path": "/documents/Müller 2",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "curl/8",
            },
            "requestId": REQUEST_ID,
            "routeKey": "GET /documents/{document_id}",
            "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000",
            "timeEpoch": 1773342238390,
        },
        "pathParameters": {"document_id": "Müller 2"},
        "body": '{"query": "Kündigung"}',
        "isBase64Encoded": False,
    }


def test_what_is_empty_is_absent():
    event = event_of(HttpRequest("POST", "/search"))
    assert {"body", "cookies", "queryStringParameters", "pathParameters"}.isdisjoint(event)
    assert event["isBase64Encoded"] is False


def test_there_is_never_an_authorizer():
    event = event_of(HttpRequest("POST", "/search", (("Authorization", "Bearer x"),)))
    assert "authorizer" not in event["requestContext"]


@pytest.mark.parametrize(
    ("content_type", "body", "expected", "is_base64"),
    [
        ("application/json", b'{"a": 1}', '{"a": 1}', False),
        ("application/problem+json", b"{}", "{}", False),
        ("text/plain", "ä".encode(), "ä", False),
        ("application/json", b"\xff\xfe", "//4=", True),
        ("application/octet-stream", b"ab", "YWI=", True),
        ("application/x-www-form-urlencoded", b"a=1", "YT0x", True),
        ("", b"a", "YQ==", True),
    ],
)
def test_only_text_arrives_as_text(content_type, body, expected, is_base64):
    event = event_of(HttpRequest("POST", "/search", (("Content-Type", content_type),), body))
    assert (event["body"], event["isBase64Encoded"]) == (expected, is_base64)


def test_powertools_reads_the_event():
    request = HttpRequest("POST", "/search?a=1", (("content-type", "application/json"),), b'{"query": "x"}')
    event = APIGatewayProxyEventV2(event_of(request))
    assert (event.http_method, event.path, event.json_body) == ("POST", "/search", {"query": "x"})


def test_broken_percent_encoding_stays_valid_text():
    event = event_of(HttpRequest("POST", "/search/%ff?q=%ff"))
    assert event["rawPath"] == "/search/\ufffd"
    assert event["queryStringParameters"] == {"q": "\ufffd"}


def test_an_answer_becomes_a_response_with_each_cookie_apart():
    response = to_response(
        {
            "statusCode": 201,
            "headers": {"Content-Type": "text/plain", "X-Count": 3, "Content-Length": "99"},
            "cookies": ["a=1; HttpOnly", "b=2"],
            "body": "grün",
        }
    )
    assert response.status == 201
    assert response.headers == (("content-type", "text/plain"), ("x-count", "3"))
    assert response.cookies == ("a=1; HttpOnly", "b=2")
    assert response.body == "grün".encode()


def test_a_base64_answer_becomes_its_bytes():
    answer = {"statusCode": 200, "body": base64.b64encode(b"\x00\xff").decode(), "isBase64Encoded": True}
    assert to_response(answer).body == b"\x00\xff"


def test_an_answer_without_a_status_is_the_json_of_a_200():
    response = to_response({"a": 1})
    assert (response.status, response.body) == (200, b'{"a": 1}')
    assert response.headers == (("content-type", "application/json"),)


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": "200"},
        {"statusCode": True},
        {"statusCode": 99},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
        {"statusCode": 200, "headers": {"x": "a\r\nset-cookie: stolen=1"}},
        {"statusCode": 200, "cookies": ["a\nb"]},
        object(),
    ],
)
def test_an_answer_api_gateway_would_refuse_is_refused(answer):
    with pytest.raises(MalformedAnswerError):
        to_response(answer)
