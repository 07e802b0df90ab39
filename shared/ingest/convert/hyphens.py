"""Words that a line end cut in two, put together again."""

from __future__ import annotations

import re

# "Miet- und Pachtrecht": the hyphen stands for a part that comes later.
_CONJUNCTIONS = frozenset(
    ["und", "oder", "bzw", "beziehungsweise", "sowie", "als", "noch", "bis", "u", "and", "or", "nor", "to"]
)
_CUT = re.compile(r"(?P<before>\w)[-\u2010](?P<mark>[\x02\ufffe]?)[^\S\n]*\n[^\S\n]*(?P<word>\w+)")


def join_cut_words(text: str) -> str:
    """Return `text` with each word that a hyphen and a line break cut in one piece.

    A lower-case continuation loses the hyphen, a conjunction keeps it with a space, and numbers and capitals keep it
    without one ("573-575", "GmbH-Gesetz").
    """
    return _CUT.sub(_join, text)


def _join(match: re.Match[str]) -> str:
    before, word = match["before"], match["word"]
    if word.lower() in _CONJUNCTIONS:
        return f"{before}- {word}"
    if before.isalpha() and word[0].islower():
        return f"{before}{word}"
    return f"{before}-{word}"
