"""What changed between two drafts, as decisions: which clause, which numbers, days and names, and by whom.

The author is taken from tracked changes of the later draft that hold the very words; a guess is not made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from shared.ingest.decisions.align import Pair, Paragraph, differences, paragraphs
from shared.ingest.decisions.record import Decision, short
from shared.ingest.metadata.dates import written_dates
from shared.text.converted import ConvertedText
from shared.text.normalise import single_line
from shared.types import DecisionKind

MAX_RECORDS = 200
_TOKEN = re.compile(r"\S+")
_AMOUNT = re.compile(
    r"(?:(?:EUR|USD|CHF|GBP|€|\$|£)\s?\d[\d.,]*(?:\s?(?:Mio\.?|Mrd\.?|million|thousand|T))?"
    r"|\d[\d.,]*\s?(?:(?:Mio\.?|Mrd\.?|million|Tsd\.?)\s?)?(?:EUR|Euro|USD|CHF|GBP|€|\$|£)(?!\w))"
)
_PERCENT = re.compile(r"\d[\d.,]*\s?(?:%|Prozent(?:punkte)?|percent|per cent)(?!\w)", re.IGNORECASE)
_PERIOD = re.compile(
    r"\d{1,4}\s?(?:\([^()\n]{1,20}\)\s?)?(?:Tag(?:e|en)?|Woche[n]?|Monat(?:e|en)?|Jahr(?:e|en)?|Werktag(?:e|en)?"
    r"|days?|weeks?|months?|years?|business days?)(?!\w)",
    re.IGNORECASE,
)
_PARTY = re.compile(
    r"(?:(?!(?:Die|Der|Das|The)\s)[A-ZÄÖÜ][\w&.-]*\s){1,5}"
    r"(?:GmbH(?: & Co\. KG)?|AG|SE|KG|OHG|UG|e\.\s?V\.|Ltd\.?|Limited|LLP|LLC|Inc\.?|B\.V\.|plc)(?!\w)"
)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,]*(?!\w)")
_KINDS = (("amount", _AMOUNT), ("percentage", _PERCENT), ("period", _PERIOD), ("party", _PARTY))
_MAX_TOKENS = 150
_MAX_DETAILS = 10
_MAX_QUOTED_CHARS = 110


@dataclass(frozen=True, slots=True)
class Tracked:
    """Tracked changes of a draft by their words: who made them and when."""

    inserted: Mapping[str, tuple[str | None, str | None]]
    deleted: Mapping[str, tuple[str | None, str | None]]


def changes(old: ConvertedText, new: ConvertedText) -> tuple[list[Decision], int]:
    """Return what changed from one draft to the next in the order of the text, and how many records were left out."""
    tracked = Tracked(_tracked(new, "insertions"), _tracked(new, "deletions"))
    found = differences(paragraphs(old.text), paragraphs(new.text))
    return [_decision(pair, tracked) for pair in found[:MAX_RECORDS]], max(0, len(found) - MAX_RECORDS)


def _decision(pair: Pair, tracked: Tracked) -> Decision:
    one = pair.new or pair.old
    assert one is not None
    author, when = _author(pair, tracked)
    if pair.old is not None and pair.new is not None:
        kind, summary, details = DecisionKind.CHANGED, _change_summary(pair.old, pair.new), _details(pair)
    elif pair.new is not None:
        kind, summary, details = DecisionKind.ADDED, pair.new.plain, []
    else:
        kind, summary, details = DecisionKind.REMOVED, one.plain, []
    evidence: dict[str, Any] = {"source": "comparison"}
    if details:
        evidence["values"] = details
    if author is not None:
        evidence["author"] = "tracked_changes"
    return Decision(
        kind=kind,
        summary=short(summary),
        locus=short(one.heading, chars=_MAX_QUOTED_CHARS) if one.heading else one.number,
        from_span=(pair.old.start, pair.old.end) if pair.old else None,
        to_span=(pair.new.start, pair.new.end) if pair.new else None,
        author=author,
        decided_at=when,
        evidence=evidence,
        confidence=0.95 if author is not None else 0.9 if kind is not DecisionKind.CHANGED or details else 0.8,
    )


def _change_summary(old: Paragraph, new: Paragraph) -> str:
    """Return the words that went and those that came: „50.000 EUR“ → „75.000 EUR“."""
    before, after = _without_common_ends(_TOKEN.findall(old.plain), _TOKEN.findall(new.plain))
    parts: list[str] = []
    matcher = SequenceMatcher(None, before[:_MAX_TOKENS], after[:_MAX_TOKENS], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            gone, came = " ".join(before[a:b]), " ".join(after[c:d])
            parts.append(f"„{short(gone, chars=_MAX_QUOTED_CHARS)}“ → „{short(came, chars=_MAX_QUOTED_CHARS)}“")
    return "; ".join(parts) or new.plain


def _without_common_ends(one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    """Return what is left of both when what they begin and end with alike is taken off."""
    most = min(len(one), len(other))
    start = next((at for at in range(most) if one[at] != other[at]), most)
    most -= start
    end = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    return one[start : len(one) - end], other[start : len(other) - end]


def _details(pair: Pair) -> list[dict[str, str | None]]:
    """Return the amounts, days, periods and parties that are others than before, by kind."""
    assert pair.old is not None
    assert pair.new is not None
    before, after = _values(pair.old.plain), _values(pair.new.plain)
    found: list[dict[str, str | None]] = []
    for kind in ("amount", "percentage", "date", "period", "party", "number"):
        gone = list((before.get(kind, Counter()) - after.get(kind, Counter())).elements())
        came = list((after.get(kind, Counter()) - before.get(kind, Counter())).elements())
        found += [{"what": kind, "from": one, "to": other} for one, other in zip_longest(gone, came)]
    return found[:_MAX_DETAILS]


def _values(text: str) -> dict[str, Counter[str]]:
    """Return what a paragraph names, by kind; a number within an amount or a day is not one of its own."""
    found: dict[str, Counter[str]] = {}
    taken: list[tuple[int, int]] = []
    for date in written_dates(text):
        found.setdefault("date", Counter())[single_line(date.raw)] += 1
        taken.append((date.start, date.end))
    for kind, pattern in (*_KINDS, ("number", _NUMBER)):
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            taken.append(match.span())
            found.setdefault(kind, Counter())[single_line(match.group(0)).rstrip(".,")] += 1
    return found


def _author(pair: Pair, tracked: Tracked) -> tuple[str | None, datetime | None]:
    """Return who made the change, if one person's tracked changes hold its words."""
    before, after = (paragraph.plain if paragraph else "" for paragraph in (pair.old, pair.new))
    # Words that stand on both sides are not what was changed here.
    hits = {entry for words, entry in tracked.inserted.items() if words in after and words not in before}
    hits |= {entry for words, entry in tracked.deleted.items() if words in before and words not in after}
    names = {name for name, _ in hits if name}
    if len(names) != 1:
        return None, None
    days = sorted(when for name, when in hits if name and when)
    return names.pop(), _moment(days[-1]) if days else None


def _tracked(text: ConvertedText, key: str) -> dict[str, tuple[str | None, str | None]]:
    listed = text.meta.get(key)
    entries: Sequence[Any] = listed if isinstance(listed, list) else []
    return dict(_entries(entries))


def _entries(listed: Sequence[Any]) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    for change in listed:
        if isinstance(change, dict) and isinstance(change.get("text"), str):
            words = single_line(change["text"])
            if any(character.isalnum() for character in words):
                yield words, (change.get("author"), change.get("date"))


def _moment(written: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
