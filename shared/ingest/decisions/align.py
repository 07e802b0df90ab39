"""Two texts paragraph by paragraph: which are the same, which were changed, which came and which went.

Paragraphs that occur once on both sides and stand in the same order are anchors (patience diff, B. Cohen); between two
anchors what is alike is paired by its clause number or by its words. No step compares every paragraph with every other
one: long drafts take time by their length, whatever stands in them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.text.normalise import single_line

_PARAGRAPH = re.compile(r"[^\n]+")
_CLAUSE = re.compile(
    r"^(?:(?:§+|Art(?:\.|ikel)?|Article|Section|Clause|Ziff(?:\.|er)?|Nr\.)\s*)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,4}[a-z]?|\([a-z0-9]{1,3}\))[.):]?(?=\s)",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?:§+\s*\d+|Art(?:\.|ikel|icle)\s*\d+|(?:Section|Clause|Ziffer|Anlage|Annex|Schedule)\s+[\dA-Z]"
    r"|\d{1,3}(?:\.\d{1,3}){0,2}\.?\s+[^\W\d_])",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_MAX_HEADING_CHARS = 120
_MAX_CANDIDATES = 4
_MAX_WORDS = 400
_LIKE = 0.5
_SAME_CLAUSE_LIKE = 0.2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph at `[start, end)`, its plain form, the number it begins with, and the heading above it."""

    text: str
    start: int
    end: int
    plain: str
    number: str | None
    heading: str | None
    words: Counter[str] = field(hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """A paragraph that was changed, that went (`new` is None) or that came (`old` is None)."""

    old: Paragraph | None
    new: Paragraph | None


def paragraphs(text: str) -> list[Paragraph]:
    """Return the paragraphs of a text in order; blank ones are none."""
    found: list[Paragraph] = []
    heading: str | None = None
    for match in _PARAGRAPH.finditer(text):
        plain = single_line(match.group(0))
        if not plain:
            continue
        if len(plain) <= _MAX_HEADING_CHARS and _HEADING.match(plain) and not plain.endswith((".", ";", ",")):
            heading = plain
        number = _CLAUSE.match(plain)
        words = Counter(_WORD.findall(plain.casefold())[:_MAX_WORDS])
        lead = len(match.group(0)) - len(match.group(0).lstrip())
        found.append(
            Paragraph(
                match.group(0),
                match.start() + lead,
                match.end(),
                plain,
                number["number"] if number else None,
                heading,
                words,
            )
        )
    return found


def differences(old: Sequence[Paragraph], new: Sequence[Paragraph]) -> list[Pair]:
    """Return what differs, in the order of the later text; a paragraph that only moved does not differ."""
    pairs: list[Pair] = []
    for old_from, old_to, new_from, new_to in _gaps(old, new):
        pairs += _paired(old[old_from:old_to], new[new_from:new_to])
    return _without_moves(pairs)


def _gaps(old: Sequence[Paragraph], new: Sequence[Paragraph]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the stretches between anchors that are not the same on both sides."""
    at_old, at_new = 0, 0
    for anchor_old, anchor_new in [*_anchors(old, new), (len(old), len(new))]:
        # Repeated paragraphs beside an anchor are the same as far as they go.
        while at_old < anchor_old and at_new < anchor_new and old[at_old].plain == new[at_new].plain:
            at_old, at_new = at_old + 1, at_new + 1
        end_old, end_new = anchor_old, anchor_new
        while end_old > at_old and end_new > at_new and old[end_old - 1].plain == new[end_new - 1].plain:
            end_old, end_new = end_old - 1, end_new - 1
        if at_old < end_old or at_new < end_new:
            yield at_old, end_old, at_new, end_new
        at_old, at_new = anchor_old + 1, anchor_new + 1


def _anchors(old: Sequence[Paragraph], new: Sequence[Paragraph]) -> list[tuple[int, int]]:
    """Return positions of paragraphs that occur once on both sides, the longest row that is in order on both."""
    in_old, in_new = Counter(one.plain for one in old), Counter(one.plain for one in new)
    where = {one.plain: position for position, one in enumerate(new) if in_new[one.plain] == 1}
    matches = [(p, where[one.plain]) for p, one in enumerate(old) if in_old[one.plain] == 1 and one.plain in where]
    # Longest increasing subsequence in n log n.
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, target) in enumerate(matches):
        at = bisect_left(tails, target)
        before.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(target)
            ends.append(index)
        else:
            tails[at], ends[at] = target, index
    chosen: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chosen.append(matches[index])
        index = before[index]
    return chosen[::-1]


def _paired(old: Sequence[Paragraph], new: Sequence[Paragraph]) -> list[Pair]:
    """Pair the paragraphs of a stretch that are alike, in order; what is left came or went."""
    partner: dict[int, int] = {}
    last = -1
    find = _Finder(old)
    for position, paragraph in enumerate(new):
        found = find.best(paragraph, after=last)
        if found is not None:
            partner[position] = last = found
    taken = {old_position: position for position, old_position in partner.items()}
    pairs: list[Pair] = []
    done = 0
    for position, paragraph in enumerate(new):
        until = partner.get(position)
        if until is not None:
            pairs += [Pair(old[gone], None) for gone in range(done, until) if gone not in taken]
            done = until + 1
            if old[until].plain != paragraph.plain:
                pairs.append(Pair(old[until], paragraph))
        else:
            pairs.append(Pair(None, paragraph))
    pairs += [Pair(old[gone], None) for gone in range(done, len(old)) if gone not in taken]
    return pairs


class _Finder:
    """Finds the paragraph of a stretch that is most like another one, among the few that share a rare word."""

    def __init__(self, old: Sequence[Paragraph]) -> None:
        self._old = old
        self._by_word: dict[str, list[int]] = {}
        self._by_number: dict[str, list[int]] = {}
        for position, paragraph in enumerate(old):
            for word in paragraph.words:
                self._by_word.setdefault(word, []).append(position)
            if paragraph.number is not None:
                self._by_number.setdefault(paragraph.number, []).append(position)

    def best(self, paragraph: Paragraph, *, after: int) -> int | None:
        """Return the position of the best one behind `after`; a clause of the same number needs fewer words."""
        candidates: dict[int, float] = {}
        if paragraph.number is not None:
            for position in self._next(self._by_number.get(paragraph.number, ()), after):
                candidates[position] = _SAME_CLAUSE_LIKE
        rare = sorted(
            (word for word in paragraph.words if word in self._by_word),
            key=lambda word: (len(self._by_word[word]), word),
        )
        for word in rare[:_MAX_CANDIDATES]:
            for position in self._next(self._by_word[word], after):
                candidates.setdefault(position, _LIKE)
        scored = [
            (likeness(paragraph.words, self._old[position].words) - least, -position)
            for position, least in candidates.items()
        ]
        best, position = max(scored, default=(-1.0, 0))
        return -position if best >= 0 else None

    def _next(self, positions: Sequence[int], after: int) -> Sequence[int]:
        start = bisect_left(positions, after + 1)
        return positions[start : start + _MAX_CANDIDATES]


def likeness(one: Counter[str], other: Counter[str]) -> float:
    """Return twice the shared words by all words of both (Dice 1945)."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _without_moves(pairs: Sequence[Pair]) -> list[Pair]:
    gone = Counter(pair.old.plain for pair in pairs if pair.old is not None and pair.new is None)
    came = Counter(pair.new.plain for pair in pairs if pair.new is not None and pair.old is None)
    moved = gone & came
    left_gone, left_came = Counter(moved), Counter(moved)
    kept: list[Pair] = []
    for pair in pairs:
        if pair.new is None and pair.old is not None and left_gone[pair.old.plain] > 0:
            left_gone[pair.old.plain] -= 1
        elif pair.old is None and pair.new is not None and left_came[pair.new.plain] > 0:
            left_came[pair.new.plain] -= 1
        else:
            kept.append(pair)
    return kept
