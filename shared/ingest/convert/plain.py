"""Plain text, Markdown and CSV, as they are; words that a line's end cut in two are put together."""

from __future__ import annotations

import re

from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.hyphens import is_table, join_cut_words

_HEADING = re.compile(r"^#{1,2}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)


def convert(content: bytes) -> Conversion:
    """Return the text of a file without markup; its title is the first heading of Markdown."""
    decoded = decode(content)
    builder = TextBuilder()
    builder.add(decoded.text if is_table(decoded.text) else join_cut_words(decoded.text))
    heading = _HEADING.search(decoded.text[:4000])
    meta = {"encoding": decoded.encoding, "encoding_confidence": decoded.confidence}
    return Conversion(builder.build(title=heading.group(1) if heading else None, meta=meta))
