"""How well citations of statutes and cases are found, beside a published extractor on the same decisions.

Data: ten decisions with gold spans. A statute's span is one cited section with its law where that stands behind it; a
case's is the court, the day and the number as they are cited, or one printed place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from shared.ingest.identifiers import Identifier, extract

FOLDER = "citations-de"
_STATUTES = frozenset({"statute", "eu_act"})
_CASES = frozenset({"decision", "file_number", "eu_case", "ecli", "reporter"})


class Kind(StrEnum):
    """What is cited."""

    LAW = "law"
    CASE = "case"


Spans = Mapping[Kind, frozenset[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision's text and its gold spans."""

    id: str
    text: str
    gold: Spans


@dataclass(frozen=True, slots=True)
class Figures:
    """Micro-averaged: of the spans found, and of the gold spans, the part that the other side has.

    Overlapping: at least one character in common. Exact: both ends the same. A span found twice counts once.
    """

    kind: str
    found: int
    gold: int
    overlap_precision: float
    overlap_recall: float
    exact_precision: float
    exact_recall: float


def read_judged(folder: Path) -> list[Judged]:
    """Return the decisions of `folder` with their gold spans."""
    gold = {line["doc_id"]: line["citations"] for line in _lines(folder / "annotations.jsonl")}
    return [
        Judged(
            line["doc_id"],
            line["text"],
            _by_kind((Kind(one["type"]), one["span"]["start"], one["span"]["end"]) for one in gold[line["doc_id"]]),
        )
        for line in _lines(folder / "documents.jsonl")
    ]


def ours(text: str) -> Spans:
    """Return what this project finds: one span a cited section, one a decision or printed place."""
    return _by_kind(span for identifier in extract(text) for span in _spans(identifier))


def published(text: str) -> Spans:
    """Return what the package legal-reference-extraction finds."""
    # Imported when asked for: a yardstick, not a part of the product.
    from refex.orchestrator import CitationExtractor  # type: ignore[import-untyped] # noqa: PLC0415 - it has no types

    found = CitationExtractor().extract(text, fmt="plain").citations
    return _by_kind((Kind(one.type), one.span.start, one.span.end) for one in found)


EXTRACTORS: Mapping[str, Callable[[str], Spans]] = {"ours": ours, "legal-reference-extraction": published}


def score(extractor: Callable[[str], Spans], judged: Sequence[Judged]) -> list[Figures]:
    """Return an extractor's figures: for statutes, for cases, and for all citations together."""
    found = [(extractor(one.text), one.gold) for one in judged]
    pairs = {kind: [(spans[kind], gold[kind]) for spans, gold in found] for kind in Kind}
    every = [pair for of_kind in pairs.values() for pair in of_kind]
    return [*(_figures(kind, of_kind) for kind, of_kind in pairs.items()), _figures("all", every)]


def compare(folder: Path) -> list[tuple[str, Figures]]:
    """Return the figures of every extractor on the decisions of `folder`."""
    judged = read_judged(folder)
    return [(name, figures) for name, extractor in EXTRACTORS.items() for figures in score(extractor, judged)]


def _figures(kind: str, pairs: Sequence[tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]]) -> Figures:
    found, gold = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    exact = sum(len(spans & right) for spans, right in pairs)
    met = sum(_meeting(spans, right) for spans, right in pairs)
    reached = sum(_meeting(right, spans) for spans, right in pairs)
    return Figures(
        kind, found, gold, met / max(found, 1), reached / max(gold, 1), exact / max(found, 1), exact / max(gold, 1)
    )


def _meeting(spans: frozenset[tuple[int, int]], others: frozenset[tuple[int, int]]) -> int:
    return sum(any(start < end_b and start_b < end for start_b, end_b in others) for start, end in spans)


def _spans(identifier: Identifier) -> Iterator[tuple[Kind, int, int]]:
    if identifier.kind in _CASES:
        yield Kind.CASE, identifier.start, identifier.end
    elif identifier.kind in _STATUTES:
        # A list of sections is judged section by section. Of "Art. 6 der Richtlinie 77/388/EWG" the act is judged.
        inner = [part for part in identifier.parts if part.kind == "eu_act"]
        inner = inner or [part for part in identifier.parts if part.kind == "statute"] or [identifier]
        yield from ((Kind.LAW, part.start, part.end) for part in inner)


def _by_kind(spans: Iterator[tuple[Kind, int, int]]) -> Spans:
    known = list(spans)
    return {kind: frozenset((start, end) for one, start, end in known if one is kind) for kind in Kind}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
