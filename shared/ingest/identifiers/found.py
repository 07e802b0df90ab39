"""What is found in a text, and how the gaps between its pieces are matched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# One way to match each gap: two ways would double the work with every gap of a long reference.
GAP: Final = r"[^\S\n]{0,3}(?:\n[^\S\n]{0,3})?"
SPACE: Final = rf"(?=\s){GAP}"
DASH: Final = "[-\u2010-\u2015\u2212]"


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier at `text[start:end]`: `raw` as written, `canonical` the one form of all spellings.

    `parts` are those that it names one by one: the sections of "§§ 280, 281 BGB", the file number after a court.
    """

    kind: str
    raw: str
    canonical: str
    start: int
    end: int
    parts: tuple[Identifier, ...] = ()

    def each(self) -> Iterator[Identifier]:
        """Yield the identifier and its parts, down to the smallest."""
        yield self
        for part in self.parts:
            yield from part.each()
