import math

import pytest

from evals.metrics import mean_scores, ndcg, recall, reciprocal_rank

JUDGED = {"a": 2, "b": 1, "c": 0}


def test_ndcg_of_the_ideal_order_is_one_and_of_the_reverse_order_as_computed_by_hand() -> None:
    assert ndcg(["a", "b", "c"], JUDGED, at=10) == 1.0
    reverse = (1 / math.log2(3) + 2 / math.log2(4)) / (2 / math.log2(2) + 1 / math.log2(3))
    assert ndcg(["c", "b", "a"], JUDGED, at=10) == pytest.approx(reverse)


def test_a_cut_counts_only_what_stands_before_it() -> None:
    assert ndcg(["c", "b", "a"], JUDGED, at=1) == 0.0
    assert reciprocal_rank(["c", "b"], JUDGED, at=1) == 0.0
    assert reciprocal_rank(["c", "b"], JUDGED, at=2) == 0.5
    assert recall(["a", "c"], JUDGED, at=100) == 0.5


def test_a_doubled_id_counts_once() -> None:
    assert ndcg(["a", "a", "b"], JUDGED, at=2) == 1.0


def test_a_query_without_an_answer_counts_as_zero() -> None:
    scores = mean_scores({"q1": ["a"]}, {"q1": {"a": 1}, "q2": {"b": 1}})
    assert (scores.queries, scores.ndcg_10, scores.mrr_10, scores.recall_100) == (2, 0.5, 0.5, 0.5)


def test_a_set_without_judgements_is_refused() -> None:
    with pytest.raises(ValueError, match="judged"):
        mean_scores({}, {})
