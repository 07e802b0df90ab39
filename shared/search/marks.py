"""What is marked in a text for a query: its words, and its identifiers where they stand as such.

Words are compared without case, umlauts and endings, nearly as the index does; this decides what is marked, never what
is found. The numbers and short letters of an identifier ("12 O 345/21") are marked only where at least two of them
stand side by side, in the longest form in which the text has them: never the "12" of "09:12:33".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from shared.text.normalise import searched

# Soft hyphens and other invisible marks are part of a word.
_WORD: Final = re.compile("[^\\W_]+(?:[\u00ad\u200b-\u200d\u2060\ufeff][^\\W_]+)*")
_RUN: Final = re.compile(r"[^\W\d_]+|\d+")
_DIGIT: Final = re.compile(r"\d")
_UMLAUTS: Final = str.maketrans({"ä": "a", "ö": "o", "ü": "u"})
_DIGRAPHS: Final = re.compile("(?<![aeqou])ue|ae|oe")
_ENDINGS: Final = ("ungen", "ern", "est", "em", "en", "er", "es", "et", "ed", "e", "n", "s", "t")
_SHORTEST_STEM: Final = 4
_COMMON_WORDS: Final = """
    der die das den dem des ein eine einer eines einem einen und oder ist sind war in im am an auf zu zum zur von vom
    mit bei für the a and or is are was of to on at by for
"""
_TOO_COMMON: Final = frozenset(_COMMON_WORDS.split())
# Within an identifier: longer words are words ("Urteil 12 O 345/21"), shorter ones only mean something together.
_LONGEST_PART: Final = 4
_LONGEST_WEAK_PART: Final = 2
_LONGEST_SEPARATOR: Final = 3
_FEWEST_RUNS: Final = 2
# What a query of nothing but digits may cost.
_MOST_RUNS: Final = 12
_MOST_IDENTIFIERS: Final = 8

_Run = tuple[int, int, str]


class Match(NamedTuple):
    """Characters [start, end) of a text that are marked. Matches of one `key` mark the same thing."""

    start: int
    end: int
    key: str
    is_identifier: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """Stems that are marked wherever they stand, and identifiers as runs of letters and of digits."""

    stems: frozenset[str]
    identifiers: tuple[tuple[str, ...], ...]


def marks_for(query: str) -> Marks:
    """Return what is marked for `query`: its identifiers, and its other words but those that are in every text."""
    words = [searched(word).casefold() for word in _WORD.findall(query)]
    identifiers = [group for group in _groups(words) if _is_identifier(group)]
    parts = {word for group in identifiers for word in group if _is_weak(word)}
    stems = frozenset(stem(word) for word in words if word not in _TOO_COMMON and word not in parts)
    runs = dict.fromkeys(tuple(_RUN.findall(" ".join(group))[:_MOST_RUNS]) for group in identifiers)
    return Marks(stems, tuple(runs)[:_MOST_IDENTIFIERS])


def matches(text: str, marks: Marks) -> list[Match]:
    """Return what is marked in `text`, in order, without overlaps."""
    words = _WORD.finditer(text)
    found = [
        Match(*word.span(), key, is_identifier=False) for word in words if (key := stem(word.group())) in marks.stems
    ]
    if not marks.identifiers:
        return found
    # An identifier's match is kept before that of a word at the same place.
    found += _identifier_matches(text, marks.identifiers)
    found.sort(key=lambda match: (match.start, not match.is_identifier))
    kept: list[Match] = []
    for match in found:
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the word without case, umlauts and one ending."""
    folded = searched(word).casefold().replace("ß", "ss").translate(_UMLAUTS)
    folded = _DIGRAPHS.sub(lambda pair: pair.group()[0], folded)
    for ending in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= _SHORTEST_STEM:
            return folded.removesuffix(ending)
    return folded


def _groups(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of a query that stand side by side and could be parts of one identifier."""
    group: list[str] = []
    for word in words:
        if word not in _TOO_COMMON and (_DIGIT.search(word) or len(word) <= _LONGEST_PART):
            group.append(word)
        else:
            yield group
            group = []
    yield group


def _is_identifier(group: Sequence[str]) -> bool:
    parts = _RUN.findall(" ".join(group))
    return len(parts) >= _FEWEST_RUNS and any(part.isdigit() for part in parts)


def _is_weak(word: str) -> bool:
    return len(word) <= _LONGEST_WEAK_PART or _DIGIT.search(word) is not None


def _identifier_matches(text: str, identifiers: Sequence[Sequence[str]]) -> Iterator[Match]:
    runs = [(found.start(), found.end(), searched(found.group()).casefold()) for found in _RUN.finditer(text)]
    for number, identifier in enumerate(identifiers):
        spans = [span for span in _spans(runs, identifier) if span.length >= _FEWEST_RUNS]
        longest = max((span.length for span in spans), default=0)
        for span in spans:
            if span.length == longest:
                for at in range(longest):
                    start, end, _ = runs[span.begin + at]
                    yield Match(start, end, f"{number}/{span.first + at}", is_identifier=True)


class _Span(NamedTuple):
    """Runs [begin, begin + length) of a text are runs [first, first + length) of an identifier."""

    begin: int
    first: int
    length: int


def _spans(runs: Sequence[_Run], identifier: Sequence[str]) -> Iterator[_Span]:
    """Yield the longest part of the identifier at each place of the text, one behind the other."""
    begin = 0
    while begin < len(runs):
        firsts = [first for first, part in enumerate(identifier) if part == runs[begin][2]]
        length, first = max(((_length(runs, begin, identifier, first), -first) for first in firsts), default=(1, 0))
        if firsts:
            yield _Span(begin, -first, length)
        begin += length


def _length(runs: Sequence[_Run], begin: int, identifier: Sequence[str], first: int) -> int:
    length = 1
    while first + length < len(identifier) and begin + length < len(runs):
        start, _, run = runs[begin + length]
        if run != identifier[first + length] or start - runs[begin + length - 1][1] > _LONGEST_SEPARATOR:
            break
        length += 1
    return length
