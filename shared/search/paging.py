"""How deep the legs look, and the one order that all pages are cut from (docs/adr/0006-stable-pages.md).

The order is that of a small pool, then what a large pool adds, in its own order. A page that needs the large pool only
sends both, so what a reader has seen on page one never moves when page two is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from shared.index.answers import RankedRow
from shared.index.row_ref import RowRef
from shared.search.fusion import fused_scores, ranks0
from shared.search.priors import with_status
from shared.settings import Retrieval

SMALL_POOL: Final = 400
LARGE_POOL: Final = 2500
_OVERSAMPLING: Final = 5
_LEAST: Final = 50


class Leg(StrEnum):
    """One way to rank."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    IDENTIFIER = "identifier"


class Asked(NamedTuple):
    """A leg and how many rows it is asked for."""

    leg: Leg
    size: int


class Candidate(NamedTuple):
    """A row with its place: rows of one place are tied. `by_identifier`: its version is in the identifier leg."""

    place: int
    score: float
    ref: RowRef
    by_identifier: bool


class Candidates(NamedTuple):
    """All candidates in order, and whether a leg held more rows than it was asked for."""

    ordered: list[Candidate]
    is_cut: bool


def pool_size(window: int, *, factor: int) -> int:
    """Return how many rows a leg is asked for when the page reaches down to `window`: one of two sizes."""
    wanted = min(max(window * factor * _OVERSAMPLING, _LEAST), LARGE_POOL)
    return SMALL_POOL if wanted <= SMALL_POOL else LARGE_POOL


def legs_for(pool: int, retrieval: Retrieval) -> list[Asked]:
    """Return the searches to send: none for a leg that weighs nothing.

    With the large pool the semantic leg goes out in both sizes: a graph that is searched for more neighbours does not
    begin with what it finds when searched for fewer.
    """
    asked = [Asked(leg, pool) for leg in Leg if weight_of(leg, retrieval)]
    if pool > SMALL_POOL and retrieval.weight_semantic:
        asked.append(Asked(Leg.SEMANTIC, SMALL_POOL))
    return asked


def weight_of(leg: Leg, retrieval: Retrieval) -> float:
    """Return the leg's share in the fusion."""
    return {
        Leg.LEXICAL: retrieval.weight_lexical,
        Leg.SEMANTIC: retrieval.weight_semantic,
        Leg.IDENTIFIER: retrieval.weight_identifier,
    }[leg]


def candidates(answers: Mapping[Asked, Sequence[RankedRow]], retrieval: Retrieval) -> Candidates:
    """Return all rows of the legs in the total order: pool, score descending, version, kind, ordinal."""
    largest = max((asked.size for asked in answers), default=0)
    is_cut = any(len(answer) >= asked.size for asked, answer in answers.items() if asked.size == largest)
    rows: dict[Asked, Rows] = {}
    known: dict[str, RowRef] = {}
    identified: set[int] = set()
    for asked, answer in answers.items():
        rows[asked] = [(row.chunk_id, row.score) for row in answer]
        for row in answer:
            if row.chunk_id not in known:
                known[row.chunk_id] = row.ref
        if asked.leg is Leg.IDENTIFIER:
            identified.update(known[row.chunk_id].version_seq for row in answer)
    ordered: list[Candidate] = []
    place, seen = -1, set[str]()
    for pool in sorted({min(largest, SMALL_POOL), largest}):
        before: float | None = None
        for negative, version_seq, _, _, ref in _scored(_at(rows, pool), known, retrieval):
            if ref.chunk_id in seen:
                continue
            seen.add(ref.chunk_id)
            place += negative != before
            before = negative
            ordered.append(Candidate(place, -negative, ref, version_seq in identified))
    return Candidates(ordered, is_cut)


def prefix(ordered: Sequence[Candidate], *, hits: int, rows_per_document: int | None) -> int:
    """Return how many candidates hold so many hits, all ties of the last one included.

    With `rows_per_document` a hit is a row, at most so many of a document; else a hit is a document.
    """
    found, per_document = 0, dict[str, int]()
    for at, one in enumerate(ordered):
        rows = per_document.get(one.ref.document_id, 0)
        per_document[one.ref.document_id] = rows + 1
        found += rows < (rows_per_document or 1)
        if found >= hits:
            return _end_of_place(ordered, at)
    return len(ordered)


def _end_of_place(ordered: Sequence[Candidate], at: int) -> int:
    end = at + 1
    while end < len(ordered) and ordered[end].place == ordered[at].place:
        end += 1
    return end


Rows = list[tuple[str, float]]
_Scored = tuple[float, int, str, int, RowRef]
"""A row as it sorts: by its score, the highest first, then by version, kind and ordinal."""


def _at(rows: Mapping[Asked, Rows], pool: int) -> dict[Leg, dict[str, int]]:
    """Return the ranks in each leg as if it had been asked for `pool` rows."""
    lists: dict[Leg, dict[str, int]] = {}
    for asked in sorted(rows, key=lambda one: one.size):
        # Exactly this size if it was sent, else the beginning of a larger one.
        if asked.size >= pool and asked.leg not in lists:
            lists[asked.leg] = ranks0(rows[asked][:pool])
    return lists


def _scored(lists: Mapping[Leg, Mapping[str, int]], known: Mapping[str, RowRef], retrieval: Retrieval) -> list[_Scored]:
    """Return the rows in order."""
    weighted = [(weight_of(leg, retrieval), lists[leg]) for leg in Leg if leg in lists]
    boosts = retrieval.version_status_boost
    scored: list[_Scored] = []
    for chunk_id, score in fused_scores(weighted, rrf_k=retrieval.fusion_rrf_k).items():
        ref = known[chunk_id]
        scored.append((-with_status(score, ref.status, boosts), ref.version_seq, ref.kind, ref.ordinal, ref))
    scored.sort()
    return scored
