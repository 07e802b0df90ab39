"""The text of OpenDocument paragraphs and blocks, with changes, notes and comments collected on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from shared.ingest.convert.docx_inline import local

_MAX_SPACES = 1000
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg"
_MAX_CHANGES = 2000
_ROW_GROUPS = frozenset({"table-rows", "table-header-rows", "table-row-group"})
_MARKS = frozenset({"change", "change-start", "change-end"})
# What a reader of the text does not see.
_UNSEEN = frozenset(
    {
        "tracked-changes", "notes", "forms", "sequence-decls", "variable-decls", "user-field-decls", "hidden-text",
        "hidden-paragraph", "dde-connection-decls", "settings", "event-listeners", "script",
        "ruby-text", "named-expressions", "database-ranges", "content-validations", "calculation-settings",
    }
)  # fmt: skip


@dataclass(slots=True)
class _Insertion:
    about: dict[str, Any]
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """What is kept apart from the text: changes with author and date, notes with their number, comments."""

    insertions: list[dict[str, Any]] = field(default_factory=list)
    deletions: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    heading: str | None = None
    _inserted: dict[str, dict[str, Any]] = field(default_factory=dict)
    _open: dict[str, _Insertion] = field(default_factory=dict)

    def read_changes(self, kind: etree._Element) -> None:
        """Read the list of tracked changes that stands before the text."""
        for region in kind.iterchildren("{*}tracked-changes"):
            for change in region.iter("{*}deletion", "{*}insertion"):
                about = {"author": _of(change, "creator"), "date": _of(change, "date")}
                number = attribute(change.getparent(), "id") or ""
                if local(change) == "insertion":
                    self._inserted[number] = about
                else:
                    text = "\n".join(block for block in blocks(change, Found()) if block.strip())
                    _keep(self.deletions, {**about, "text": text})

    def mark(self, element: etree._Element) -> None:
        """Begin or end what was inserted."""
        number = attribute(element, "change-id") or ""
        if local(element) == "change-start" and number in self._inserted:
            self._open[number] = _Insertion(self._inserted[number])
        elif local(element) == "change-end" and number in self._open:
            done = self._open.pop(number)
            _keep(self.insertions, {**done.about, "text": "".join(done.pieces).strip("\n")})

    def read(self, text: str) -> None:
        """Note a text that is read, for the insertions that are open."""
        for insertion in self._open.values():
            insertion.pieces.append(text)

    def meta(self) -> dict[str, Any]:
        """Return what there is of all this."""
        kept = {
            "heading": self.heading,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "comments": self.comments[:_MAX_CHANGES],
        }
        return {key: value for key, value in kept.items() if value}


def attribute(element: etree._Element, name: str) -> str | None:
    """Return an attribute by its local name."""
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def blocks(container: etree._Element, found: Found) -> Iterator[str]:
    """Yield the blocks of a body, cell, box, note or header: paragraphs, headings, rows, what hangs on them."""
    for element in container:
        name = local(element)
        if name in {"p", "h"}:
            yield from _paragraph(element, found)
        elif name == "table":
            yield from _rows(element, found)
        elif name in _MARKS:
            found.mark(element)
        elif name == "annotation":
            _comment(element, found)
        elif name and _is_seen(element, name):
            yield from blocks(element, found)


def inner_text(element: etree._Element) -> str:
    """Return the text of a paragraph without anything that hangs on it."""
    return "".join(_pieces(element, Found(), []))


def _paragraph(element: etree._Element, found: Found) -> Iterator[str]:
    hanging: list[etree._Element] = []
    text = "".join(_pieces(element, found, hanging))
    found.read("\n")
    if local(element) == "h" and found.heading is None and text.strip():
        found.heading = " ".join(text.split())
    yield text
    for box in hanging:
        yield from blocks(box, found)


def _pieces(element: etree._Element, found: Found, hanging: list[etree._Element]) -> Iterator[str]:
    yield from _said(element.text, found)
    for inner in element:
        yield from _piece(inner, found, hanging)
        yield from _said(inner.tail, found)


def _piece(inner: etree._Element, found: Found, hanging: list[etree._Element]) -> Iterator[str]:
    name = local(inner)
    if isinstance(inner, etree._Entity):  # noqa: SLF001 - lxml names the class only so
        yield from _literal(f"&{inner.name};", found)
    elif name == "s":
        count = attribute(inner, "c") or "1"
        yield from _literal(" " * min(int(count) if count.isdigit() else 1, _MAX_SPACES), found)
    elif name in {"tab", "line-break"}:
        yield from _literal("\t" if name == "tab" else "\n", found)
    elif name in _MARKS:
        found.mark(inner)
    elif name == "note":
        yield from _note(inner, found)
    elif name == "annotation":
        _comment(inner, found)
    elif name in {"frame", "text-box", "custom-shape", "g", "rect", "ellipse", "table"}:
        hanging.append(inner)
    elif name and _is_seen(inner, name):
        yield from _pieces(inner, found, hanging)


def _is_seen(element: etree._Element, name: str) -> bool:
    """Return whether a reader sees what is in an element; title and description of a picture stand in it as SVG."""
    return name not in _UNSEEN and not element.tag.startswith(_SVG)


def _said(text: str | None, found: Found) -> Iterator[str]:
    # White space in the file is one space, as in HTML; more of it has elements of its own.
    if text:
        lead = " " if text[0].isspace() else ""
        trail = " " if text[-1].isspace() and text.strip() else ""
        yield from _literal(lead + " ".join(text.split()) + trail, found)


def _literal(text: str, found: Found) -> Iterator[str]:
    found.read(text)
    yield text


def _note(note: etree._Element, found: Found) -> Iterator[str]:
    number = next((inner_text(inner) for inner in note.iterchildren("{*}note-citation")), "") or "?"
    for body in note.iterchildren("{*}note-body"):
        found.notes.append((number, "\n".join(block for block in blocks(body, found) if block.strip())))
    yield from _literal(f"[{number}]", found)


def _comment(annotation: etree._Element, found: Found) -> None:
    text = "\n".join(block for block in blocks(annotation, Found()) if block.strip())
    author = next((inner_text(inner) for inner in annotation.iterchildren("{*}creator")), None)
    date = next((inner.text for inner in annotation.iterchildren("{*}date")), None)
    found.comments.append({"author": author or None, "date": date, "text": text})


def _rows(table: etree._Element, found: Found) -> Iterator[str]:
    """Yield the rows of a table or of a group of rows, each as one line."""
    for row in table:
        if local(row) in _ROW_GROUPS:
            yield from _rows(row, found)
        elif local(row) == "table-row":
            cells = [
                "\n".join(block for block in blocks(cell, found) if block.strip())
                for cell in row.iterchildren("{*}table-cell")
            ]
            if any(cells):
                yield " | ".join(cells)


def _of(change: etree._Element, name: str) -> str | None:
    return next((inner.text for inner in change.iter(f"{{*}}{name}")), None)


def _keep(kind: list[dict[str, Any]], change: dict[str, Any]) -> None:
    if change["text"].strip() and len(kind) < _MAX_CHANGES:
        kind.append(change)
