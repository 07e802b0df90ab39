"""Reciprocal rank fusion of ranked lists (Cormack, Clarke and Büttcher 2009), with a weight a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def fused_scores(lists: Iterable[tuple[float, Sequence[str]]], *, rrf_k: int) -> dict[str, float]:
    """Return the score of each id: the sum over its lists of weight / (rrf_k + rank), ranks from 0.

    Lists may be empty, even all of them. They are added up in the order given, so equal input gives equal bits.
    """
    scores: dict[str, float] = {}
    for weight, ids in lists:
        for rank0, one in enumerate(ids):
            scores[one] = scores.get(one, 0.0) + weight / (rrf_k + rank0)
    return scores
