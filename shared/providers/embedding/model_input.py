"""The text a model is given: any Python string made sendable."""

from __future__ import annotations

import re

_UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
BLANK = "."
"""What stands for a text without content: providers refuse an empty input, and a caller still gets a vector."""


def sendable(text: str) -> str:
    """Return `text` as valid Unicode without NUL (each offender becomes a space), or `BLANK` if it is blank.

    Lone surrogates cannot be encoded as UTF-8 and NUL ends a string in C; both come out of broken PDF files.
    """
    cleaned = _UNSENDABLE.sub(" ", text)
    return cleaned if cleaned.strip() else BLANK
