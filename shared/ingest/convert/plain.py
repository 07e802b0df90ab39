"""Plain text, Markdown and CSV, as they are."""

from __future__ import annotations

import re

from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion

_HEADING = re.compile(r"^#{1,2}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)


def convert(content: bytes) -> Conversion:
    """Return the text of a file without markup; its title is the first heading of Markdown."""
    decoded = decode(content)
    builder = TextBuilder()
    builder.add(decoded.text)
    heading = _HEADING.search(decoded.text[:4000])
    meta = {"encoding": decoded.encoding, "encoding_confidence": decoded.confidence}
    return Conversion(builder.build(title=heading.group(1) if heading else None, meta=meta))
