"""Word documents: the accepted text, with tables row by row, boxes once, headers, footers and notes in own parts.

Main part and all others are found through relationships. Comments and tracked changes are kept apart from the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lxml import etree

from shared.errors import UnreadableFileError
from shared.ingest.convert.blocks import TextBuilder, storable, tidy
from shared.ingest.convert.docx_inline import (
    ADDED,
    REMOVED,
    TRANSPARENT,
    Changes,
    attribute,
    boxes,
    child,
    chosen,
    local,
    read_paragraph,
    removed_text,
)
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.html import text_of
from shared.ingest.convert.ooxml import Package
from shared.text.converted import ConvertedText
from shared.text.normalise import stored

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
    changes.settle()
    text = builder.build(title=package.title())
    meta = {
        "heading": reader.heading,
        "comments": comments,
        "insertions": changes.insertions,
        "deletions": changes.deletions,
        "moves": changes.moves,
        "hidden_text": "\n".join(changes.hidden),
        "umlauts_lost": _lost_umlauts(body, text, changes),
        "has_macros": any(r.kind == "vbaProject" for r in reader.relationships.values()),
    }
    kept = {key: value for key, value in meta.items() if value}
    return Conversion(replace(text, meta=storable(kept)), tuple(package.embedded()))


def _lost_umlauts(body: etree._Element, text: ConvertedText, changes: Changes) -> int:
    """Return how many umlauts of the file are in no text that was made of it.

    Those of the file are counted without the reader: when some are lost, so are words.
    """
    runs = (
        "".join(run.itertext())
        for run in body.iter("{*}t", "{*}delText")
        if not any(local(around) == "Fallback" for around in run.iterancestors())
    )
    there = text.text[: text.pages[0].char_end] if text.pages else ""
    apart = [change["text"] or "" for kind in (changes.deletions, changes.moves) for change in kind]
    return max(0, _umlauts(stored("".join(runs))) - _umlauts("".join([there, *apart, *changes.hidden])))


def _umlauts(text: str) -> int:
    return sum(text.count(letter) for letter in "äöüÄÖÜß")


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
            elif name in ADDED or (name in TRANSPARENT and name != "r"):
                yield from self._flat(element)
            elif name in REMOVED:
                self.changes.removed(element, removed_text(element))
            else:
                yield element

    def _paragraph(self, element: etree._Element) -> tuple[str, list[etree._Element], bool]:
        paragraph = read_paragraph(element, self.changes)
        properties = child(element, "pPr")
        marks = child(properties, "rPr") if properties is not None else None
        merged = marks is not None and any(local(mark) in REMOVED for mark in marks)
        style = child(properties, "pStyle") if properties is not None else None
        text = paragraph.text
        if (
            self.heading is None
            and style is not None
            and (attribute(style, "val") or "").lower() in self._heading_styles
            and text.strip()
        ):
            self.heading = tidy(text)
        return text, paragraph.boxes, merged

    def _rows(self, table: etree._Element) -> Iterator[str]:
        for row in self._flat(table):
            if local(row) != "tr":
                continue
            removed, added = child(row, "trPr", "del"), child(row, "trPr", "ins")
            if removed is not None:
                self.changes.removed(removed, removed_text(row).strip())
                continue
            before = len(self.changes.insertions)
            cells = [
                "\n".join(line for block in self.blocks(cell) if (line := tidy(block)))
                for cell in self._flat(row)
                if local(cell) == "tc" and not self._is_removed(cell)
            ]
            text = " | ".join(cells) if any(cells) else ""
            if added is not None and len(self.changes.insertions) == before:
                # Word marks the runs of a new row as well, other programs the row alone.
                self.changes.added(added, text)
            yield text

    def _is_removed(self, cell: etree._Element) -> bool:
        removed = child(cell, "tcPr", "cellDel")
        if removed is not None:
            self.changes.removed(removed, removed_text(cell).strip())
        return removed is not None

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
