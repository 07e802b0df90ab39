"""Excel workbooks: what the cells show, sheet by sheet; dates in ISO form, formulas by the values they had when saved.

Read part by part and row by row within the limits of the package. A workbook is not loaded into a model of it: that
takes memory without a limit, refuses strict files, and hides that a formula has no value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from lxml import etree
from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format  # type: ignore[import-untyped] # has no types
from openpyxl.utils.datetime import (  # type: ignore[import-untyped] # has no types
    CALENDAR_MAC_1904,
    CALENDAR_WINDOWS_1900,
    from_excel,
)

from shared.errors import UnreadableFileError
from shared.ingest.convert.docx_inline import attribute, child, local
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.ooxml import Package, Relationship, relation_id
from shared.ingest.convert.ooxml_drawing import paragraphs
from shared.ingest.convert.xlsx_grid import Grid

_MAX_COMMENTS = 2000
_SHOWN_DIGITS = 15
_BOOLEANS = {"0": "FALSE", "1": "TRUE"}


def convert(content: bytes) -> Conversion:
    """Return the text of a workbook; macros are not read, that there are some is kept."""
    package = Package(content)
    workbook = _Workbook(package)
    grid = Grid()
    comments: list[dict[str, Any]] = []
    for name, state, part in workbook.sheets():
        grid.sheet(name, is_hidden=state != "visible")
        for row in workbook.rows(part):
            grid.row(row)
        for relationship in package.relationships(part).values():
            if relationship.kind == "drawing":
                for text in paragraphs(package.xml(relationship.target)):
                    grid.text(text)
            elif relationship.kind == "comments":
                comments.extend({"sheet": name, **comment} for comment in _comments(package, relationship))
    meta = {
        "comments": comments[:_MAX_COMMENTS],
        "formulas_without_value": workbook.formulas_without_value,
        "has_macros": workbook.has_macros,
    }
    kept = {key: value for key, value in meta.items() if value}
    return Conversion(grid.build(title=package.title(), meta=kept), tuple(package.embedded()))


class _Workbook:
    def __init__(self, package: Package) -> None:
        self._package = package
        self._main = package.main_part()
        self._root = package.xml(self._main)
        self._relationships = package.relationships(self._main)
        self.has_macros = any(r.kind == "vbaProject" for r in self._relationships.values())
        self.formulas_without_value = 0
        properties = child(self._root, "workbookPr")
        is_1904 = properties is not None and attribute(properties, "date1904") in {"1", "true"}
        self._epoch = CALENDAR_MAC_1904 if is_1904 else CALENDAR_WINDOWS_1900
        self._strings = list(self._shared_strings())
        self._formats = list(self._cell_formats())

    def sheets(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, state and part of each sheet that has cells, in the order of the tabs."""
        found = child(self._root, "sheets")
        if found is None:
            raise UnreadableFileError("the workbook names no sheets")
        for sheet in found:
            relationship = self._relationships.get(relation_id(sheet) or "")
            if relationship is not None and relationship.kind == "worksheet":
                yield sheet.get("name") or "", sheet.get("state") or "visible", relationship.target

    def rows(self, part: str) -> Iterator[list[tuple[str, str]]]:
        """Yield the cells of each row that is not empty."""
        for number, row in enumerate(self._package.elements(part, "row"), start=1):
            cells = []
            for position, cell in enumerate(row, start=1):
                # A styled cell without content is the commonest of all.
                if len(cell) and local(cell) == "c" and (text := self._shown(cell)):
                    cells.append((cell.get("r") or f"R{number}C{position}", text))
            if cells:
                yield cells

    def _shown(self, cell: etree._Element) -> str:
        kind = cell.get("t") or "n"
        if kind == "inlineStr":
            inline = child(cell, "is")
            return _rich(inline) if inline is not None else ""
        value = child(cell, "v")
        raw = (value.text or "") if value is not None else ""
        if not raw:
            self.formulas_without_value += child(cell, "f") is not None
            return ""
        if kind == "s":
            return self._strings[int(raw)] if raw.isdigit() and int(raw) < len(self._strings) else ""
        if kind == "b":
            return _BOOLEANS.get(raw, raw)
        return self._number(raw, cell.get("s")) if kind == "n" else raw

    def _number(self, raw: str, style: str | None) -> str:
        if style and style.isdigit() and int(style) < len(self._formats):
            is_date, is_share = self._formats[int(style)]
        else:
            is_date = is_share = False
        try:
            number = float(raw)
        except ValueError:
            return raw
        if is_date:
            return _moment(number, self._epoch) or raw
        if is_share:
            return f"{_plain(number * 100)} %"
        # A long number of digits alone is a name, and no digit of it may change.
        return raw if raw.lstrip("-").isdigit() else _plain(number)

    def _shared_strings(self) -> Iterator[str]:
        for relationship in self._relationships.values():
            if relationship.kind == "sharedStrings":
                for item in self._package.elements(relationship.target, "si"):
                    yield _rich(item)

    def _cell_formats(self) -> Iterator[tuple[bool, bool]]:
        """Yield of each cell style, in their order, whether it shows a date, and whether a percentage."""
        for relationship in self._relationships.values():
            if relationship.kind != "styles":
                continue
            root = self._package.xml(relationship.target)
            own = {f.get("numFmtId"): f.get("formatCode") or "" for f in root.iter("{*}numFmt")}
            styles = child(root, "cellXfs")
            for style in styles if styles is not None else ():
                number = style.get("numFmtId") or "0"
                shown = own.get(number) or (BUILTIN_FORMATS.get(int(number), "") if number.isdigit() else "")
                yield bool(is_date_format(shown)), "%" in shown


def _rich(item: etree._Element) -> str:
    """Return the text of a string with runs; phonetic readings are not shown."""
    return "".join(
        text.text or ""
        for inner in item
        if local(inner) in {"t", "r"}
        for text in ([inner] if local(inner) == "t" else inner.iterchildren("{*}t"))
    )


def _moment(number: float, epoch: dt.datetime) -> str | None:
    try:
        moment = from_excel(number, epoch)
    except (ValueError, OverflowError, TypeError):
        return None
    if isinstance(moment, dt.datetime):
        return moment.date().isoformat() if moment.time() == dt.time() else moment.isoformat(timespec="seconds")
    return moment.isoformat(timespec="seconds") if isinstance(moment, dt.time) else str(moment)


def _plain(number: float) -> str:
    """Return a number as it was typed: Excel keeps fifteen digits, the rest is noise of binary fractions."""
    text = f"{number:.{_SHOWN_DIGITS}g}"
    return f"{number:.0f}" if "e+" in text else text


def _comments(package: Package, relationship: Relationship) -> Iterator[dict[str, Any]]:
    root = package.xml(relationship.target)
    authors = [author.text for author in root.iter("{*}author")]
    for comment in root.iter("{*}comment"):
        number, text = comment.get("authorId") or "", child(comment, "text")
        author = authors[int(number)] if number.isdigit() and int(number) < len(authors) else None
        if text is not None:
            yield {"cell": comment.get("ref"), "author": author or None, "date": None, "text": _rich(text)}
