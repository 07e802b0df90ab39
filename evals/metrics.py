"""Ranking metrics over one query's ranked ids and its judgements (qrels).

nDCG uses linear gains and the log2 discount of Järvelin and Kekäläinen (2002), as trec_eval's `ndcg_cut` does. A
judgement of 0 is "not relevant".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Qrels = Mapping[str, int]


def ndcg(ranked: Sequence[str], qrels: Qrels, *, at: int) -> float:
    """Return nDCG of the first `at` ids, 0..1; 0 when nothing is relevant."""
    gains = [qrels.get(item, 0) for item in _distinct(ranked)[:at]]
    ideal = _dcg(sorted(qrels.values(), reverse=True)[:at])
    return _dcg(gains) / ideal if ideal > 0 else 0.0


def reciprocal_rank(ranked: Sequence[str], qrels: Qrels, *, at: int) -> float:
    """Return 1 / rank of the first relevant id among the first `at` (rank from 1), else 0."""
    for rank, item in enumerate(_distinct(ranked)[:at], start=1):
        if qrels.get(item, 0) > 0:
            return 1.0 / rank
    return 0.0


def recall(ranked: Sequence[str], qrels: Qrels, *, at: int) -> float:
    """Return the share of relevant ids among the first `at`; 0 when nothing is relevant."""
    relevant = {item for item, gain in qrels.items() if gain > 0}
    return len(relevant.intersection(_distinct(ranked)[:at])) / len(relevant) if relevant else 0.0


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over a set's queries, each 0..1."""

    queries: int
    ndcg_10: float
    mrr_10: float
    recall_100: float


def mean_scores(runs: Mapping[str, Sequence[str]], qrels: Mapping[str, Qrels]) -> Scores:
    """Return the means over every judged query; a query without a run counts as an empty list."""
    if not qrels:
        raise ValueError("a set without judged queries measures nothing")
    count = len(qrels)
    return Scores(
        queries=count,
        ndcg_10=sum(ndcg(runs.get(q, ()), judged, at=10) for q, judged in qrels.items()) / count,
        mrr_10=sum(reciprocal_rank(runs.get(q, ()), judged, at=10) for q, judged in qrels.items()) / count,
        recall_100=sum(recall(runs.get(q, ()), judged, at=100) for q, judged in qrels.items()) / count,
    )


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def _distinct(ranked: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(ranked))
