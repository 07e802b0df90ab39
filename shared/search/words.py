"""Text as words: what the lexical leg may cost, and when two spellings are one identifier."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

# Scripts without spaces: the engine makes a term of each letter, and of each emoji.
_TERMS: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00016fe0-\U0003ffff]"
    r"|[^\W_]+"
    "|[\u2190-\u2bff\U0001f000-\U0001faff]"
)
_RUNS: Final = re.compile(r"[^\W\d_]+|\d+")


def first_terms(query: str, *, limit: int) -> str:
    """Return `query` as it is if it has at most `limit` terms, else its first `limit` different ones."""
    terms = _TERMS.findall(query)
    if len(terms) <= limit:
        return query
    return " ".join(list(dict.fromkeys(terms))[:limit])


def runs(text: str) -> list[str]:
    """Return the runs of letters and the runs of digits, lower case: an identifier without its separators."""
    return _RUNS.findall(text.casefold())


def holds(text_runs: Sequence[str], identifier_runs: Sequence[str]) -> bool:
    """Return whether an identifier occurs in a text, run by run: never a part of a longer number."""
    length = len(identifier_runs)
    if not length:
        return False
    wanted = list(identifier_runs)
    return any(list(text_runs[at : at + length]) == wanted for at in range(len(text_runs) - length + 1))
