"""The parts of German compounds, for a field of their own beside the whole words.

"Schadensersatzanspruch" is one term to the analyser, and a search for "Schadensersatz" would miss it. So each compound
gives its parts and their joins. A word is taken apart when all of it is known; otherwise only what is certain is given:
a known head behind a whole word, or a known beginning before a linking s. Nothing ever replaces the word itself, and an
unknown word ("Wandhalterung") gives no guess.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from shared.index.compound_stems import MODIFIERS, STEMS

_WORD: Final = re.compile(r"[A-Za-zÄÖÜäöüß]{7,60}")
# Plurals change vowels ("Verträge"); one letter stays one letter, so that places stay the same.
_PLAIN: Final = str.maketrans("äöü", "aou")
_LINKS: Final = ("", "s", "es", "n", "en", "ns", "er", "e")
_ENDINGS: Final = ("", "s", "es", "e", "en", "n", "er", "ern", "in", "innen")
_KNOWN: Final = frozenset(stem.translate(_PLAIN) for stem in STEMS)
_FRONT: Final = _KNOWN | {modifier.translate(_PLAIN) for modifier in MODIFIERS}
_LONGEST: Final = max(map(len, _FRONT))
_SHORTEST: Final = min(map(len, _FRONT))
_LEAST_HEAD: Final = 5
_LEAST_REST: Final = 4
# Nouns that always take a linking s: what stands before it is a whole word.
_SURE_LINK: Final = re.compile(r".{3,}(?:ung|heit|keit|schaft|ion|tät|ling|tum)s$")
# Prefixes make another word, not a compound: "Unrecht" is no kind of "Recht".
_PREFIX_WORDS: Final = """
aber auf aus bei durch ein gegen gemein hin miss nach nicht ober uber unter ver vor weg weiter wider wieder zer zuruck
"""
_PREFIXES: Final = frozenset(_PREFIX_WORDS.split())


def parts_text(text: str) -> str:
    """Return the parts of all compounds of `text`, space-joined, each as often as it occurs: what is indexed."""
    return " ".join(part for match in _WORD.finditer(text) for part in parts_of(match.group().lower()))


@lru_cache(maxsize=50_000)
def parts_of(word: str) -> tuple[str, ...]:
    """Return the parts of one lower-case word and the joins of neighbouring ones; nothing if it is no compound."""
    plain = word.translate(_PLAIN)
    pieces = _split(plain)
    if pieces is not None:
        return _joins(word, pieces)
    return _certain(word, plain)


class _Piece(tuple[int, int, int]):
    """Where a part begins, where its stem ends, and where its linking letters end."""

    __slots__ = ()


def _split(plain: str) -> list[_Piece] | None:
    """Return the fewest known parts that make up the whole word, or None if it has one part or an unknown one."""
    best: dict[int, list[_Piece]] = {0: []}
    for start in range(len(plain)):
        if start not in best:
            continue
        for piece in _pieces_at(plain, start):
            found = best.get(piece[2])
            if found is None or len(found) > len(best[start]) + 1:
                best[piece[2]] = [*best[start], piece]
    pieces = best.get(len(plain))
    return pieces if pieces is not None and len(pieces) > 1 else None


def _pieces_at(plain: str, start: int) -> list[_Piece]:
    """Return the known parts that begin at `start`, the longest first."""
    pieces = []
    for stop in range(min(len(plain), start + _LONGEST), start + _SHORTEST - 1, -1):
        stem = plain[start:stop]
        if stem in _FRONT:
            pieces += [
                _Piece((start, stop, stop + len(link)))
                for link in _LINKS
                if stop + len(link) < len(plain) and plain.startswith(link, stop)
            ]
        if stem in _KNOWN and plain[stop:] in _ENDINGS:
            pieces.append(_Piece((start, stop, len(plain))))
    return pieces


def _joins(word: str, pieces: list[_Piece]) -> tuple[str, ...]:
    """Return every run of neighbouring parts but the whole word; linking letters stay inside a run only."""
    runs = [
        word[pieces[first][0] : pieces[last][1]]
        for first in range(len(pieces))
        for last in range(first, len(pieces))
        if last - first + 1 < len(pieces)
    ]
    return tuple(dict.fromkeys(runs))


def _certain(word: str, plain: str) -> tuple[str, ...]:
    """Return the parts of a word that is known in part only."""
    if any(plain.endswith(ending) and plain[: len(plain) - len(ending)] in _KNOWN for ending in _ENDINGS):
        return ()
    head = _head(plain)
    if head is not None:
        start, stop = head
        front = plain[:start]
        return (
            (word[: start - 1], word[start:stop]) if _SURE_LINK.match(word[:start]) and front else (word[start:stop],)
        )
    for stop in range(len(plain) - _LEAST_HEAD - 1, _LEAST_HEAD - 1, -1):
        if plain[:stop] in _KNOWN and plain[stop] == "s":
            return (word[:stop],)
    return ()


def _head(plain: str) -> tuple[int, int] | None:
    """Return where the longest known last part lies, if what is before it can be a word of its own."""
    for start in range(_LEAST_REST, len(plain) - _LEAST_HEAD + 1):
        for ending in _ENDINGS:
            stop = len(plain) - len(ending)
            if plain.endswith(ending) and stop - start >= _LEAST_HEAD and plain[start:stop] in _KNOWN:
                return None if plain[:start] in _PREFIXES else (start, stop)
    return None
