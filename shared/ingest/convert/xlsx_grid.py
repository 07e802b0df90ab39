"""The text of tables: a line a row, a part a sheet, and where in the text each cell begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.ingest.convert.blocks import TextBuilder, tidy
from shared.text.converted import ConvertedText

# What is longer is data and no document: the rest is counted and left out.
MAX_CELLS = 200_000
_MAX_MAPPED_CELLS = 20_000
_GAP = " | "


@dataclass(slots=True)
class Sheet:
    """A sheet: its name, whether it is hidden, and its rows as (address, text) a cell that is not empty."""

    name: str
    is_hidden: bool = False
    rows: list[list[tuple[str, str]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class Grid:
    """Collects sheets up to a number of cells."""

    def __init__(self) -> None:
        self._sheets: list[Sheet] = []
        self._cells = 0
        self._left_out = 0

    @property
    def is_full(self) -> bool:
        """Whether no more cells are taken."""
        return self._cells >= MAX_CELLS

    def sheet(self, name: str, *, is_hidden: bool = False) -> None:
        """Begin a sheet."""
        self._sheets.append(Sheet(name, is_hidden))

    def row(self, cells: Sequence[tuple[str, str]]) -> None:
        """Add a row to the sheet that was begun last."""
        kept = [(address, line) for address, text in cells if (line := " ".join(tidy(text).split()))]
        if not kept:
            return
        if self.is_full:
            self._left_out += len(kept)
            return
        self._cells += len(kept)
        self._sheets[-1].rows.append(kept)

    def text(self, text: str) -> None:
        """Add a text that stands on the sheet and in no cell."""
        self._sheets[-1].texts.append(text)

    def build(self, *, title: str | None, meta: dict[str, Any]) -> ConvertedText:
        """Return the text; `meta["sheets"]` holds each sheet's name, state and cells as [address, first character]."""
        builder = TextBuilder()
        for number, sheet in enumerate(self._sheets, start=1):
            builder.page(number, locus=f"sheet {sheet.name}")
            for row in sheet.rows:
                builder.add(_GAP.join(text for _, text in row))
            for text in sheet.texts:
                builder.add(text)
        built = builder.build(title=title)
        about = [
            {"name": sheet.name, "hidden": sheet.is_hidden, "cells": cells}
            for sheet, cells in zip(self._sheets, self._mapped(built), strict=True)
        ]
        more = {"cells_left_out": self._left_out} if self._left_out else {}
        return builder.build(title=title, meta={**meta, **more, "sheets": about})

    def _mapped(self, built: ConvertedText) -> list[list[list[Any]]]:
        """Return where each cell begins, of as many as are worth keeping."""
        mapped: list[list[list[Any]]] = []
        left = _MAX_MAPPED_CELLS
        for sheet, page in zip(self._sheets, built.pages, strict=True):
            cells: list[list[Any]] = []
            start = page.char_start
            for row in sheet.rows:
                for address, text in row:
                    if left > 0:
                        cells.append([address, start])
                        left -= 1
                    start += len(text) + len(_GAP)
                # A line break stands after the last cell, where the gap was counted.
                start += 1 - len(_GAP)
            mapped.append(cells)
        return mapped
