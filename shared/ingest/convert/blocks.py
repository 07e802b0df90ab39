"""A text put together from blocks, in stored form from the first character, so that every span is right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.text.converted import ConvertedText, Page
from shared.text.normalise import stored

_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_TRAILING = re.compile(r"[ \t]+(?=\n|$)")
_MANY_BREAKS = re.compile(r"\n{3,}")
_SOFT_HYPHEN = re.compile("\u00ad(?:[^\\S\n]*\n[^\\S\n]*(?=\\w))?")


class TextBuilder:
    """Collects blocks, each a paragraph or a line; blocks are joined by line breaks.

    Normalising each block is the same as normalising the whole, because nothing composes with a line break.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._pages: list[Page] = []
        self._open: tuple[int | None, str | None, int] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no block has been added that holds anything."""
        return not self._length

    def page(self, number: int | None, *, locus: str | None = None) -> None:
        """Begin a page or a named part; the one before it ends here."""
        self._close()
        self._open = (number, locus, self._length)

    def add(self, text: str, *, gap: int = 1) -> None:
        """Add a block, set off from the one before by `gap` line breaks; a blank block adds nothing."""
        block = tidy(text)
        if not block:
            return
        if self._length:
            self._push("\n" * gap)
            if self._open and self._open[2] == self._length - gap:
                self._open = (*self._open[:2], self._length)
        self._push(block)

    def build(self, *, title: str | None = None, meta: Mapping[str, Any] | None = None) -> ConvertedText:
        """Return the text with its pages."""
        self._close()
        clean = stored(title).strip() if title else None
        return ConvertedText("".join(self._parts), tuple(self._pages), clean or None, storable(dict(meta or {})))

    def _push(self, piece: str) -> None:
        self._parts.append(piece)
        self._length += len(piece)

    def _close(self) -> None:
        if self._open is not None:
            number, locus, start = self._open
            # A numbered page is kept when it is empty: the count of pages is the file's.
            if number is not None or self._length > start:
                self._pages.append(Page(number, min(start, self._length), self._length, locus))
            self._open = None


def tidy(text: str) -> str:
    """Return a block in stored form: no soft hyphens, trailing spaces or runs of blank lines."""
    whole = _SOFT_HYPHEN.sub("", _BREAKS.sub("\n", stored(text)))
    lines = _TRAILING.sub("", stored(whole))
    return _MANY_BREAKS.sub("\n\n", lines).strip("\n").rstrip()


def storable(value: Any) -> Any:
    """Return a JSON value whose strings PostgreSQL can carry."""
    if isinstance(value, str):
        return stored(value)
    if isinstance(value, dict):
        return {stored(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
