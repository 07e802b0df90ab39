from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import ProviderUnavailableError
from shared.search.rerank import reranked


class Judge:
    """Scores what it knows by title, and remembers how many passages it was shown."""

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        self.shown = 0

    def scores(self, query: str, passages: Mapping[str, str]) -> Mapping[str, float]:  # noqa: ARG002
        self.shown = len(passages)
        titles = {key: text.partition("\n")[0] for key, text in passages.items()}
        return {key: self._scores[title] for key, title in titles.items() if title in self._scores}


class Away:
    def scores(self, query: str, passages: Mapping[str, str]) -> Mapping[str, float]:  # noqa: ARG002
        raise ProviderUnavailableError


def results(count: int) -> list[dict[str, Any]]:
    return [{"title": str(number), "excerpt": "", "score": 1.0 / (1 + number)} for number in range(count)]


def test_what_was_judged_comes_first_and_nothing_is_dropped() -> None:
    judge = Judge({"2": 9.0, "4": 3.0, "0": 3.0})
    assert [one["title"] for one in reranked("Miete", results(6), judge)] == ["2", "0", "4", "1", "3", "5"]


def test_only_the_first_twenty_are_judged() -> None:
    judge = Judge({"19": 1.0, "20": 10.0})
    titles = [one["title"] for one in reranked("Miete", results(25), judge)]
    assert judge.shown == 20
    assert titles == ["19", *map(str, range(19)), *map(str, range(20, 25))]


def test_a_judgement_replaces_the_score() -> None:
    assert reranked("Miete", results(1), Judge({"0": 7}))[0]["score"] == 7.0


def test_an_error_of_the_model_is_the_error_of_the_search() -> None:
    with pytest.raises(ProviderUnavailableError):
        reranked("Miete", results(2), Away())


def test_no_results_need_no_model() -> None:
    assert reranked("Miete", [], Away()) == []
