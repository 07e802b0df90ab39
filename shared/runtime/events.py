"""An API Gateway event (HTTP API, payload format 2.0) as what a route works with; refuses what no route can mean."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from shared.errors import InvalidRequestError, TooLargeError

MAX_BODY_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 32
_MAX_BASE64_CHARS: Final = -(-MAX_BODY_BYTES // 3) * 4
_JSON_TYPES: Final = ("application/json", "application/problem+json")


@dataclass(frozen=True, slots=True)
class HttpEvent:
    """One request. Header names are in lower case; the path and the query are decoded."""

    route_key: str
    correlation_id: str
    headers: Mapping[str, str]
    path: Mapping[str, str]
    query: Mapping[str, str]
    raw_body: str | None
    is_base64: bool

    @classmethod
    def of(cls, event: Mapping[str, Any], *, fallback_id: str) -> HttpEvent:
        """Return the request in an event as API Gateway sends it. `fallback_id` stands in for a missing request id."""
        context = event.get("requestContext") or {}
        return cls(
            route_key=str(event.get("routeKey", "")),
            correlation_id=str(context.get("requestId") or fallback_id),
            headers={str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()},
            path=dict(event.get("pathParameters") or {}),
            query=dict(event.get("queryStringParameters") or {}),
            raw_body=event.get("body"),
            is_base64=bool(event.get("isBase64Encoded")),
        )

    def json(self) -> dict[str, Any]:
        """Return the JSON object in the body.

        Raises `TooLargeError` over 1 MB, and `InvalidRequestError` for everything that is not one unambiguous JSON
        object: other content types, NaN, a key given twice, numbers without end, nesting without end, characters
        that no text can hold.
        """
        content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type and content_type not in _JSON_TYPES:
            raise InvalidRequestError("send the body as application/json", field="content-type")
        body = parse_json(self._bytes())
        if not isinstance(body, dict):
            raise InvalidRequestError("the body must be a JSON object")
        return body

    def query_parameters(self, allowed: frozenset[str] = frozenset()) -> dict[str, str]:
        """Return the query's parameters; raise `InvalidRequestError` naming one that the route does not know."""
        for name, value in self.query.items():
            if name not in allowed:
                raise InvalidRequestError(
                    f"unknown parameter; known are: {', '.join(sorted(allowed)) or 'none'}", field=_shown(name)
                )
            if _is_unstorable(value):
                raise InvalidRequestError("holds characters that no text can hold", field=name)
        return dict(self.query)

    def _bytes(self) -> bytes:
        body = self.raw_body
        if not body:
            raise InvalidRequestError("a JSON object is expected as the body")
        if len(body) > (_MAX_BASE64_CHARS if self.is_base64 else MAX_BODY_BYTES):
            raise _too_large()
        if not self.is_base64:
            content = body.encode("utf-8", "surrogatepass")
        else:
            try:
                content = base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError) as error:
                raise InvalidRequestError("the body is not what its encoding says") from error
        if len(content) > MAX_BODY_BYTES:
            raise _too_large()
        return content


def parse_json(content: bytes) -> Any:
    """Return what the JSON text says; raise `InvalidRequestError` if it is ambiguous or no JSON (RFC 8259)."""
    try:
        body = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except InvalidRequestError:
        raise
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and integers of thousands of digits, too
        raise InvalidRequestError("the body is not valid JSON in UTF-8") from error
    _refuse_depth_and_odd_text(body)
    return body


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidRequestError("the body gives a key twice")
    return found


def _refuse_constant(_name: str) -> NoReturn:
    raise InvalidRequestError("the body holds a number that JSON does not know")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidRequestError("the body holds a number out of range")
    return number


def _refuse_depth_and_odd_text(body: object) -> None:
    """Raise `InvalidRequestError` for deep nesting and for text that PostgreSQL and UTF-8 cannot hold."""
    level: list[object] = [body]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, str) and _is_unstorable(value):
                raise InvalidRequestError("the body holds characters that no text can hold (NUL or half a character)")
            if isinstance(value, dict):
                below.extend(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise InvalidRequestError(f"the body is nested more than {MAX_DEPTH} levels deep")


def _is_unstorable(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def _shown(name: str) -> str:
    return "".join(character for character in name[:60] if character.isprintable())


def _too_large() -> TooLargeError:
    return TooLargeError(f"the body is larger than {MAX_BODY_BYTES} bytes")
