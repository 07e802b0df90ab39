"""The text of a version as conversion leaves it: what `artifacts` of kind "text" hold, as JSON in the object store.

All spans count characters of `text`, which is in stored form (NFC, see `shared.text.normalise.stored`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ARTIFACT_KIND = "text"


@dataclass(frozen=True, slots=True)
class Page:
    """One page or part of a text: `text[char_start:char_end]`.

    `number` counts from 1 as printed sheets do; it is None for a part of a file without pages, and `locus` then
    names the part ("body", "footnotes", "mail header").
    """

    number: int | None
    char_start: int
    char_end: int
    locus: str | None = None


@dataclass(frozen=True, slots=True)
class ConvertedText:
    """A text with its pages in order, the title found in the file, and what else the format told."""

    text: str
    pages: tuple[Page, ...] = ()
    title: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the stored form; the same text gives the same bytes."""
        body = {
            "text": self.text,
            "pages": [
                {"number": page.number, "char_start": page.char_start, "char_end": page.char_end, "locus": page.locus}
                for page in self.pages
            ],
            "title": self.title,
            "meta": dict(self.meta),
        }
        return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, stored: bytes | str) -> ConvertedText:
        """Return the text that `to_json` wrote."""
        body = json.loads(stored)
        pages = tuple(Page(p["number"], p["char_start"], p["char_end"], p["locus"]) for p in body["pages"])
        return cls(text=body["text"], pages=pages, title=body.get("title"), meta=body.get("meta", {}))

    def pages_of(self, char_start: int, char_end: int) -> list[Page]:
        """Return the pages that a span touches, in order."""
        return [page for page in self.pages if page.char_start < char_end and char_start < page.char_end]


def page_numbers(pages: Sequence[Page]) -> tuple[int | None, int | None]:
    """Return the first and the last page number, None twice where there are no numbers."""
    numbers = [page.number for page in pages if page.number is not None]
    return (min(numbers), max(numbers)) if numbers else (None, None)
