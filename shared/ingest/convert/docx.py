"""Word documents: the accepted text, with tables row by row, boxes once, headers, footers and notes in own parts.

Main part and all others are found through relationships. Comments and tracked changes are kept apart from the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from shared.errors import UnreadableFileError
from shared.ingest.convert.blocks import TextBuilder, tidy
from shared.ingest.convert.docx_inline import (
    REMOVED,
    TRANSPARENT,
    Changes,
    attribute,
    boxes,
    child,
    chosen,
    local,
    read_paragraph,
)
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.html import text_of
from shared.ingest.convert.ooxml import Package

_HEADING_NAMES = ("heading 1", "title", "überschrift 1", "titel")
_MAX_COMMENTS = 2000
_SEPARATORS = frozenset({"separator", "continuationSeparator", "continuationNotice"})


def convert(content: bytes) -> Conversion:
    """Return the text of a DOCX, DOCM or DOTX. Macros are not read; that there are some is kept."""
    package = Package(content)
    main = package.main_part()
    reader = _Reader(package, main)
    root = package.xml(main)
    body = child(root, "body")
    if body is None:
        raise UnreadableFileError("the document has no body")
    builder = TextBuilder()
    builder.page(None, locus="body")
    for block in reader.blocks(body):
        builder.add(block)
    for locus, kinds in (("header", {"header"}), ("footer", {"footer"}), ("notes", {"footnotes", "endnotes"})):
        builder.page(None, locus=locus)
        for block in reader.apart(kinds):
            builder.add(block)
    comments = list(reader.comments())
    changes = reader.changes
    meta = {
        "heading": reader.heading,
        "comments": comments,
        "insertions": changes.insertions,
        "deletions": changes.deletions,
        "has_macros": any(r.kind == "vbaProject" for r in reader.relationships.values()),
    }
    kept = {key: value for key, value in meta.items() if value}
    return Conversion(builder.build(title=package.title(), meta=kept), tuple(package.embedded()))


class _Reader:
    """Walks the parts of one document."""

    def __init__(self, package: Package, main: str) -> None:
        self._package = package
        self.relationships = package.relationships(main)
        self.changes = Changes()
        self.heading: str | None = None
        self._heading_styles = self._styles()
        # The part that is being read: relationship ids count in it.
        self._links = self.relationships

    def blocks(self, container: etree._Element) -> Iterator[str]:
        """Yield the blocks of a body, cell, box, header or note: paragraphs, rows, boxes."""
        pending = ""
        for element in self._flat(container):
            name = local(element)
            if name == "p":
                text, hanging, merged = self._paragraph(element)
                pending += text
                if merged:
                    continue
                yield pending
                pending = ""
                for box in hanging:
                    yield from self.blocks(box)
            elif name == "tbl":
                yield from self._rows(element)
            elif name == "altChunk":
                yield self._chunk(element)
            elif name in {"drawing", "pict", "object"}:
                for box in boxes(element):
                    yield from self.blocks(box)
        if pending:
            yield pending

    def apart(self, kinds: set[str]) -> Iterator[str]:
        """Yield the texts of headers, footers or notes, each different one once."""
        seen: set[str] = set()
        for relationship in sorted(self.relationships.values(), key=lambda r: r.target):
            if relationship.kind not in kinds:
                continue
            self._links = self._package.relationships(relationship.target)
            root = self._package.xml(relationship.target)
            parts = list(root) if local(root) in {"footnotes", "endnotes"} else [root]
            for part in parts:
                if attribute(part, "type") in _SEPARATORS:
                    continue
                text = "\n".join(line for block in self.blocks(part) if (line := tidy(block)))
                if local(part) in {"footnote", "endnote"} and text:
                    text = f"[{attribute(part, 'id')}] {text}"
                if text and text not in seen:
                    seen.add(text)
                    yield text
        self._links = self.relationships

    def comments(self) -> Iterator[dict[str, Any]]:
        """Yield each comment with author and date as far as they are given."""
        for relationship in self.relationships.values():
            if relationship.kind != "comments":
                continue
            for comment in list(self._package.xml(relationship.target).iter("{*}comment"))[:_MAX_COMMENTS]:
                text = "\n".join(line for block in self.blocks(comment) if (line := tidy(block)))
                author = attribute(comment, "author")
                yield {"author": author or None, "date": attribute(comment, "date"), "text": text}

    def _flat(self, container: etree._Element) -> Iterator[etree._Element]:
        """Yield block elements through containers that are not there for a reader; removed ones are left out."""
        for element in container:
            name = local(element)
            if name == "sdt":
                content = child(element, "sdtContent")
                if content is not None:
                    yield from self._flat(content)
            elif name == "AlternateContent":
                yield from chosen(element)
            elif name in TRANSPARENT and name != "r":
                yield from self._flat(element)
            elif name not in REMOVED:
                yield element

    def _paragraph(self, element: etree._Element) -> tuple[str, list[etree._Element], bool]:
        paragraph = read_paragraph(element, self.changes)
        properties = child(element, "pPr")
        mark = child(properties, "rPr", "del") if properties is not None else None
        style = child(properties, "pStyle") if properties is not None else None
        text = paragraph.text
        if (
            self.heading is None
            and style is not None
            and (attribute(style, "val") or "").lower() in self._heading_styles
            and text.strip()
        ):
            self.heading = tidy(text)
        return text, paragraph.boxes, mark is not None

    def _rows(self, table: etree._Element) -> Iterator[str]:
        for row in self._flat(table):
            if local(row) != "tr":
                continue
            properties = child(row, "trPr")
            if properties is not None and child(properties, "del") is not None:
                continue
            cells = [
                "\n".join(line for block in self.blocks(cell) if (line := tidy(block)))
                for cell in self._flat(row)
                if local(cell) == "tc"
            ]
            yield " | ".join(cells) if any(cells) else ""

    def _chunk(self, element: etree._Element) -> str:
        """Return the text of a part in another format that stands in the document."""
        relationship = self._links.get(attribute(element, "id") or "")
        if relationship is None:
            return ""
        content = self._package.read(relationship.target)
        ending = relationship.target.rpartition(".")[2].lower()
        if ending in {"htm", "html", "xhtml"}:
            return text_of(decode(content).text)
        if ending in {"txt", "text"}:
            return decode(content).text
        if content.startswith(b"PK"):
            return convert(content).text.text
        return ""

    def _styles(self) -> frozenset[str]:
        """Return the ids of styles for titles and first headings, whatever language named them."""
        ids = {"heading1", "title", "berschrift1", "titel"}
        for relationship in self.relationships.values():
            if relationship.kind != "styles":
                continue
            try:
                root = self._package.xml(relationship.target)
            except UnreadableFileError:
                continue
            for style in root.iter("{*}style"):
                name = child(style, "name")
                if name is not None and (attribute(name, "val") or "").lower() in _HEADING_NAMES:
                    ids.add((attribute(style, "styleId") or "").lower())
        return frozenset(ids)
