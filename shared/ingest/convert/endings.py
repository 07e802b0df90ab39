"""The ending of a file's name by its kind, for files that come without a name."""

from __future__ import annotations

import mimetypes

from shared.ingest.convert.formats import DOCM, DOCX

# What the standard table lacks, and where it names another ending first.
_OWN = {
    DOCX: ".docx",
    DOCM: ".docm",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.ms-outlook": ".msg",
    "application/rtf": ".rtf",
    "application/xml": ".xml",
    "message/rfc822": ".eml",
}


def ending_of(kind: str | None) -> str:
    """Return the ending, with its dot; ".bin" for a kind that has none."""
    if kind is None:
        return ".bin"
    return _OWN.get(kind) or mimetypes.guess_extension(kind) or ".bin"
