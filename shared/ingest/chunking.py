"""Windows over a text, and the profile that stands for a whole document; pure functions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROFILE_ORDINAL = -1
FIRST_CLAUSE_ORDINAL = 1000
PROFILE_TEXT_CHARS = 400
# A cut is looked for in the last part of a window, so that windows keep a useful length.
_SEARCHED_SHARE = 0.5
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True)
class Window:
    """`text` is exactly `source[char_start:char_end]`."""

    text: str
    char_start: int
    char_end: int


def windows(text: str, *, chars: int, overlap: int) -> list[Window]:
    """Return windows of at most `chars` characters that cover the text, each beginning `overlap` before the last's end.

    A window ends at a blank line, a line break, a sentence or a space, in this order of liking, and never within a
    letter and its marks. Blank windows are left out.
    """
    return [
        Window(text[start:end], start, end)
        for start, end in _spans(text, chars, overlap)
        if not text[start:end].isspace()
    ]


def profile_text(lines: Sequence[tuple[str, str]], text: str) -> str:
    """Return the labelled lines that have a value, then the beginning of the text."""
    labelled = [f"{label}: {value}" for label, value in lines if value]
    beginning = text[: _letter_end(text, min(PROFILE_TEXT_CHARS, len(text)))].strip()
    return "\n".join([*labelled, *([beginning] if beginning else [])])


def _spans(text: str, chars: int, overlap: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = _end(text, start, chars)
        yield start, end
        if end >= len(text):
            return
        # Always at least one letter further: a run of marks longer than a window cannot stop the walk.
        start = max(_begin(text, end - overlap, end), start + 1) if overlap else end
        start = _letter_end(text, start)


def _end(text: str, start: int, chars: int) -> int:
    limit = start + chars
    if limit >= len(text):
        return len(text)
    earliest = start + int(chars * _SEARCHED_SHARE)
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, earliest, limit)
        if found >= 0:
            return found + len(mark)
    cut = _letter_start(text, limit)
    return cut if cut > start else _letter_end(text, limit)


def _begin(text: str, wanted: int, end: int) -> int:
    """Return where the next window begins: at a line or a word in the overlap if there is one."""
    for mark in ("\n", " "):
        found = text.find(mark, wanted, end)
        if 0 <= found < end - 1:
            return found + 1
    return _letter_start(text, wanted)


def _within_letter(text: str, position: int) -> bool:
    if not 0 < position < len(text):
        return False
    here = text[position]
    return here in _JOINERS or text[position - 1] == "\u200d" or unicodedata.category(here) in {"Mn", "Me", "Mc"}


def _letter_start(text: str, position: int) -> int:
    while _within_letter(text, position):
        position -= 1
    return position


def _letter_end(text: str, position: int) -> int:
    while _within_letter(text, position):
        position += 1
    return position
