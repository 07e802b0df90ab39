from __future__ import annotations

import base64
import json

import pytest

from shared.errors import InvalidRequestError
from shared.search.cursor import Position, decode, encode
from shared.search.request import FilterRequest, parse_filter

POSITION = Position(day=1_709_251_200_000, version_seq=7, seen=20)


def asked(cursor: str | None = None, language: str = "de") -> FilterRequest:
    return parse_filter({"filters": {"language": language}, **({} if cursor is None else {"cursor": cursor})})


def test_a_cursor_leads_back_to_its_position() -> None:
    assert decode(asked(encode(POSITION, asked()))) == POSITION
    assert decode(asked()) is None


def test_a_cursor_goes_on_behind_all_rows_of_its_version() -> None:
    assert POSITION.after == [1_709_251_200_000, 7, 2**31 - 1]


def test_a_cursor_of_other_filters_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="other filters") as caught:
        decode(asked(encode(POSITION, asked()), language="en"))
    assert caught.value.field == "cursor"


def test_the_limit_may_change_between_pages() -> None:
    cursor = encode(POSITION, asked())
    assert decode(parse_filter({"filters": {"language": "de"}, "cursor": cursor, "limit": 3})) == POSITION


def _forged(body: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "ä",
        "[" * 1000,
        _forged([]),
        _forged({"a": 1}),
        _forged([1, "x", 1, 1]),
        _forged([1, "x", 1, 1, 1, 1]),
        _forged([1, "x", True, 1, 1]),
        _forged([1, "x", 2**63, 1, 1]),
        _forged([1, "x", 1, 1, -1]),
        _forged([1, "x", 1.5, 1, 1]),
        _forged([2, "x", 1, 1, 1]),
        base64.urlsafe_b64encode(b"[" * 700).decode().rstrip("="),
    ],
)
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode(asked(cursor))
    assert caught.value.field == "cursor"
