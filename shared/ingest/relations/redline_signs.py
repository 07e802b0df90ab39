"""Whether a version shows changes instead of a state, and which of two texts it was made of.

By its own signs (tracked changes, or a name that says so) a version is a candidate; which version it is a redline of
is for its words to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.text.converted import ConvertedText
from shared.text.normalise import single_line

_NAME = re.compile(
    r"(?:^|[\s_.\-()\[\]])(?:red-?lin(?:e|ed|ing)|black-?line|mark-?up|vergleich(?:sfassung|sversion|sdokument)?"
    r"|compare[d]?|comparison|(?:ä|ae)nderungen|(?:ä|ae)nderungsmodus|(?:ä|ae)nderungsfassung|korrekturfassung|delta)"
    r"(?=[\s_.\-()\[\]]|\d|$)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")
# Of the words of both texts, how many they must share: a tracked change leaves both states whole, a comparison holds
# the words that were taken out as well.
_TRACKED_LIKENESS = 0.97
_NAMED_LIKENESS = 0.8
_MIN_WORDS = 20


@dataclass(frozen=True, slots=True)
class Signs:
    """What marks a version as a redline: `evidence` quotes neither the name nor the text."""

    is_tracked: bool
    confidence: float
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How like a redline one of its two states is to a text; the later state counts more when both are alike."""

    score: float
    is_accepted: bool

    @property
    def rank(self) -> tuple[float, bool]:
        """What decides between several texts."""
        return round(self.score, 3), self.is_accepted


def signs_of(text: ConvertedText, name: str) -> Signs | None:
    """Return the signs of a redline, None when there are none."""
    inserted, deleted = _changes(text, "insertions"), _changes(text, "deletions")
    if inserted or deleted:
        return Signs(
            is_tracked=True,
            confidence=0.95,
            evidence={"source": "tracked_changes", "insertions": len(inserted), "deletions": len(deleted)},
        )
    if _NAME.search(single_line(name).rpartition(".")[0]):
        return Signs(is_tracked=False, confidence=0.7, evidence={"source": "file_name"})
    return None


def likeness(redline: ConvertedText, other: str) -> Likeness | None:
    """Return how like the text is to what the redline was made of or to what came of it; None when it is not."""
    accepted, theirs = _words(redline.text), _words(other)
    if min(accepted.total(), theirs.total()) < _MIN_WORDS:
        return None
    found = [Likeness(_dice(accepted, theirs), is_accepted=True)]
    tracked = [_changes(redline, "insertions"), _changes(redline, "deletions")]
    if any(tracked):
        rejected = accepted - _words(" ".join(tracked[0]))
        rejected.update(_words(" ".join(tracked[1])))
        found.append(Likeness(_dice(rejected, theirs), is_accepted=False))
    best = max(found, key=lambda one: one.rank)
    return best if best.score >= (_TRACKED_LIKENESS if any(tracked) else _NAMED_LIKENESS) else None


def _changes(text: ConvertedText, key: str) -> list[str]:
    """Return the texts of tracked insertions or deletions."""
    listed = text.meta.get(key)
    if not isinstance(listed, list):
        return []
    return [change["text"] for change in listed if isinstance(change, dict) and isinstance(change.get("text"), str)]


def _words(text: str) -> Counter[str]:
    return Counter(_WORDS.findall(text.casefold()))


def _dice(one: Counter[str], other: Counter[str]) -> float:
    """Return twice the shared words by all words of both (Dice 1945), with multiplicity."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())
