"""The sheets of an OpenDocument workbook: what the cells show, dates in ISO form."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from openpyxl.utils import get_column_letter  # type: ignore[import-untyped] # has no types

from shared.ingest.convert.docx_inline import local
from shared.ingest.convert.odt_inline import Found, attribute, blocks
from shared.ingest.convert.xlsx_grid import Grid

_MAX_COLUMNS = 16_384
# A cell or row that is written once and stands for many: more of the same text says nothing.
_MAX_REPEATED = 10
_GROUPS = frozenset({"table-rows", "table-header-rows", "table-row-group"})


def read_sheets(spreadsheet: etree._Element, found: Found) -> Grid:
    """Return the cells of all sheets."""
    grid = Grid()
    for table in spreadsheet.iterchildren("{*}table"):
        grid.sheet(attribute(table, "name") or "", is_hidden=_is_hidden(table, spreadsheet))
        number = 1
        for row in _rows(table):
            repeated = _times(row, "number-rows-repeated")
            cells = list(_cells(row, found))
            for again in range(min(repeated, _MAX_REPEATED) if cells else 0):
                grid.row([(f"{get_column_letter(column)}{number + again}", text) for column, text in cells])
            number += repeated
        for shapes in table.iterchildren("{*}shapes"):
            for text in blocks(shapes, found):
                grid.text(text)
    return grid


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for element in table:
        if local(element) == "table-row":
            yield element
        elif local(element) in _GROUPS:
            yield from _rows(element)


def _cells(row: etree._Element, found: Found) -> Iterator[tuple[int, str]]:
    column = 1
    for cell in row:
        if local(cell) not in {"table-cell", "covered-table-cell"}:
            continue
        repeated = _times(cell, "number-columns-repeated")
        text = _shown(cell, found)
        for again in range(min(repeated, _MAX_REPEATED) if text else 0):
            yield min(column + again, _MAX_COLUMNS), text
        column += repeated


def _shown(cell: etree._Element, found: Found) -> str:
    text = " ".join(" ".join(blocks(cell, found)).split())
    day = attribute(cell, "date-value")
    return day or text or attribute(cell, "string-value") or attribute(cell, "value") or ""


def _times(element: etree._Element, name: str) -> int:
    value = attribute(element, name) or ""
    return max(1, int(value)) if value.isdigit() and len(value) <= len(str(2**31)) else 1


def _is_hidden(table: etree._Element, spreadsheet: etree._Element) -> bool:
    """Return whether the style of a sheet hides it."""
    wanted = attribute(table, "style-name")
    root = spreadsheet.getroottree().getroot()
    for style in root.iter("{*}style"):
        if attribute(style, "name") == wanted and attribute(style, "family") == "table":
            return any(attribute(one, "display") == "false" for one in style)
    return False
