"""The one normaliser: the form that is stored and shown, and the form that is searched.

Stored text is NFC without characters that PostgreSQL or JSON cannot carry; offsets refer to it. The searched form is
what the analysed fields and every query get, so that a query typed with plain spaces finds a file number printed with
non-breaking ones, and composed letters find decomposed ones.
"""

from __future__ import annotations

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Hyphens and dashes, the minus sign and its full-width and small forms.
_DASHES = re.compile("[\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
# Every Unicode white space but line breaks, which stay for those who cut text into lines.
_SPACES = re.compile(r"[^\S\n\r]")
_ALL_SPACES = re.compile(r"\s+")


def stored(text: str) -> str:
    """Return `text` in NFC without NUL and lone surrogates: the form that is stored, shown and counted in."""
    return unicodedata.normalize("NFC", _UNSTORABLE.sub("", text))


def searched(text: str) -> str:
    """Return the form of `text` that is analysed and queried.

    NFKC; every Unicode space a plain one; dash variants "-"; soft hyphens and other invisible marks out. Line
    breaks stay, the length may differ from the stored form.
    """
    plain = _UNSTORABLE.sub("", text)
    # Dashes first: NFKC would turn the non-breaking hyphen U+2011 into U+2010 only.
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", _DASHES.sub("-", plain)))
    return _SPACES.sub(" ", folded)


def single_line(text: str) -> str:
    """Return the searched form on one line, spaces single: for identifiers, names and queries."""
    return _ALL_SPACES.sub(" ", searched(text)).strip()
