from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

import pytest

from shared.ontology.tree import load_ontology
from shared.search import bodies
from shared.search.filters import filter_clauses
from shared.search.request import Filters
from tests.golden_files import assert_golden

SCOPE = {"terms": {"version_seq": [1, 2]}}
SOME = UUID("123e4567-e89b-12d3-a456-426614174000")
EVERY = Filters(
    project_id=SOME,
    matter_id=SOME,
    doc_type="contract",
    version_status="final",
    language="de",
    date_from=date(2024, 1, 1),
    date_to=date(2024, 12, 31),
    clause_type="term.termination",
    chunk_kind="chunk",
)
TREE = load_ontology(None)
STRICT = bodies.strict_filter(SCOPE, filter_clauses(EVERY, TREE))


def every_body() -> dict[str, Any]:
    query = "Kündigung VI ZR 194/17"
    return {
        "lexical": bodies.lexical_body(query, STRICT, size=400, minimum_should_match="-40%"),
        "semantic": bodies.semantic_body([0.5, -0.5], STRICT, size=400),
        "identifier": bodies.identifier_body(query, STRICT, size=400),
        "listing": bodies.listing_body(STRICT, size=41, heads_only=True, after=None),
        "listing_after": bodies.listing_body(STRICT, size=41, heads_only=False, after=[0, 7, 2]),
    }


@pytest.mark.golden
def test_bodies_are_as_reviewed() -> None:
    assert_golden("search_bodies.json", json.dumps(every_body(), indent=2, ensure_ascii=False) + "\n")


def test_every_body_carries_the_scope_first_and_unchanged_and_leaves_out_tombstones() -> None:
    for name, body in every_body().items():
        query = body["query"]
        clauses = query["knn"]["embedding"]["filter"]["bool"]["filter"] if "knn" in query else query["bool"]["filter"]
        assert clauses[0] == SCOPE, name
        assert clauses[1] == {"term": {"deleted": False}}, name
        assert "must_not" not in json.dumps(body), name
        assert body["_source"] is False, name
        assert body["track_total_hits"] is False, name


def test_without_a_gate_any_word_is_enough() -> None:
    body = bodies.lexical_body("Miete", STRICT, size=1, minimum_should_match=None)
    assert "minimum_should_match" not in json.dumps(body)


def test_one_number_alone_is_no_part_of_an_identifier() -> None:
    body = bodies.identifier_body("2020", STRICT, size=1)
    assert "match_phrase" not in json.dumps(body)


def test_no_filter_is_no_clause() -> None:
    assert filter_clauses(Filters(), TREE) == []


def test_an_open_range_has_one_bound() -> None:
    assert filter_clauses(Filters(date_to=date(2024, 1, 1)), TREE) == [{"range": {"doc_date": {"lte": "2024-01-01"}}}]


@pytest.mark.parametrize("value", [7, True, ["a"], {"a": 1}, datetime(2024, 1, 1, tzinfo=None)])  # noqa: DTZ001
def test_a_value_of_an_unknown_shape_is_never_left_out(value: Any) -> None:
    with pytest.raises(TypeError):
        filter_clauses(Filters.model_construct(doc_type=value), TREE)


@dataclass
class _Newer:
    colour: str

    def __iter__(self) -> Any:
        yield "colour", self.colour


def test_a_filter_without_a_clause_is_never_left_out() -> None:
    with pytest.raises(TypeError, match="colour"):
        filter_clauses(_Newer("red"), TREE)  # type: ignore[arg-type]
