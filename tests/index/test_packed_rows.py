"""Answers read in C, against the same answers read as JSON: what is not whole is left to the latter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.index.answers import Failure, packed_rows, packed_rows_at_once

SHARDS = {"total": 1, "successful": 1, "failed": 0}


def hit(row: object, score: object = 1.5) -> dict[str, Any]:
    return {"_score": score, "fields": {"row": row}}


def search(*hits: object, **changes: object) -> dict[str, Any]:
    whole = {"status": 200, "timed_out": False, "_shards": SHARDS, "hits": {"hits": list(hits)}} | changes
    return {name: value for name, value in whole.items() if value != "gone"}


def test_rows_and_scores_are_those_of_the_json() -> None:
    answer = {"responses": [search(hit(["ä b"]), hit(["c"], None)), search(), search(hits="gone")]}
    wanted = [[("ä b", 1.5), ("c", 0.0)], [], []]
    for ascii_only in (True, False):
        assert packed_rows_at_once(json.dumps(answer, ensure_ascii=ascii_only), expected=3) == wanted
    assert packed_rows(answer, expected=3, target="chunks") == wanted


@pytest.mark.parametrize(
    "response",
    [
        search(timed_out=True),
        search(timed_out="gone"),
        search(timed_out=0),
        search(_shards="gone"),
        search(_shards={"total": 2, "successful": 1, "failed": 0}),
        search(_shards={"total": 1, "successful": 1, "failed": 1}),
        search(_shards={"total": 0, "successful": 0, "failed": 0}),
        search(_shards={"total": 1, "successful": 1}),
        search(error={"type": "circuit_breaking_exception"}),
        search(error="refused"),
        [],
        None,
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_an_answer_that_is_not_whole_is_never_taken_at_once(response: object, place: int) -> None:
    responses = [search(hit(["a"])), search(hit(["b"]))]
    assert packed_rows_at_once(json.dumps({"responses": responses}), expected=2) is not None
    answer = {"responses": [*responses[:place], response, *responses[place + 1 :]]}
    assert packed_rows_at_once(json.dumps(answer), expected=2) is None
    assert isinstance(packed_rows(answer, expected=2, target="chunks"), Failure)


@pytest.mark.parametrize("row", [None, [], "a", [1], ["a", "b"]])
def test_a_row_of_another_form_is_not_taken_at_once(row: object) -> None:
    assert packed_rows_at_once(json.dumps({"responses": [search(hit(row))]}), expected=1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"responses": []}', '{"responses": {}}', "<html>"])
def test_garbage_is_not_taken_at_once(text: str) -> None:
    assert packed_rows_at_once(text, expected=1) is None
