"""The texts of DrawingML: shapes of slides, boxes on sheets, tables, diagrams."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from shared.ingest.convert.docx_inline import chosen, local


def paragraphs(element: etree._Element) -> Iterator[str]:
    """Yield the paragraphs below an element, and each table row as one line; alternatives once."""
    for inner in element:
        name = local(inner)
        if name == "AlternateContent":
            for option in chosen(inner):
                if local(option) == "tbl":
                    yield from _rows(option)
                else:
                    yield from paragraphs(option)
        elif name == "tbl":
            yield from _rows(inner)
        elif name == "p" and any(local(run) in {"r", "fld", "br"} for run in inner):
            yield paragraph(inner)
        else:
            yield from paragraphs(inner)


def paragraph(element: etree._Element) -> str:
    """Return the text of an `a:p`."""
    pieces = []
    for run in element:
        if local(run) == "br":
            pieces.append("\n")
        elif local(run) in {"r", "fld"}:
            pieces.extend(text.text or "" for text in run if local(text) == "t")
    return "".join(pieces)


def _rows(table: etree._Element) -> Iterator[str]:
    for row in table.iterchildren("{*}tr"):
        cells = [" ".join(paragraphs(cell)) for cell in row.iterchildren("{*}tc")]
        if any(cells):
            yield " | ".join(cells)
