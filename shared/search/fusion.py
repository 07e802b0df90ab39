"""Reciprocal rank fusion of ranked lists (Cormack, Clarke and Büttcher 2009), with a weight a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def fused_scores(lists: Iterable[tuple[float, Mapping[str, int]]], *, rrf_k: int) -> dict[str, float]:
    """Return the score of each id: the sum over its lists of weight / (rrf_k + rank), ranks from 0.

    Lists may be empty, even all of them. They are added up in the order given, so equal input gives equal bits.
    """
    scores: dict[str, float] = {}
    for weight, ranks in lists:
        for one, rank0 in ranks.items():
            scores[one] = scores.get(one, 0.0) + weight / (rrf_k + rank0)
    return scores


def ranks0(scored: Sequence[tuple[str, float]]) -> dict[str, int]:
    """Return the rank of each id, from 0: how many stand strictly above it. `scored` is in descending order.

    Equals share a rank: a file number is found alike in every chunk of its document, and which of them is shown must
    not depend on the order in which the engine happens to list them.
    """
    ranks: dict[str, int] = {}
    rank0, above = 0, None
    for at, (one, score) in enumerate(scored):
        if score != above:
            rank0, above = at, score
        ranks.setdefault(one, rank0)
    return ranks
