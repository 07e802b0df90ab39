"""Events of API Gateway, read strictly."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidRequestError, TooLargeError
from shared.runtime.events import MAX_BODY_BYTES, MAX_DEPTH, HttpEvent, parse_json


def event(body: str | None = None, **changes: Any) -> HttpEvent:
    return HttpEvent.of({"routeKey": "POST /search", "body": body, **changes}, fallback_id="f")


def test_an_event_is_read_with_headers_in_any_case() -> None:
    read = HttpEvent.of(
        {
            "routeKey": "GET /x/{id}",
            "headers": {"Authorization": "Bearer t"},
            "pathParameters": {"id": "7"},
            "queryStringParameters": {"a": "1"},
            "requestContext": {"requestId": "r-1"},
        },
        fallback_id="f",
    )
    assert (read.route_key, read.correlation_id, read.headers["authorization"]) == ("GET /x/{id}", "r-1", "Bearer t")
    assert (read.path, read.query) == ({"id": "7"}, {"a": "1"})


def test_an_empty_event_is_read_too() -> None:
    assert HttpEvent.of({}, fallback_id="f").correlation_id == "f"


def test_a_body_is_read_as_text_and_as_base64() -> None:
    text = '{"query": "Kündigung 😀"}'
    packed = base64.b64encode(text.encode()).decode()
    assert event(text).json() == event(packed, isBase64Encoded=True).json() == {"query": "Kündigung 😀"}


def test_a_body_at_the_limit_is_read_and_one_byte_more_is_not() -> None:
    fits = '{"a": "' + "x" * (MAX_BODY_BYTES - 9) + '"}'
    assert len(fits) == MAX_BODY_BYTES
    for packed in (False, True):

        def sent(text: str, *, packed: bool = packed) -> HttpEvent:
            body = base64.b64encode(text.encode()).decode() if packed else text
            return event(body, isBase64Encoded=packed)

        assert sent(fits).json()
        with pytest.raises(TooLargeError):
            sent(fits + " ").json()
    # Bytes are counted, not characters.
    with pytest.raises(TooLargeError):
        event('{"a": "' + "ü" * (MAX_BODY_BYTES // 2) + '"}').json()


def test_nesting_is_read_down_to_the_limit() -> None:
    def nested(levels: int) -> bytes:
        return b"[" * levels + b"]" * levels

    assert parse_json(nested(MAX_DEPTH))
    with pytest.raises(InvalidRequestError, match="nested"):
        parse_json(nested(MAX_DEPTH + 1))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        parse_json(content)
    except InvalidRequestError as error:
        error.message.encode()  # nothing of the body that could not be sent


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner
    ),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_what_is_json_is_read_as_it_is(value: Any) -> None:
    import json

    assert parse_json(json.dumps(value).encode()) == value


def test_parameters_that_the_route_does_not_know_are_named() -> None:
    asked = event(queryStringParameters={"limit": "1", "as\x00": "root"})
    with pytest.raises(InvalidRequestError) as refused:
        asked.query_parameters(frozenset({"limit"}))
    assert refused.value.field == "as"
    assert event(queryStringParameters={"limit": "1"}).query_parameters(frozenset({"limit"})) == {"limit": "1"}
