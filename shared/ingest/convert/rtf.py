"""RTF: the text that is seen; what is deleted, hidden or commented stands beside it, pictures and objects do not."""

from __future__ import annotations

from shared.errors import UnreadableFileError
from shared.ingest.convert import html
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.rtf_reader import BODY, PARTS, read


def convert(content: bytes) -> Conversion:
    """Return the text of an RTF document: body, headers, footers and notes, each part once."""
    found = read(content)
    builder = TextBuilder()
    parts = found.parts if found.html is None else {**found.parts, BODY: html.text_of(found.html)}
    for locus in PARTS:
        builder.page(None, locus=locus)
        builder.add(parts.get(locus, ""))
    meta = {
        "insertions": found.insertions,
        "deletions": found.deletions,
        "comments": found.comments,
        "hidden_text": found.hidden,
        "dropped_pictures": found.pictures,
        "dropped_objects": found.objects,
        "breaks_off": found.breaks_off,
    }
    text = builder.build(title=found.title, meta={key: value for key, value in meta.items() if value})
    if found.breaks_off and not text.text:
        raise UnreadableFileError("the RTF document breaks off before its text begins")
    return Conversion(text)


def text_of(content: bytes) -> str:
    """Return the body of an RTF document that stands in another format, also where it is wrapped HTML."""
    found = read(content)
    return found.parts.get(BODY, "") if found.html is None else html.text_of(found.html)
