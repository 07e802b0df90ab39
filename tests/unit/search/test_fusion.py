from __future__ import annotations

import pytest

from shared.search.fusion import fused_scores, ranks0
from shared.search.priors import with_status
from shared.types import VersionStatus


def test_a_score_adds_up_weight_over_k_plus_rank_from_zero() -> None:
    lists = [(1.0, ranks0([("a", 9.0), ("b", 8.0)])), (1.5, ranks0([("b", 0.9)]))]
    assert fused_scores(lists, rrf_k=60) == {"a": 1 / 60, "b": 1 / 61 + 1.5 / 60}


def test_empty_lists_add_nothing() -> None:
    assert fused_scores([(1.0, {}), (1.0, {"a": 0}), (1.0, {})], rrf_k=60) == {"a": 1 / 60}
    assert fused_scores([], rrf_k=60) == {}


def test_equals_share_the_rank_of_the_first_and_the_next_counts_all_above_it() -> None:
    assert ranks0([("a", 3.0), ("b", 2.0), ("c", 2.0), ("d", 1.0)]) == {"a": 0, "b": 1, "c": 1, "d": 3}


@pytest.mark.parametrize(("status", "score"), [("executed", 1.2), ("final", 1.0), ("draft", 0.7), ("unknown", 1.0)])
def test_a_status_multiplies_and_one_that_is_not_listed_does_not(status: str, score: float) -> None:
    boosts = {"executed": 1.2, "final": 1.0, "draft": 0.7}
    assert with_status([1.0, 2.0], [VersionStatus(status), status], boosts) == [score, 2 * score]
