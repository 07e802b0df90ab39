"""How deep the legs look, and the one order that all pages are cut from (docs/adr/0006-stable-pages.md).

The order is that of a small pool, then what a large pool adds, in its own order. A page that needs the large pool only
sends both, so what a reader has seen on page one never moves when page two is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from shared.index.answers import PackedRow
from shared.index.row_ref import RowRef, statuses_of, unpacked, version_seq_of
from shared.search.fusion import fused_scores, ranks0
from shared.search.priors import with_status
from shared.settings import Retrieval
from shared.types import ChunkKind

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


class Candidates:
    """The rows of the legs in the total order: pool, score descending, version, kind, ordinal.

    Rows are only read, and ties only ordered, as far down as somebody looks: a page needs few of some hundred.
    """

    def __init__(self, answers: Mapping[Asked, Sequence[PackedRow]], retrieval: Retrieval) -> None:
        self._retrieval = retrieval
        largest = max((asked.size for asked in answers), default=0)
        self.is_cut = any(len(answer) >= asked.size for asked, answer in answers.items() if asked.size == largest)
        """Whether a leg held more rows than it was asked for."""
        self._pools = sorted({min(largest, SMALL_POOL), largest})
        self._scored: list[list[_Scored]] = []
        self._rows = answers
        identified = (row for asked, rows in answers.items() if asked.leg is Leg.IDENTIFIER for row in rows)
        self._identified = {version_seq_of(text) for text, _ in identified}
        self._known: list[list[Candidate]] = []
        self._rest = self._places()

    @property
    def ordered(self) -> list[Candidate]:
        """All of them, in order."""
        return [one for tied in self._by_place() for one in tied]

    def prefix(self, *, hits: int, rows_per_document: int | None) -> list[Candidate]:
        """Return the first ones: those that hold so many hits, all ties of the last one included.

        With `rows_per_document` a hit is a row, at most so many of a document; else a hit is a document.
        """
        first: list[Candidate] = []
        found, per_document = 0, dict[str, int]()
        for tied in self._by_place():
            first += tied
            for one in tied:
                rows = per_document.get(one.ref.document_id, 0)
                per_document[one.ref.document_id] = rows + 1
                found += rows < (rows_per_document or 1)
            if found >= hits:
                break
        return first

    def holds_more_than(self, number: int) -> bool:
        """Tell whether there are more candidates than so many."""
        for tied in self._by_place():
            number -= len(tied)
            if number < 0:
                return True
        return False

    def holds_versions(self, number: int) -> bool:
        """Tell whether so many different versions have a row."""
        return len({version_seq_of(text) for rows in self._rows.values() for text, _ in rows}) >= number

    def best_passages(self, versions: Collection[int]) -> dict[int, str]:
        """Return the id of the first passage of each of these versions, of those that have one."""
        best: dict[int, str] = {}
        wanted = set(versions)
        for number in range(len(self._pools)):
            within: dict[int, tuple[float, int, str]] = {}
            for negative, text in self._scores(number):
                if version_seq_of(text) not in wanted:
                    continue
                ref = unpacked(text)
                one = (negative, ref.ordinal, ref.chunk_id)
                if ref.kind is ChunkKind.CHUNK:
                    within[ref.version_seq] = min(one, within.get(ref.version_seq, one))
            for version_seq, (_, _, chunk_id) in within.items():
                best.setdefault(version_seq, chunk_id)
            wanted -= within.keys()
            if not wanted:
                break
        return best

    def _by_place(self) -> Iterator[list[Candidate]]:
        yield from self._known
        for tied in self._rest:
            self._known.append(tied)
            yield tied

    def _places(self) -> Iterator[list[Candidate]]:
        """Yield the candidates of each place."""
        place, seen = 0, set[str]()
        for number in range(len(self._pools)):
            for negative, tied in groupby(self._scores(number), key=itemgetter(0)):
                refs = [ref for ref in (unpacked(text) for _, text in tied) if ref.chunk_id not in seen]
                if not refs:
                    continue
                seen.update(ref.chunk_id for ref in refs)
                refs.sort(key=_among_ties)
                yield [Candidate(place, -negative, ref, ref.version_seq in self._identified) for ref in refs]
                place += 1

    def _scores(self, number: int) -> list[_Scored]:
        """Return the rows of one pool by score."""
        while len(self._scored) <= number:
            lists = _at(self._rows, self._pools[len(self._scored)])
            self._scored.append(_scored(lists, self._retrieval))
        return self._scored[number]


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


_Scored = tuple[float, str]
"""A packed row as it sorts: by its score, the highest first."""


def _at(rows: Mapping[Asked, Sequence[PackedRow]], pool: int) -> dict[Leg, dict[str, int]]:
    """Return the ranks in each leg as if it had been asked for `pool` rows."""
    lists: dict[Leg, dict[str, int]] = {}
    for asked in sorted(rows, key=lambda one: one.size):
        # Exactly this size if it was sent, else the beginning of a larger one.
        if asked.size >= pool and asked.leg not in lists:
            lists[asked.leg] = ranks0(rows[asked][:pool])
    return lists


def _scored(lists: Mapping[Leg, Mapping[str, int]], retrieval: Retrieval) -> list[_Scored]:
    """Return the rows by score. Most are looked at nowhere else, so nothing is called for each."""
    weighted = [(weight_of(leg, retrieval), lists[leg]) for leg in Leg if leg in lists]
    scores = fused_scores(weighted, rrf_k=retrieval.fusion_rrf_k)
    boosted = with_status(scores.values(), statuses_of(scores), retrieval.version_status_boost)
    return sorted(zip([-score for score in boosted], scores, strict=True))


def _among_ties(ref: RowRef) -> tuple[int, str, int, RowRef]:
    return ref.version_seq, ref.kind, ref.ordinal, ref
