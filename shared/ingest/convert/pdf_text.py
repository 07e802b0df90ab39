"""The text layer of a page of a PDF: what its fonts say, what no font maps to letters, and what is not painted."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from pypdfium2 import raw

from shared.ingest.convert.hyphens import join_cut_words

_INVISIBLE = 3
_MAX_INSPECTED_OBJECTS = 5000
_MAX_FORM_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Layer:
    """The text of a page, and of it what has no map to Unicode, in runs divided by line breaks."""

    text: str
    unmapped: str
    has_invisible: bool
    # The share of the page's area that pictures cover; some scanners cut a page into strips.
    picture_share: float


def layer_of(page: Any) -> Layer:
    """Return the text layer of a page."""
    text_page = page.get_textpage()
    try:
        text = str(text_page.get_text_range(errors="ignore"))
        unmapped = _unmapped(text_page.raw, text_page.count_chars())
    finally:
        text_page.close()
    # PDFium writes U+FFFE (or U+0002) where it takes a hyphen at a line's end for a cut.
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    for mark in ("\ufffe", "\x02"):
        plain = plain.replace(f"-{mark}", "-").replace(f"{mark}\n", "-\n").replace(mark, "-\n")
    invisible, share = _objects(page)
    return Layer(join_cut_words(plain), unmapped, has_invisible=invisible and bool(text.strip()), picture_share=share)


def _unmapped(text_page: Any, count: int) -> str:
    lacks = raw.FPDFText_HasUnicodeMapError
    found: list[str] = []
    last: int | None = None
    for position in [position for position in range(count) if lacks(text_page, position) == 1]:
        if last is not None and position > last + 1:
            found.append(_between(text_page, last + 1, position))
        code = raw.FPDFText_GetUnicode(text_page, position)
        found.append(chr(code) if 0 < code <= sys.maxunicode else "\ufffd")
        last = position
    return "".join(found)


def _between(text_page: Any, start: int, end: int) -> str:
    """Return what parts two signs without a map: a space, or a line break where others stand between them.

    Spaces and line breaks that PDFium puts in between by itself do not end a run.
    """
    for position in range(start, end):
        code = raw.FPDFText_GetUnicode(text_page, position)
        if not raw.FPDFText_IsGenerated(text_page, position) and not chr(min(code, sys.maxunicode)).isspace():
            return "\n"
    return " "


def _objects(page: Any) -> tuple[bool, float]:
    """Return whether some text is not painted, as text recognition leaves it, and how much pictures cover."""
    area = max(1.0, page.get_width() * page.get_height())
    wanted = [raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_IMAGE]
    invisible, share = False, 0.0
    for position, item in enumerate(page.get_objects(filter=wanted, max_depth=_MAX_FORM_DEPTH)):
        if position >= _MAX_INSPECTED_OBJECTS:
            break
        if item.type == raw.FPDF_PAGEOBJ_TEXT:
            invisible = invisible or raw.FPDFTextObj_GetTextRenderMode(item.raw) == _INVISIBLE
        else:
            left, bottom, right, top = item.get_bounds()
            share += (right - left) * (top - bottom) / area
    return invisible, share
