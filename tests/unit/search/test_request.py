from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidRequestError
from shared.search.request import SearchRequest, parse_filter, parse_search
from shared.settings import load_settings

RETRIEVAL = load_settings({}).retrieval
SOME_ID = "123e4567-e89b-12d3-a456-426614174000"
OTHER_ID = "123e4567-e89b-12d3-a456-426614174001"


def parsed(**body: Any) -> SearchRequest:
    return parse_search({"query": "Miete", **body}, RETRIEVAL)


def refused_field(**body: Any) -> str | None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed(**body)
    return caught.value.field


def test_a_query_alone_asks_for_the_first_eight() -> None:
    request = parsed()
    assert (request.query, request.limit, request.offset, request.window) == ("Miete", 8, 0, 8)
    assert request.narrowed_to is None


def test_a_query_is_normalised_like_what_is_searched() -> None:
    assert parsed(query=" VI\u00a0ZR 194\u201117\x00\ud800 ").query == "VI ZR 194-17"


@pytest.mark.parametrize(
    ("pasted", "query"),
    [
        ("g%C3%BCtersloh", "gütersloh"),
        ("gu%cc%88tersloh", "gütersloh"),
        ("K%C3%BCndigung%20M%C3%BCller", "Kündigung Müller"),
        ("100%25 von 50%", "100%25 von 50%"),
        ("g%C3%BCtersloh und %FF", "g%C3%BCtersloh und %FF"),
        ("%C3", "%C3"),
    ],
)
def test_letters_out_of_an_address_are_letters(pasted: str, query: str) -> None:
    assert parsed(query=pasted).query == query


def test_a_limit_over_the_maximum_is_clamped_and_echoed() -> None:
    assert parsed(limit=10**30).limit == 100
    assert parse_filter({"limit": 101}).limit == 100


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 0),
        ("limit", -1),
        ("limit", True),
        ("limit", "8"),
        ("limit", 8.0),
        ("limit", None),
        ("offset", -1),
        ("offset", False),
        ("offset", 493),
        ("offset", 10**30),
        ("query", None),
        ("query", 7),
        ("query", ["Miete"]),
        ("query", " \u00ad "),
        ("query", "x" * 2001),
        ("filters", "Miete"),
        ("project_ids", "all"),
        ("project_ids", []),
        ("principals", ["role:admin"]),
        ("Query", "Miete"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    assert refused_field(**{field: value}) == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("date_from", "2024-02"),
        ("date_from", "2024-02-30"),
        ("date_from", "01.02.2024"),
        ("date_from", "2024-02-01T00:00:00Z"),
        ("date_from", 20240201),
        ("date_to", True),
        ("date_to", ""),
        ("project_id", "nord"),
        ("project_id", 7),
        ("matter_id", "{" + SOME_ID + "}"),
        ("version_status", "signed"),
        ("chunk_kind", "page"),
        ("doc_type", " "),
        ("doc_type", ["contract"]),
        ("language", "x" * 201),
        ("allowed_principals", "user:anna"),
    ],
)
def test_a_wrong_filter_is_named(field: str, value: Any) -> None:
    assert refused_field(filters={field: value}) == f"filters.{field}"


def test_a_range_that_runs_backwards_is_refused_and_one_day_is_not() -> None:
    assert refused_field(filters={"date_from": "2024-02-02", "date_to": "2024-02-01"}) == "filters.date_from"
    filters = parsed(filters={"date_from": "2024-02-01", "date_to": "2024-02-01"}).filters
    assert filters.date_from == filters.date_to == date(2024, 2, 1)
    assert not isinstance(filters.date_from, datetime)


def test_one_project_that_is_wrong_among_others_is_named_by_its_place() -> None:
    assert refused_field(project_ids=[SOME_ID, "nord"]) == "project_ids.1"


def test_both_ways_to_name_projects_narrow_to_what_they_share() -> None:
    some, other = UUID(SOME_ID), UUID(OTHER_ID)
    assert parsed(project_ids=[SOME_ID, OTHER_ID]).narrowed_to == [some, other]
    assert parsed(filters={"project_id": SOME_ID}).narrowed_to == [some]
    assert parsed(project_ids=[SOME_ID, OTHER_ID], filters={"project_id": OTHER_ID}).narrowed_to == [other]
    assert parsed(project_ids=[SOME_ID], filters={"project_id": OTHER_ID}).narrowed_to == []


def test_an_error_never_quotes_the_query() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_search({"query": "geheim" * 1000}, RETRIEVAL)
    assert "geheim" not in caught.value.message


def test_a_list_takes_a_cursor_or_an_offset() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_filter({"cursor": "x", "offset": 1})
    assert caught.value.field == "cursor"
    with pytest.raises(InvalidRequestError):
        parse_filter({"query": "Miete"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(["query", "filters", "limit", "offset", "project_ids", "cursor", "x"]), json_values, max_size=5
    )
)
def test_whatever_comes_is_parsed_or_refused(body: dict[str, Any]) -> None:
    for parse in (lambda: parse_search(body, RETRIEVAL), lambda: parse_filter(body)):
        try:
            parse()
        except InvalidRequestError as error:
            error.message.encode()
