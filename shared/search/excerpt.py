"""The passage of a chunk that answers the query best, with the matching words marked.

Offsets count characters (Unicode code points) of the stored text. Words are compared without case, umlauts and endings,
nearly as the index does; this decides what is marked, never what is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from shared.text.normalise import searched

EXCERPT_CHARS: Final = 320
_MAX_SHIFT: Final = 40
# Soft hyphens and other invisible marks are part of a word.
_WORD: Final = re.compile("[^\\W_]+(?:[\u00ad\u200b-\u200d\u2060\ufeff][^\\W_]+)*")
_UMLAUTS: Final = str.maketrans({"ä": "a", "ö": "o", "ü": "u"})
_DIGRAPHS: Final = re.compile("(?<![aeqou])ue|ae|oe")
_ENDINGS: Final = ("ungen", "ern", "est", "em", "en", "er", "es", "et", "ed", "e", "n", "s", "t")
_SHORTEST_STEM: Final = 4
_COMMON_WORDS: Final = """
    der die das den dem des ein eine einer eines einem einen und oder ist sind war in im am an auf zu zum zur von vom
    mit bei für the a and or is are was of to on at by for
"""
_TOO_COMMON: Final = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is exactly `chunk[start : start + len(text)]`; `highlights` are [start, end) within `text`, in order."""

    text: str
    start: int
    highlights: tuple[tuple[int, int], ...]


def query_stems(query: str) -> frozenset[str]:
    """Return what is marked for `query`: the stems of its words, without those that are in every text."""
    words = [searched(word).casefold() for word in _WORD.findall(query)]
    return frozenset(stem(word) for word in words if word not in _TOO_COMMON)


def excerpt_of(chunk: str, stems: frozenset[str], *, chars: int = EXCERPT_CHARS) -> Excerpt:
    """Return the window of at most `chars` characters with the most different words of the query, cut at word ends."""
    words = _WORD.finditer(chunk)
    found = [(*word.span(), stemmed) for word in words if (stemmed := stem(word.group())) in stems]
    start, end = _window(chunk, found, chars)
    start, end = _trimmed(chunk, start, end)
    marks = tuple((a - start, b - start) for a, b, _ in found if start <= a and b <= end)
    return Excerpt(chunk[start:end], start, marks)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the word without case, umlauts and one ending."""
    folded = searched(word).casefold().replace("ß", "ss").translate(_UMLAUTS)
    folded = _DIGRAPHS.sub(lambda pair: pair.group()[0], folded)
    for ending in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= _SHORTEST_STEM:
            return folded.removesuffix(ending)
    return folded


def _window(chunk: str, found: Sequence[tuple[int, int, str]], chars: int) -> tuple[int, int]:
    """Return the span that holds the most different stems, then the most matches, then comes first."""
    if len(chunk) <= chars or not found:
        return 0, _word_end(chunk, min(chars, len(chunk)), 0)
    best, best_rank = (0, 0), (0, 0)
    last = 0
    for first, (begin, _, _) in enumerate(found):
        last = max(last, first)
        while last + 1 < len(found) and found[last + 1][1] - begin <= chars:
            last += 1
        rank = (len({match[2] for match in found[first : last + 1]}), last - first)
        if rank > best_rank or best == (0, 0):
            best, best_rank = (begin, found[last][1]), rank
    begin, end = best
    # What is left of the window goes before and behind in equal parts, as far as the text reaches.
    spare = max(0, chars - (end - begin))
    start = max(0, min(begin - spare // 2, len(chunk) - chars))
    start = _word_start(chunk, start, begin)
    return start, _word_end(chunk, min(len(chunk), start + chars), end)


def _word_start(chunk: str, wanted: int, latest: int) -> int:
    """Return where the first whole word at or after `wanted` begins, but no later than `latest`."""
    if wanted == 0:
        return 0
    start = wanted
    while start < latest and start - wanted < _MAX_SHIFT and not chunk[start - 1].isspace():
        start += 1
    return start


def _word_end(chunk: str, wanted: int, earliest: int) -> int:
    """Return where the last whole word before `wanted` ends, but no earlier than `earliest`."""
    if wanted >= len(chunk):
        return len(chunk)
    end = wanted
    while end > earliest and wanted - end < _MAX_SHIFT and not chunk[end].isspace():
        end -= 1
    return end if chunk[end].isspace() else wanted


def _trimmed(chunk: str, start: int, end: int) -> tuple[int, int]:
    while start < end and chunk[start].isspace():
        start += 1
    while end > start and chunk[end - 1].isspace():
        end -= 1
    return start, end
