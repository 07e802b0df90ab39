"""JSON that carries texts, as exports of court decisions do: each text under its name, in the order of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from shared.errors import UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.html import text_of

_MIN_PROSE_CHARS = 200
_MARKUP = re.compile(r"<(?:!doctype|html|p|div|br|h\d|table|span)\b", re.IGNORECASE)
_NO_WORDS = re.compile(r"^[\W_]*$")
_NOT_TEXT = re.compile(r"^(?:https?://\S*|[\w.-]+|\d{4}-\d{2}-\d{2}T\S+)$")
_KEPT_WORDS = frozenset({"file_number", "ecli", "date", "type", "court", "court_raw", "aktenzeichen", "number"})
# A field that only repeats another in its raw form.
_RAW = frozenset({"raw", "raw_html"})


def convert(content: bytes) -> Conversion:
    """Return the texts of a JSON file; data without any prose are no text to search."""
    decoded = decode(content)
    try:
        value = json.loads(decoded.text)
    except RecursionError as error:
        raise UnreadableFileError("the JSON file is nested too deeply") from error
    except ValueError as error:
        raise UnreadableFileError(f"the JSON file is broken: {error}") from error
    fields = list(_fields(value))
    if not any(len(text) >= _MIN_PROSE_CHARS for _, text in fields):
        raise UnsupportedFileError("the JSON file holds data and no text of any length")
    first = dict(reversed(fields))
    has_content = any(name == "content" and len(text) >= _MIN_PROSE_CHARS for name, text in fields)
    builder = TextBuilder()
    builder.page(None, locus="body")
    for name, text in fields:
        if name in _RAW and has_content:
            continue
        readable = text_of(text) if _MARKUP.search(text) else text
        builder.add(readable if len(readable) >= _MIN_PROSE_CHARS else f"{name}: {readable}")
    meta = {
        "doc_date": first.get("date"),
        "encoding": decoded.encoding,
        "encoding_confidence": decoded.confidence,
    }
    return Conversion(builder.build(title=first.get("title"), meta=meta))


def _fields(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every string that reads as text, with the name of its field; without recursion."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        name, item = stack.pop()
        if isinstance(item, dict):
            stack.extend((str(key), inner) for key, inner in reversed(list(item.items())))
        elif isinstance(item, list):
            stack.extend((name, inner) for inner in reversed(item))
        elif isinstance(item, str) and _reads(name, item):
            yield name, item


def _reads(name: str, text: str) -> bool:
    return not _NO_WORDS.match(text) and (name in _KEPT_WORDS or not _NOT_TEXT.match(text))
