"""PowerPoint presentations: a slide a page, its title first, then what stands on it; notes of the speaker apart.

Slides are found through relationships, so that a package with dangling or strict ones opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.docx_inline import child, chosen, local
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.ooxml import Package, relation_id
from shared.ingest.convert.ooxml_drawing import paragraphs

_MAX_COMMENTS = 2000
_TITLES = frozenset({"title", "ctrTitle"})
# Placeholders that repeat themselves on every slide.
_FURNITURE = frozenset({"sldNum", "dt", "hdr", "ftr", "sldImg"})


def convert(content: bytes) -> Conversion:
    """Return the text of a presentation; macros are not read, that there are some is kept."""
    package = Package(content)
    main = package.main_part()
    slides = list(_slides(package, main))
    builder = TextBuilder()
    heading: str | None = None
    hidden: list[int] = []
    comments: list[dict[str, Any]] = []
    authors = dict(_authors(package, main))
    for number, part in enumerate(slides, start=1):
        root = package.xml(part)
        if root.get("show") in {"0", "false"}:
            hidden.append(number)
        builder.page(number)
        title, blocks = _read(package, part, root)
        heading = heading or title
        for block in [*([title] if title else []), *blocks]:
            builder.add(block)
        notes = list(_notes(package, part))
        if notes:
            builder.page(number, locus="notes")
            for block in notes:
                builder.add(block)
        comments.extend({"slide": number, **comment} for comment in _comments(package, part, authors))
    relationships = package.relationships(main).values()
    meta = {
        "heading": heading,
        "hidden_slides": hidden,
        "comments": comments[:_MAX_COMMENTS],
        "has_macros": any(r.kind == "vbaProject" for r in relationships),
    }
    kept = {key: value for key, value in meta.items() if value}
    return Conversion(builder.build(title=package.title(), meta=kept), tuple(package.embedded()))


def _slides(package: Package, main: str) -> Iterator[str]:
    """Yield the part of each slide in the order in which they are shown."""
    listed = child(package.xml(main), "sldIdLst")
    if listed is None:
        # A presentation may be empty; a package that is none has no such part at all.
        return
    relationships = package.relationships(main)
    for slide in listed:
        relationship = relationships.get(relation_id(slide) or "")
        if relationship is not None and relationship.kind == "slide":
            yield relationship.target


def _read(package: Package, part: str, root: etree._Element) -> tuple[str | None, list[str]]:
    """Return the title of a slide and its other blocks."""
    title: str | None = None
    blocks: list[str] = []
    for shape in _shapes(root):
        kind = _placeholder(shape)
        if kind in _FURNITURE:
            continue
        lines = [line for line in paragraphs(shape) if line.strip()]
        if kind in _TITLES and title is None and lines:
            title = " ".join(" ".join(lines).split())
        else:
            blocks.extend(lines)
    for relationship in package.relationships(part).values():
        if relationship.kind == "diagramData":
            blocks.extend(paragraphs(package.xml(relationship.target)))
    return title, blocks


def _shapes(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the shapes of a slide in their order, those of a group one by one, alternatives once."""
    for inner in element:
        name = local(inner)
        if name in {"sp", "graphicFrame", "pic", "cxnSp"}:
            yield inner
        elif name == "AlternateContent":
            for option in chosen(inner):
                yield from [option] if local(option) in {"sp", "graphicFrame", "pic"} else _shapes(option)
        else:
            yield from _shapes(inner)


def _placeholder(shape: etree._Element) -> str | None:
    """Return the kind of a placeholder, None for a shape that is none."""
    for properties in shape:
        if local(properties).startswith("nv"):
            place = child(properties, "nvPr", "ph")
            return None if place is None else place.get("type") or "obj"
    return None


def _notes(package: Package, part: str) -> Iterator[str]:
    for relationship in package.relationships(part).values():
        if relationship.kind == "notesSlide":
            for shape in _shapes(package.xml(relationship.target)):
                if _placeholder(shape) not in _FURNITURE:
                    yield from paragraphs(shape)


def _authors(package: Package, main: str) -> Iterator[tuple[str, str]]:
    for relationship in package.relationships(main).values():
        if relationship.kind in {"commentAuthors", "authors"}:
            for author in package.xml(relationship.target).iter("{*}cmAuthor", "{*}author"):
                yield author.get("id") or "", author.get("name") or ""


def _comments(package: Package, part: str, authors: dict[str, str]) -> Iterator[dict[str, Any]]:
    for relationship in package.relationships(part).values():
        if relationship.kind != "comments":
            continue
        for comment in package.xml(relationship.target).iter("{*}cm"):
            text = child(comment, "text")
            # Since 2021 a comment is a text body, before it was a text.
            said = (text.text or "") if text is not None else "\n".join(paragraphs(comment))
            date = comment.get("dt") or comment.get("created")
            yield {"author": authors.get(comment.get("authorId") or "") or None, "date": date, "text": said}
