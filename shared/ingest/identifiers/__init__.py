"""Identifiers in a text: file numbers, statute references, register and other numbers, each with its span.

`raw` is as written, `canonical` the one form of all spellings: "1 C 4.16" and "1 C 4/16" (with whatever spaces) are
"1 C 4/16".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from shared.ingest.identifiers.acts import acts
from shared.ingest.identifiers.decisions import with_courts
from shared.ingest.identifiers.file_numbers import eclis, file_numbers
from shared.ingest.identifiers.found import Identifier
from shared.ingest.identifiers.numbers import deeds, ibans, labelled, patents, registers, tax_numbers
from shared.ingest.identifiers.reporters import printed
from shared.ingest.identifiers.statutes import statutes

__all__ = ["Identifier", "extract", "within"]


def extract(text: str) -> list[Identifier]:
    """Return every identifier of a stored text, in order; of overlapping ones the first kind of the list wins."""
    found: list[Identifier] = []
    taken = bytearray(len(text))
    for kind in _KINDS:
        for identifier in kind(text):
            start, end = identifier.start, identifier.end
            if any(taken[start:end]):
                continue
            taken[start:end] = b"\x01" * (end - start)
            found.append(identifier)
    return sorted(found, key=lambda identifier: identifier.start)


def within(found: Iterable[Identifier], *, max_chars: int) -> tuple[list[Identifier], int]:
    """Return one identifier a canonical form, first mention first, and how many were too long (in UTF-8 bytes).

    The parts of an identifier are identifiers of their own: who looks for "§ 281 BGB" means "§§ 280, 281 BGB" as well.
    A section is then written as the list that it stands in: of "§§ 1, 3, 5 BGB" a mere "3" would be in every text.
    """
    kept: dict[tuple[str, str], Identifier] = {}
    dropped = 0
    for whole in found:
        for identifier in whole.each():
            if _is_too_long(identifier.canonical, max_chars) or _is_too_long(identifier.raw, max_chars):
                dropped += 1
                continue
            is_in_list = identifier is not whole and identifier.kind in _SECTIONS
            listed = identifier.canonical if _is_too_long(whole.raw, max_chars) else whole.raw
            one = replace(identifier, raw=listed) if is_in_list else identifier
            kept.setdefault((one.kind, one.canonical), one)
    return list(kept.values()), dropped


def _is_too_long(text: str, max_chars: int) -> bool:
    return len(text.encode()) > max_chars


def _decisions(text: str) -> Iterator[Identifier]:
    numbers: list[Identifier] = []
    end = 0
    for one in sorted((*file_numbers(text), *printed(text)), key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            numbers.append(one)
            end = one.end
    return with_courts(text, numbers)


_SECTIONS = frozenset({"statute", "section"})
_KINDS: Sequence[Callable[[str], Iterator[Identifier]]] = (
    eclis,
    ibans,
    patents,
    statutes,
    acts,
    _decisions,
    registers,
    tax_numbers,
    deeds,
    labelled,
)
