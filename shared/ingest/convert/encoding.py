"""Bytes to text: byte order mark, strict UTF-8, then cp1252. Statistics never beat valid UTF-8."""

from __future__ import annotations

import codecs
import unicodedata
from dataclasses import dataclass

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES = 4096
_MIN_WIDE_SAMPLE = 8
_MAX_CONTROL_SHARE = 0.05
_TEXT_CONTROLS = frozenset("\t\n\r\f\v\x1a\x1b\x85")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, the encoding it was read in, and how sure that is: "marked", "valid" or "assumed"."""

    text: str
    encoding: str
    confidence: str


def decode(content: bytes) -> Decoded:
    """Return the text of `content`; never fails."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return Decoded(content[len(mark) :].decode(encoding, "replace"), encoding, "marked")
    wide = _wide(content[:_SAMPLE_BYTES])
    if wide:
        return Decoded(content.decode(wide, "replace"), wide, "assumed")
    try:
        return Decoded(content.decode("utf-8"), "utf-8", "valid")
    except UnicodeDecodeError:
        # The five bytes that cp1252 leaves open are C1 controls in Latin-1; no byte is lost.
        return Decoded("".join(map(_CP1252.__getitem__, content)), "cp1252", "assumed")


def looks_like_text(content: bytes) -> bool:
    """Return whether the beginning of `content` reads as text rather than as a binary file."""
    sample = decode(content[:_SAMPLE_BYTES]).text
    if not sample:
        return False
    controls = sum(1 for c in sample if unicodedata.category(c) == "Cc" and c not in _TEXT_CONTROLS)
    return controls / len(sample) <= _MAX_CONTROL_SHARE


def _wide(sample: bytes) -> str | None:
    """Return UTF-16's name for text without a mark: every other byte of Western text in it is zero."""
    if len(sample) < _MIN_WIDE_SAMPLE:
        return None
    even, odd = sample[0::2], sample[1::2]
    if odd.count(0) > len(odd) * 0.7 and even.count(0) == 0:
        return "utf-16-le"
    if even.count(0) > len(even) * 0.7 and odd.count(0) == 0:
        return "utf-16-be"
    return None


_CP1252 = [bytes([b]).decode("cp1252", "replace") for b in range(256)]
_CP1252 = [chr(b) if c == "\ufffd" else c for b, c in enumerate(_CP1252)]
