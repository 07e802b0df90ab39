"""What a reader of one kind of XML hands back, and how it finds elements whatever their namespace is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from shared.ingest.convert.docx_inline import local
from shared.ingest.convert.formats import Member


@dataclass(slots=True)
class Reading:
    """The named parts of a text, and the elements that are told in them already."""

    title: str | None = None
    parts: Sequence[tuple[str, Sequence[str]]] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    used: set[etree._Element] = field(default_factory=set)
    members: tuple[Member, ...] = ()


class Finder:
    """Finds elements by local names, and remembers those whose text was taken."""

    def __init__(self) -> None:
        self.used: set[etree._Element] = set()

    def all(self, element: etree._Element, path: str) -> Iterator[etree._Element]:
        """Yield what lies along a path of local names ("A/B")."""
        first, _, rest = path.partition("/")
        for inner in element:
            if local(inner) == first:
                if rest:
                    yield from self.all(inner, rest)
                else:
                    yield inner

    def texts(self, element: etree._Element, *paths: str) -> list[str]:
        """Return the texts along the paths, each once, and note that they were taken."""
        found: dict[str, None] = {}
        for path in paths:
            for inner in self.all(element, path):
                self.used.add(inner)
                if text := " ".join((inner.text or "").split()):
                    found[text] = None
        return list(found)

    def text(self, element: etree._Element, *paths: str) -> str | None:
        """Return the first text along the paths."""
        return next(iter(self.texts(element, *paths)), None)
