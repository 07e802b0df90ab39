"""What text recognition gives for a picture of a page: its words as text, and how sure the engine is of them.

The engine is a program, and the process that converts may start none: it hands each picture to its parent and gets
the words back (`shared.ingest.convert.ocr_engine`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from PIL import Image

from shared.ingest.convert.hyphens import join_cut_words

# A page is shown to the engine once more, turned, when it was unsure of it.
MAX_ASKED_PER_PAGE = 2
# 30 megapixels are a page of A3 at 400 dpi. What is larger is scaled down, so that a page costs bounded time.
MAX_PIXELS = 30_000_000
# The engine reads nothing that is lower than this; a dot or a line of a mail's decoration need not be sent to it.
MIN_SIDE_PIXELS = 12
# A line whose words the engine itself calls hardly likely is dirt, a rule or a part of a drawing.
_NOISE_CONFIDENCE = 20.0
# Paper is never of one grey; a picture whose greys lie closer together than this shows nothing.
_BLANK_RANGE = 24
_WORD_LEVEL = "5"


class NotReadError(Exception):
    """The picture was not read; the page is flagged with the reason, and the other pages go on."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a picture, the mean confidence of its words (0 to 100, None without words), and their number."""

    text: str = ""
    confidence: float | None = None
    words: int = 0
    # Whether the picture stood on its head.
    turned: bool = False


@dataclass(frozen=True, slots=True)
class OcrRules:
    """What the converters need to know: the engine for the record, and the limits of a file."""

    engine: str
    languages: str
    dpi: int
    max_pages: int
    min_confidence: float

    def to_json(self) -> dict[str, Any]:
        """Return the rules as they travel to the process that converts."""
        return asdict(self)


class PageReader:
    """Reads the pictures of one file, as far as its limit allows."""

    def __init__(self, rules: OcrRules, ask: Callable[[Image.Image], str]) -> None:
        """`ask` hands a grey picture to the engine and returns its words as TSV, or raises `NotReadError`."""
        self.rules = rules
        self._ask = ask
        self._pictures = 0

    def read(self, draw: Callable[[], Image.Image]) -> Reading:
        """Return what stands in the picture that `draw` makes; it is not called any more when the limit is reached.

        An even picture and a tiny one hold nothing and are not sent to the engine.
        """
        if self._pictures >= self.rules.max_pages:
            raise NotReadError(f"recognition of more than {self.rules.max_pages} pages in one file is not allowed")
        self._pictures += 1
        grey = _fitting(draw()).convert("L")
        low, high = (float(level) for level in grey.getextrema())  # type: ignore[arg-type]  # one band, two levels
        if min(grey.size) < MIN_SIDE_PIXELS or high - low < _BLANK_RANGE:
            return Reading()
        reading = reading_of(self._ask(grey))
        return self._turned(grey, reading) if self._is_unsure(reading) else reading

    def _is_unsure(self, reading: Reading) -> bool:
        return reading.confidence is not None and reading.confidence < self.rules.min_confidence

    def _turned(self, grey: Image.Image, reading: Reading) -> Reading:
        """Return the better of the two readings: the engine turns what lies on its side, never what is upside down."""
        try:
            other = reading_of(self._ask(grey.rotate(180)))
        except NotReadError:
            return reading
        return replace(other, turned=True) if (other.confidence or 0) > (reading.confidence or 0) else reading

    def account(self, pages: Mapping[int, Reading]) -> dict[str, Any]:
        """Return for the file's record who has read these pages, how sure it is, and where it is not sure enough."""
        sure = {number: reading.confidence for number, reading in pages.items() if reading.confidence is not None}
        return {
            "ocr": {"engine": self.rules.engine, "languages": self.rules.languages},
            "ocr_confidence": {str(number): confidence for number, confidence in sorted(sure.items())},
            "turned_pages": sorted(number for number, reading in pages.items() if reading.turned),
            "low_confidence_pages": sorted(
                n for n, confidence in sure.items() if confidence < self.rules.min_confidence
            ),
        }


def _fitting(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    if width * height <= MAX_PIXELS:
        return picture
    scale = (MAX_PIXELS / (width * height)) ** 0.5
    return picture.resize((max(1, int(width * scale)), max(1, int(height * scale))))


def reading_of(tsv: str) -> Reading:
    """Return the text of the engine's table: lines as they stand, paragraphs set apart by a blank line.

    Lines are left out that the engine takes for hardly anything; a single word it may doubt without reason, like
    an "of" between words that it is sure of.
    """
    lines: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for row in csv.DictReader(tsv.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        word = (row.get("text") or "").strip()
        if row.get("level") == _WORD_LEVEL and word:
            place = (row["block_num"], row["par_num"], row["line_num"])
            lines.setdefault(place, []).append((word, float(row["conf"])))
    text, last = "", None
    confidences: list[float] = []
    for (block, paragraph, _), words in lines.items():
        sure = [confidence for _, confidence in words]
        if sum(sure) < _NOISE_CONFIDENCE * len(sure):
            continue
        confidences += sure
        text += ("" if last is None else "\n" if last == (block, paragraph) else "\n\n") + " ".join(w for w, _ in words)
        last = (block, paragraph)
    mean = round(sum(confidences) / len(confidences), 1) if confidences else None
    return Reading(join_cut_words(text), mean, len(confidences))
