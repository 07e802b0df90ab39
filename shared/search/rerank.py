"""A model's second look at the first hits: it reorders, it never drops, and its error is the search's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

RERANKED: Final = 20

Result = dict[str, Any]


class Reranker(Protocol):
    """A model that judges passages."""

    def scores(self, query: str, passages: Mapping[str, str]) -> Mapping[str, float]:
        """Return a relevance from 0 to 10 by key of `passages`; what it cannot judge is left out. Raises on failure."""


def reranked(query: str, results: Sequence[Result], reranker: Reranker) -> list[Result]:
    """Return all results: those that the model judged by its scores, then everything else in the order it came in."""
    first = results[:RERANKED]
    passages = {str(at): f"{one['title']}\n{one['excerpt']}" for at, one in enumerate(first)}
    scores = reranker.scores(query, passages) if passages else {}
    judged = [at for at in range(len(first)) if str(at) in scores]
    judged.sort(key=lambda at: -scores[str(at)])
    rest = [at for at in range(len(results)) if at >= len(first) or str(at) not in scores]
    return [
        *({**results[at], "score": float(scores[str(at)])} for at in judged),
        *(results[at] for at in rest),
    ]
