"""The text of a Word paragraph as it reads when all tracked changes are accepted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lxml import etree

# Containers that are not there for a reader.
TRANSPARENT = frozenset(
    {
        "smartTag", "customXml", "sdtContent", "hyperlink", "fldSimple", "dir", "bdo", "r",
        "ruby", "rubyBase", "oMath", "oMathPara", "num", "den", "e", "sup", "sub", "f", "sSup", "sSub",
        "rad", "deg", "d",
    }
)  # fmt: skip
ADDED = frozenset({"ins", "moveTo"})
REMOVED = frozenset({"del", "moveFrom"})
_LITERAL = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": ""}
_NOTES = frozenset({"footnoteReference", "endnoteReference"})
_DRAWN = frozenset({"drawing", "pict", "object"})
_MAX_CHANGES = 2000
_PRIVATE_USE = range(0xF000, 0xF100)


@dataclass(slots=True)
class Changes:
    """Tracked changes apart from the text: {"author", "date", "text"} each, at most `_MAX_CHANGES` of a kind.

    What was moved stands once in the text, where it is now; `hidden` is text that is formatted not to be seen.
    """

    insertions: list[dict[str, str | None]] = field(default_factory=list)
    deletions: list[dict[str, str | None]] = field(default_factory=list)
    moves: list[dict[str, str | None]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    _left: list[dict[str, str | None]] = field(default_factory=list)

    def added(self, element: etree._Element, text: str) -> None:
        """Keep what an `ins` or `moveTo` has added."""
        _keep(self.moves if local(element) == "moveTo" else self.insertions, element, text)

    def removed(self, element: etree._Element, text: str) -> None:
        """Keep what a `del` has removed, or a `moveFrom` has taken from its place."""
        _keep(self._left if local(element) == "moveFrom" else self.deletions, element, text)

    def settle(self) -> None:
        """Count as deleted what left its place and has arrived nowhere. Call it when all parts are read."""
        arrived = "".join(_letters(move["text"]) for move in self.moves)
        self.deletions.extend(change for change in self._left if _letters(change["text"]) not in arrived)
        self._left.clear()


def _keep(kind: list[dict[str, str | None]], element: etree._Element, text: str) -> None:
    if text.strip() and len(kind) < _MAX_CHANGES:
        kind.append({"author": attribute(element, "author"), "date": attribute(element, "date"), "text": text})


def _letters(text: str | None) -> str:
    return "".join((text or "").split())


@dataclass(slots=True)
class Paragraph:
    """A paragraph's text, and the boxes that hang on it."""

    pieces: list[str] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in one piece."""
        return "".join(self.pieces)


def local(element: etree._Element) -> str:
    """Return an element's name without its namespace (transitional and strict ones are alike); "" for an entity."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element, name: str) -> str | None:
    """Return an attribute by its local name."""
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def child(element: etree._Element, *path: str) -> etree._Element | None:
    """Return the first descendant along a path of local names."""
    found: etree._Element | None = element
    for name in path:
        found = next((c for c in found if local(c) == name), None) if found is not None else None
    return found


def chosen(alternative: etree._Element) -> Iterable[etree._Element]:
    """Return the content of `mc:AlternateContent` once: the choice, the fallback only where there is no choice."""
    options = [c for c in alternative if local(c) == "Choice"] or [c for c in alternative if local(c) == "Fallback"]
    return list(options[0]) if options else []


def read_paragraph(element: etree._Element, changes: Changes) -> Paragraph:
    """Return the accepted text of a `w:p`."""
    paragraph = Paragraph()
    for inner in element:
        _read(inner, paragraph, changes)
    return paragraph


def _read(element: etree._Element, paragraph: Paragraph, changes: Changes) -> None:
    name = local(element)
    if name in _LITERAL:
        paragraph.pieces.append(_LITERAL[name])
    elif name in REMOVED:
        changes.removed(element, removed_text(element))
    elif name in ADDED:
        before = len(paragraph.pieces)
        _read_all(element, paragraph, changes)
        changes.added(element, "".join(paragraph.pieces[before:]))
    elif name == "AlternateContent":
        _read_all(chosen(element), paragraph, changes)
    elif name == "r" and _is_hidden(element):
        changes.hidden.append(removed_text(element))
    elif name in TRANSPARENT or name == "sdt":
        _read_all(element, paragraph, changes)
    elif name in _DRAWN:
        paragraph.boxes.extend(boxes(element))
    else:
        paragraph.pieces.append(_own_text(element, name))


def _read_all(elements: Iterable[etree._Element], paragraph: Paragraph, changes: Changes) -> None:
    for element in elements:
        _read(element, paragraph, changes)


def _own_text(element: etree._Element, name: str) -> str:
    """Return what a leaf shows; properties, bookmarks, field codes and deleted text show nothing."""
    if name == "t":
        return "".join(_literal(element))
    if name == "sym":
        return _symbol(element)
    return f"[{attribute(element, 'id') or '?'}]" if name in _NOTES else ""


def boxes(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the contents of text boxes below an element, each once."""
    for inner in element:
        name = local(inner)
        if name == "txbxContent":
            yield inner
        elif name == "AlternateContent":
            for option in chosen(inner):
                yield from [option] if local(option) == "txbxContent" else boxes(option)
        else:
            yield from boxes(inner)


def _literal(element: etree._Element) -> Iterator[str]:
    """Yield a text as it is written: an entity reference stays its own name, nothing stands in for it."""
    yield element.text or ""
    for inner in element:
        if isinstance(inner, etree._Entity):  # noqa: SLF001 - lxml names the class only so
            yield f"&{inner.name};"
        yield inner.tail or ""


def removed_text(element: etree._Element) -> str:
    """Return all text below an element, deleted or not, on one line a paragraph."""
    pieces: list[str] = []
    for inner in element.iter():
        name = local(inner)
        if name in {"delText", "t"}:
            pieces.extend(_literal(inner))
        elif name in {"tab", "br", "cr", "tc"}:
            pieces.append(" ")
        elif name == "p" and pieces:
            pieces.append("\n")
    return "".join(pieces)


def _is_hidden(run: etree._Element) -> bool:
    vanish = child(run, "rPr", "vanish")
    return vanish is not None and (attribute(vanish, "val") or "true") not in {"0", "false", "off"}


def _symbol(element: etree._Element) -> str:
    try:
        code = int(attribute(element, "char") or "", 16)
    except ValueError:
        return ""
    # Symbol fonts sit in the private use area; the letter below it is a guess that would be read as text.
    return "" if code in _PRIVATE_USE or not 0 < code <= sys.maxunicode else chr(code)
