"""A decision as a value, and the bounds of what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.text.normalise import single_line
from shared.types import DecisionKind

MAX_SUMMARY_CHARS = 300

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision; spans count characters in the text of the earlier and of the later version.

    `evidence` quotes nothing but these two texts.
    """

    kind: DecisionKind
    summary: str
    locus: str | None
    from_span: Span | None
    to_span: Span | None
    author: str | None
    decided_at: datetime | None
    evidence: Mapping[str, Any]
    confidence: float


def short(text: str, *, chars: int = MAX_SUMMARY_CHARS) -> str:
    """Return a text on one line, cut at a word."""
    line = single_line(text)
    if len(line) <= chars:
        return line
    kept, space, _ = line[:chars].rpartition(" ")
    return (kept if space else line[: chars - 1]).rstrip(" ,;:") + "…"
