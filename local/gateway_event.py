"""HTTP requests as API Gateway HTTP API events (payload format 2.0), and the answers of handlers as HTTP responses.

Source: "Create AWS Lambda proxy integrations for HTTP APIs" in the API Gateway developer guide.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from shared.runtime.routes import Route

ACCOUNT = "000000000000"
API_ID = "local"
STAGE = "$default"

# Bodies of these types arrive as text, all others in base64.
_TEXT_TYPE = re.compile(r"text/.+|application/(.+\+)?(json|xml)|application/javascript")
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class MalformedAnswerError(ValueError):
    """A handler returned what API Gateway does not take for a response."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came: `target` is the path with the query as sent, header names in any case."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    source_ip: str = "127.0.0.1"
    protocol: str = "HTTP/1.1"

    @property
    def path(self) -> str:
        """The path without the query, percent-decoded."""
        return unquote(self.target.partition("?")[0], errors="replace")

    @property
    def query(self) -> str:
        """The query as sent, without the question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response; each cookie becomes a `set-cookie` header of its own."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    cookies: Sequence[str] = ()


def build_event(
    request: HttpRequest,
    route: Route,
    *,
    path_parameters: Mapping[str, str],
    request_id: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the event a handler gets for the request. Optional fields are absent when they are empty.

    There is no `authorizer`: handlers verify the token themselves, here as in production.
    """
    headers, cookies = _headers(request.headers)
    body, is_base64 = _body(request.body, headers.get("content-type", ""))
    host = headers.get("host", "localhost")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": {**headers, **_forwarding(request, host, request_id)},
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": API_ID,
            "domainName": host.partition(":")[0],
            "domainPrefix": host.partition(":")[0].partition(".")[0],
            "http": {
                "method": request.method,
                "path": request.path,
                "protocol": request.protocol,
                "sourceIp": request.source_ip,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": route.key,
            "stage": STAGE,
            "time": now.astimezone(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(now.timestamp() * 1000),
        },
        "isBase64Encoded": is_base64,
    }
    if cookies:
        event["cookies"] = cookies
    if request.query:
        event["queryStringParameters"] = _joined(parse_qsl(request.query, keep_blank_values=True, errors="replace"))
    if path_parameters:
        event["pathParameters"] = dict(path_parameters)
    if body is not None:
        event["body"] = body
    return event


def to_response(answer: object) -> HttpResponse:
    """Return the HTTP response of what a handler returned.

    An answer without `statusCode` is itself the JSON body of a 200, as API Gateway infers it. Raises
    `MalformedAnswerError`.
    """
    if not isinstance(answer, Mapping) or "statusCode" not in answer:
        return HttpResponse(200, (("content-type", "application/json"),), _json(answer))
    status = answer["statusCode"]
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:  # noqa: PLR2004
        raise MalformedAnswerError(f"statusCode is {status!r}")
    headers = tuple(
        (str(name).lower(), _value(value))
        for name, value in (answer.get("headers") or {}).items()
        if str(name).lower() != "content-length"  # the server counts for itself
    )
    cookies = tuple(_value(cookie) for cookie in answer.get("cookies") or ())
    body = _answer_body(answer)
    if body and not any(name == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", "application/json"))
    return HttpResponse(status, headers, body, cookies)


def _headers(sent: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Return the headers, lower-cased and joined by commas, and the cookies, which are taken out of them."""
    pairs = [(name.lower(), value.strip()) for name, value in sent]
    cookies = [
        cookie.strip() for name, value in pairs if name == "cookie" for cookie in value.split(";") if cookie.strip()
    ]
    return _joined((name, value) for name, value in pairs if name != "cookie"), cookies


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _forwarding(request: HttpRequest, host: str, request_id: str) -> dict[str, str]:
    """Return the headers API Gateway adds, whatever the client claimed in their place."""
    return {
        "x-amzn-trace-id": f"Root=1-{request_id.replace('-', '')[:8]}-{request_id.replace('-', '')[8:32]}",
        "x-forwarded-for": request.source_ip,
        "x-forwarded-port": host.partition(":")[2] or "80",
        "x-forwarded-proto": "http",
    }


def _body(body: bytes, content_type: str) -> tuple[str | None, bool]:
    if not body:
        return None, False
    if _TEXT_TYPE.fullmatch(content_type.partition(";")[0].strip().lower()):
        try:
            return body.decode("utf-8"), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode("ascii"), True


def _answer_body(answer: Mapping[str, Any]) -> bytes:
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedAnswerError(f"body is a {type(body).__name__}, not a string")
    if not answer.get("isBase64Encoded"):
        return body.encode("utf-8", errors="replace")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise MalformedAnswerError("body is not base64 although isBase64Encoded says so") from error


def _value(value: object) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    if _NOT_IN_A_HEADER.search(text):
        raise MalformedAnswerError("a header value holds a control character")
    return text


def _json(answer: object) -> bytes:
    try:
        return json.dumps(answer).encode()
    except (TypeError, ValueError) as error:
        raise MalformedAnswerError(f"the answer is not JSON: {error}") from error
