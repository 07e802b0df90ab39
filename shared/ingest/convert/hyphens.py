"""Words that a line end cut in two, put together again."""

from __future__ import annotations

import re

# "Miet- und Pachtrecht": the hyphen stands for a part that comes later. Words that also end others are not here:
# "den-noch", "there-to" and "mi-nor" are cut far more often than such a list is written.
_CONJUNCTIONS = frozenset(["und", "oder", "bzw", "beziehungsweise", "sowie", "als", "bis", "u", "and", "or"])
_CUT = re.compile(r"(?<=\w)[-\u2010][\x02\ufffe]?[^\S\n]*\n[^\S\n]*(?P<word>\w+)")
_HYPHENATED = re.compile(r"\b[^\W\d_]++-[^\W\d_]+")
# How far back the beginning of a cut word is looked for: no word is longer, and a file without spaces costs no more.
_REACH = 100
_BEFORE = re.compile(r"[^\s\-\u2010]*\Z")
# Parts of addresses and paths: what stands there is no word.
_ADDRESS_SIGNS = frozenset("/@\\:._=")
_SEPARATORS = (";", "\t", ",", "|")


def join_cut_words(text: str) -> str:
    """Return `text` with each word that a hyphen and a line break cut in one piece.

    A lower-case continuation loses the hyphen, a conjunction keeps it with a space, and numbers and capitals keep it
    without one ("573-575", "GmbH-Gesetz"). So do abbreviations ("GmbH-rechtlich"), single letters ("E-mail"),
    addresses, and what the same text writes with a hyphen within a line ("long-term").
    """
    if not _CUT.search(text):
        return text
    hyphenated = {word.casefold() for word in _HYPHENATED.findall(text)}
    return _CUT.sub(lambda match: _join(match, hyphenated), text)


def is_table(text: str) -> bool:
    """Return whether most lines are divided by the same separator: there a line's end is a row's."""
    lines = [line for line in text.split("\n", 200)[:200] if line.strip()]
    if len(lines) < 2:  # noqa: PLR2004 - one line is no table
        return False
    counts = [max(line.count(separator) for line in lines) for separator in _SEPARATORS]
    separator = _SEPARATORS[counts.index(max(counts))]
    columns = [line.count(separator) for line in lines]
    return columns[0] > 0 and columns.count(columns[0]) * 10 >= 9 * len(lines)


def _join(match: re.Match[str], hyphenated: set[str]) -> str:
    word = match["word"]
    if word.lower() in _CONJUNCTIONS:
        return f"- {word}"
    found = _BEFORE.search(match.string[max(0, match.start() - _REACH) : match.start()])
    before = found[0] if found else ""
    end = re.split(r"\W", before)[-1]
    is_word = end.isalpha() and len(end) > 1 and not end[-1].isupper() and not _ADDRESS_SIGNS & set(before)
    cut = is_word and word[0].islower() and f"{end}-{word}".casefold() not in hyphenated
    return word if cut else f"-{word}"
