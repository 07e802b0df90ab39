"""OpenDocument: texts, sheets and slides, as they read when all tracked changes are accepted.

A deletion lies in a list before the text and only a mark stands at its place; an insertion is what stands between two
marks. Both are kept apart with author and date. Headers and footers come from the styles, each different one once.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from shared.errors import EncryptedFileError, UnreadableFileError
from shared.ingest.convert.blocks import TextBuilder, tidy
from shared.ingest.convert.docx_inline import child, local
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.odt_inline import Found, blocks, inner_text
from shared.ingest.convert.odt_sheets import read_sheets
from shared.ingest.convert.ooxml import Package

_CONTENT, _STYLES, _META, _MANIFEST = "content.xml", "styles.xml", "meta.xml", "META-INF/manifest.xml"
_HEADERS = ("header", "header-first", "header-left")
_FOOTERS = ("footer", "footer-first", "footer-left")


def convert(content: bytes) -> Conversion:
    """Return the text of an ODT, ODS or ODP, or of a template of one."""
    package = Package(content)
    if package.has(_MANIFEST) and any(True for _ in package.xml(_MANIFEST).iter("{*}encryption-data")):
        raise EncryptedFileError("the document is encrypted with a password; store a copy without one")
    body = child(package.xml(_CONTENT), "body")
    kind = next((inner for inner in body if isinstance(inner.tag, str)), None) if body is not None else None
    if kind is None:
        raise UnreadableFileError("the document has no body")
    found = Found()
    found.read_changes(kind)
    title = _title(package)
    if local(kind) == "spreadsheet":
        grid = read_sheets(kind, found)
        text = grid.build(title=title, meta=found.meta())
    else:
        builder = TextBuilder()
        if local(kind) in {"presentation", "drawing"}:
            _slides(builder, kind, found)
        else:
            builder.page(None, locus="body")
            for block in blocks(kind, found):
                builder.add(block)
        for locus, names in (("header", _HEADERS), ("footer", _FOOTERS)):
            builder.page(None, locus=locus)
            for block in _furniture(package, names):
                builder.add(block)
        builder.page(None, locus="notes")
        for number, note in found.notes:
            builder.add(f"[{number}] {note}")
        text = builder.build(title=title, meta=found.meta())
    return Conversion(text, tuple(package.embedded()))


def _slides(builder: TextBuilder, kind: etree._Element, found: Found) -> None:
    slides = (page for page in kind if local(page) == "page")
    for number, page in enumerate(slides, start=1):
        builder.page(number)
        notes: list[str] = []
        for block in blocks(page, found):
            builder.add(block)
        for inner in page:
            if local(inner) == "notes":
                notes.extend(blocks(inner, found))
        if any(note.strip() for note in notes):
            builder.page(number, locus="notes")
            for note in notes:
                builder.add(note)


def _furniture(package: Package, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of headers or footers of all master pages, each different one once."""
    if not package.has(_STYLES):
        return
    seen: set[str] = set()
    for element in package.xml(_STYLES).iter(*(f"{{*}}{name}" for name in names)):
        text = "\n".join(line for block in blocks(element, Found()) if (line := tidy(block)))
        if text and text not in seen:
            seen.add(text)
            yield text


def _title(package: Package) -> str | None:
    if not package.has(_META):
        return None
    try:
        title = next(package.xml(_META).iter("{*}title"), None)
    except UnreadableFileError:
        return None
    return inner_text(title) if title is not None else None
