"""XML: messages of courts and invoices by what they mean, everything else as the texts under their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lxml import etree

from shared.errors import UnreadableFileError
from shared.ingest.convert import invoice, xjustiz
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.docx_inline import local
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.ooxml import parse
from shared.ingest.convert.xml_reading import Reading

_MIN_PROSE_CHARS = 200
# Markup of prose has short names ("p", "h1", "td"); they tell a reader nothing.
_MIN_LABEL_CHARS = 4
_MAX_ATTRIBUTES = 1000
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_NO_WORDS = re.compile(
    r"^(?:true|false|[\W_]*|\d{1,3}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:https?|urn):\S*)$", re.IGNORECASE
)
_READERS: tuple[Callable[[etree._Element], Reading | None], ...] = (xjustiz.read, invoice.read)


def convert(content: bytes) -> Conversion:
    """Return the text of an XML file. Entities stay as they are written, and nothing outside of it is read."""
    root, encoding, confidence = _root(content)
    builder = TextBuilder()
    reading = next((found for read in _READERS if (found := read(root)) is not None), Reading())
    for locus, lines in reading.parts:
        builder.page(None, locus=locus)
        for line in lines:
            builder.add(line)
    builder.page(None, locus="data" if reading.parts else "body")
    blocks = _blocks(root, frozenset(reading.used))
    # What a reader has left over are codes and amounts, the same ones at every item of it.
    for block in dict.fromkeys(blocks) if reading.parts else blocks:
        builder.add(block)
    text = builder.build(
        title=reading.title, meta={"encoding": encoding, "encoding_confidence": confidence, **reading.meta}
    )
    return Conversion(text, reading.members)


def _root(content: bytes) -> tuple[etree._Element, str, str]:
    try:
        root = parse(content, "XML")
    except UnreadableFileError:
        decoded = decode(content)
        if decoded.confidence == "valid" or not _DECLARATION.match(decoded.text):
            raise
        # It says UTF-8 and is not: read as any other text is.
        plain = _DECLARATION.sub("", decoded.text)
        return parse(plain.encode(), "XML"), decoded.encoding, decoded.confidence
    return root, root.getroottree().docinfo.encoding or "utf-8", "declared"


def _blocks(root: etree._Element, used: frozenset[etree._Element]) -> Iterator[str]:
    """Yield the text of each element that has any, with its name; what readers have used is left out."""
    stack = [root]
    while stack:
        element = stack.pop()
        if element in used:
            continue
        children = [inner for inner in element if isinstance(inner.tag, str)]
        if children and not _is_prose(element, children):
            stack.extend(reversed(children))
            continue
        text = " ".join(_whole(element).split()) if children else _whole(element).strip()
        if not text and not children:
            yield from _attributes(element)
        elif not _NO_WORDS.match(text):
            yield _labelled(local(element), text)


def _is_prose(element: etree._Element, children: list[etree._Element]) -> bool:
    """Return whether words stand between the elements in it, so that they are one text."""
    pieces = (element.text, *(inner.tail for inner in children))
    return any(piece and piece.strip() for piece in pieces)


def _whole(element: etree._Element) -> str:
    pieces = [element.text or ""]
    for inner in element.iterdescendants():
        if isinstance(inner, etree._Entity):  # noqa: SLF001 - lxml names the class only so
            pieces.append(f"&{inner.name};")
        elif isinstance(inner.tag, str):
            pieces.append(inner.text or "")
        pieces.append(inner.tail or "")
    return "".join(pieces)


def _attributes(element: etree._Element) -> Iterator[str]:
    if len(element.attrib) > _MAX_ATTRIBUTES:
        # Reading them takes time with the square of their number, and no document has them.
        return
    for name, value in element.attrib.items():
        if not _NO_WORDS.match(value) and not name.startswith("{http://www.w3.org/"):
            yield _labelled(etree.QName(name).localname, value)


def _labelled(name: str, text: str) -> str:
    return text if len(text) >= _MIN_PROSE_CHARS or len(name) < _MIN_LABEL_CHARS else f"{name}: {text}"
