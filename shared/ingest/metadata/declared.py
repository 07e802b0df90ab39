"""What a file has fields of its own for (an invoice, a court's message), before anything that is read from its text.

A converter that knows such fields puts them into the text's `meta`: `identifiers` ([{"kind", "raw", "canonical"}]) and
`doc_type`. They are whole there: in a text, "RE 2024/0815-A" is a word and a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shared.ingest.identifiers import Identifier, extract
from shared.ontology.tree import Ontology
from shared.text.converted import ConvertedText
from shared.text.normalise import stored

_MOST = 500
# A number as short as "12" is in every text.
_MIN_CHARS = 3


def all_identifiers(text: ConvertedText) -> list[Identifier]:
    """Return the numbers in the file's fields, then those in its text; what is a piece of the former is none."""
    own = [*_fields(text.meta)]
    covered = _covered(text.text, own)
    return [*own, *(one for one in extract(text.text) if not all(covered[one.start : one.end]))]


def declared_doc_type(text: ConvertedText, ontology: Ontology) -> str | None:
    """Return the type that the file's own fields tell, if the tree of types has it."""
    declared = text.meta.get("doc_type")
    return declared if isinstance(declared, str) and ontology.has_doc_type(declared) else None


def _fields(meta: Mapping[str, Any]) -> Iterator[Identifier]:
    for field in list(meta.get("identifiers") or ())[:_MOST]:
        raw, canonical = stored(field["raw"]), stored(field["canonical"])
        if len(canonical) < _MIN_CHARS:
            continue
        # In its usual form, and with its parts, if it is an identifier by itself as well.
        known = next((one for one in extract(canonical) if (one.start, one.end) == (0, len(canonical))), None)
        yield replace(known, raw=raw) if known else Identifier(field["kind"], raw, canonical, 0, len(canonical))


def _covered(text: str, own: Sequence[Identifier]) -> bytearray:
    """Return a mark for each letter of the text at which a number out of the fields is written."""
    covered = bytearray(len(text))
    for written in {one.raw for one in own}:
        at = text.find(written)
        while at >= 0:
            covered[at : at + len(written)] = b"\x01" * len(written)
            at = text.find(written, at + len(written))
    return covered
