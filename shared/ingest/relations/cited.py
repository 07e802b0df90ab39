"""Which other papers a text names, and as what: by their day and sort, and by identifiers.

A text says what it is itself at its beginning ("Anlage K 1 zum Schriftsatz vom ..."); further down the same words only
refer to the other paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from shared.ingest.metadata.dates import WrittenDate, written_dates
from shared.ingest.relations.said import PROJECT_SORTS, Intent, dated, key_of, quote
from shared.types import RelationKind

# What a paper of a day is called, by the sort under which it is looked for.
SORTS: Mapping[str, str] = {
    "contract": r"vertrag\w*|vereinbarung(?:en)?|agreement|contract|lease|deed",
    "pleading": r"schriftsatz(?:es)?|klage(?:schrift)?|klageerwiderung|replik|duplik|berufungsbegründung|submission"
    r"|statement of (?:claim|defen[cs]e)|request for arbitration",
    "letter": r"schreibens?|briefe?s?|e-?mail|mail|nachricht|letter",
    "decision": r"urteils?|beschluss(?:es)?|verfügung|judgment|order|decision",
}
_SORTED = tuple(
    (
        sort,
        re.compile(
            rf"(?<![^\W\d_])(?P<called>(?:[^\W\d_]+(?:[-\u2010-\u2015][^\W\d_]+)?)?(?:{words}))\b", re.IGNORECASE
        ),
    )
    for sort, words in SORTS.items()
)
# Between what it is called and its day: the parties, a number, but no other sentence and no other day.
_DAY_WORD = re.compile(
    r"(?:\bvom|\bdated(?: as of)?|\bof|\bdatiert auf den|\bv\.)\s*(?:the\s+|den\s+)?$", re.IGNORECASE
)
_ANNEX = re.compile(
    r"\b(?:anlage|anhang|annex|schedule|exhibit|appendix|attachment)\s+[A-Z]{0,3}\s?\d{0,3}[a-z]?\s*"
    r"(?:zu[mr]?|to(?:\s+the)?)\b[^.;]{0,60}$",
    re.IGNORECASE,
)
_AMENDMENT = re.compile(
    r"\b(?:nachtrag\w*|änderungsvereinbarung|änderungsvertrag|ergänzungsvereinbarung|amendment(?:\s+agreement)?"
    r"|addendum)\b[^.;]{0,20}(?:(?:Nr|No)\.\s?\d+)?[^.;]{0,20}(?:\bzu[mr]?|\bto(?:\s+the)?)\b[^.;]{0,60}$",
    re.IGNORECASE,
)
# The active voice only: "superseded by" and "wird ersetzt durch" say the opposite.
_SUPERSEDES = re.compile(
    r"(?:\bersetz(?:t|en)\s+(?:den|die|das|alle|sämtliche|insoweit|hiermit|vollständig)\b"
    r"|\btritt an die stelle de[sr]\b|\b(?:supersedes?|replaces?)(?:\s+and\s+(?:supersedes?|replaces?))?\s+"
    r"(?:the|that|any|all|in its entirety)\b)[^.;]{0,100}$",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:nicht|kein\w*|not|no|never|unless|falls|sofern|wenn|if|ob|whether|would|würde|soll(?:te)?)\b", re.IGNORECASE
)
# Behind the day: "nicht" takes it back, and the passive voice with "this" as its agent says it.
_NOT_AFTER = re.compile(r"^[^.;:\n]{0,60}\bnicht\b", re.IGNORECASE)
_SUPERSEDED_BY_THIS = re.compile(
    r"^[^.;:\n]{0,60}\b(?:(?:wird|werden)\b[^.;:\n]{0,40}\bdurch\s+(?:diese[nrms]?|de[nr]\s+vorliegende[nr]?)\b"
    r"[^.;:\n]{0,60}\bersetzt\b|(?:is|are|shall be)\s+(?:hereby\s+)?(?:superseded|replaced)\b[^.;:\n]{0,40}"
    r"\bby\s+this\b)",
    re.IGNORECASE,
)
_YOURS = re.compile(r"\b(?:ihre?[sm]?|ihren|your)\s+(?:[^\W\d_]+\s+){0,2}$", re.IGNORECASE)
_ANSWERS = re.compile(
    r"(?:\bauf\s+(?:die|den|das)|\b(?:in response|in reply|reply|response|answer)\s+to\s+(?:the|your))"
    r"\s+(?:[^\W\d_]+\s+){0,2}$",
    re.IGNORECASE,
)
_BEFORE_CHARS = 220
_AFTER_CHARS = 160
OWN_WORDS_CHARS = 600
_MAX_DATES = 3000
_MAX_INTENTS = 500
_NUMBERS = frozenset({"ecli", "file_number", "eu_case", "invoice", "deed", "case", "contract", "reference"})
_CONFIDENCE = {
    RelationKind.ANNEX_OF: 0.9,
    RelationKind.AMENDS: 0.9,
    RelationKind.SUPERSEDES: 0.85,
    RelationKind.RESPONDS_TO: 0.8,
    RelationKind.REFERENCES: 0.6,
}


def dated_papers(text: str) -> Iterator[Intent]:
    """Yield what the text says about papers of a day, one intent a kind and key, the first mention first."""
    seen: set[tuple[RelationKind, str]] = set()
    previous_end = 0
    for number, found in enumerate(written_dates(text)):
        if number >= _MAX_DATES or len(seen) >= _MAX_INTENTS:
            return
        # What stands before an earlier date belongs to that one.
        start = max(0, previous_end, found.start - _BEFORE_CHARS)
        previous_end = found.end
        intent = _said_before(text, start, found)
        if intent is not None and (intent.kind, intent.key) not in seen:
            seen.add((intent.kind, intent.key))
            yield intent


def numbered_papers(
    text: str, identifiers: Sequence[Mapping[str, str]], *, own_words_chars: int = 0
) -> Iterator[Intent]:
    """Yield a reference for each identifier in the text.

    A file number that first stands within `own_words_chars` is that of the proceedings in which the paper is written.
    """
    for item in identifiers[:_MAX_INTENTS]:
        kind = item["kind"]
        if kind not in _NUMBERS:
            continue
        key = key_of(kind, item["canonical"])
        start = text.find(item["raw"])
        if start < 0 or (kind == "file_number" and start < own_words_chars):
            continue
        evidence = quote("identifier", text, start, start + len(item["raw"]))
        yield Intent(RelationKind.REFERENCES, key, 0.9 if kind in PROJECT_SORTS else 0.7, evidence)


def _said_before(text: str, start: int, found: WrittenDate) -> Intent | None:
    if found.precision != "day":
        return None
    before = re.sub(r"\s", " ", text[start : found.start])
    sentence = before[_sentence_start(before) :]
    day_word = _DAY_WORD.search(sentence)
    if day_word is None:
        return None
    head = sentence[: day_word.start()]
    # What is nearest to the day is what was written on it.
    called = [(match, sort) for sort, pattern in _SORTED for match in pattern.finditer(head)]
    if not called:
        return None
    match, sort = max(called, key=lambda one: one[0].end())
    lead = head[: match.start("called")]
    tail = re.sub(r"\s", " ", text[found.end : found.end + _AFTER_CHARS])
    kind = _kind(sort, lead, tail, is_own=found.start < OWN_WORDS_CHARS)
    quoted = quote("text", text, found.start - len(sentence), found.end)
    return Intent(kind, dated(sort, found.day), _CONFIDENCE[kind], quoted)


def _kind(sort: str, lead: str, tail: str, *, is_own: bool) -> RelationKind:
    if is_own and _ANNEX.search(lead):
        return RelationKind.ANNEX_OF
    if is_own and sort == "contract" and _AMENDMENT.search(lead):
        return RelationKind.AMENDS
    if sort == "contract" and (_SUPERSEDES.search(lead) or _SUPERSEDED_BY_THIS.search(tail)):
        is_denied = _NEGATED.search(lead) or _NOT_AFTER.search(tail)
        return RelationKind.REFERENCES if is_denied else RelationKind.SUPERSEDES
    if sort == "letter" and _YOURS.search(lead):
        return RelationKind.RESPONDS_TO
    if sort == "pleading" and _ANSWERS.search(lead):
        return RelationKind.RESPONDS_TO
    return RelationKind.REFERENCES


def _sentence_start(before: str) -> int:
    """Return where the last sentence begins; "Nr. 1" and "z. B." end none."""
    ends = [match.end() for match in re.finditer(r"(?<=[^\W\d_]{4})[.!?;:]\s+(?=[^\W_])", before)]
    return ends[-1] if ends else 0
