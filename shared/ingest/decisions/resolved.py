"""What a text says was settled: "Die Parteien haben sich darauf geeinigt", "Beschluss:", "it is resolved that".

A sentence that denies, asks or makes a condition of it settles nothing, and neither does what a mail quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from shared.ingest.decisions.record import Decision, short
from shared.text.converted import ConvertedText
from shared.types import DecisionKind

MAX_RESOLVED = 50
_SAID = re.compile(
    r"(?:\b(?:die\s+)?(?:vertrags)?parteien\s+(?:haben\s+sich|sind\s+sich)\s+(?:[^\W\d_]+\s+){0,3}?(?:ge)?einig(?:t)?\b"
    r"|\b(?:die\s+)?(?:vertrags)?parteien\s+haben\s+sich\s+[^.;\n]{0,80}\bgeeinigt\b"
    r"|\b(?:wir|die\s+gesellschafter|der\s+(?:vorstand|aufsichtsrat|beirat|gemeinderat)|die\s+geschäftsführung)\s+"
    r"(?:haben|hat)\s+[^.;\n]{0,60}?\b(?:entschieden|beschlossen)\b"
    r"|\bes\s+(?:wird|wurde)\s+(?:einstimmig\s+|mehrheitlich\s+)?(?:beschlossen|vereinbart|entschieden)\b"
    r"|^[^\S\n]*(?:beschluss|beschlossen|vereinbart|ergebnis|entscheidung|agreed|resolved|decision)\s*:\s*\S"
    r"|\b(?:it\s+(?:is|was)\s+(?:hereby\s+)?(?:resolved|agreed|decided)\s+(?:that|to)|be\s+it\s+resolved)\b"
    r"|\b(?:the\s+)?parties\s+(?:have\s+)?agreed\s+(?:that|to|on)\b|\bwe\s+(?:have\s+)?(?:decided|resolved)\s+(?:that|to|on)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT = re.compile(
    r"\b(?:nicht|kein\w*|noch\s+nicht|weder|wenn|falls|sofern|soweit|ob|bevor|sobald|not|no|never|if|unless|whether|until"
    r"|once|before|should)\b",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[^\W\d_]{3})[.!?](?=\s|$)|\n\s*\n|\n(?=[-*•>]|\d{1,2}[.)]\s)")
_MAX_SENTENCE_CHARS = 600


def resolved(text: ConvertedText, *, author: str | None, decided_at: datetime | None) -> Iterator[Decision]:
    """Yield what the text says was settled, in order, each sentence once; at most `MAX_RESOLVED`."""
    body, after, count = text.text, 0, 0
    for match in _SAID.finditer(body):
        if match.start() < after:
            continue
        start, end = _sentence(body, match.start(), match.end())
        line = body.rfind("\n", 0, match.start()) + 1
        if body[line : line + 1] == ">" or _denied(body, start, match.end(), end):
            continue
        after = end
        sentence = body[start:end]
        yield Decision(
            kind=DecisionKind.RESOLVED,
            summary=short(sentence),
            locus=next((page.locus for page in text.pages_of(start, end) if page.locus not in {None, "body"}), None),
            from_span=None,
            to_span=(start, end),
            author=author,
            decided_at=decided_at,
            evidence={"source": "text", "text": short(match.group(0))},
            confidence=0.8,
        )
        count += 1
        if count >= MAX_RESOLVED:
            return


def _sentence(body: str, start: int, end: int) -> tuple[int, int]:
    """Return the sentence around a span, cut when it never ends."""
    low = max(0, start - _MAX_SENTENCE_CHARS)
    before = [match.end() for match in _END.finditer(body, low, start)]
    first = before[-1] if before else body.rfind("\n", low, start) + 1 or low
    following = _END.search(body, end, min(len(body), end + _MAX_SENTENCE_CHARS))
    last = following.end() if following else min(len(body), end + _MAX_SENTENCE_CHARS)
    while first < start and body[first].isspace():
        first += 1
    return first, last - (len(body[first:last]) - len(body[first:last].rstrip()))


def _denied(body: str, start: int, said_end: int, end: int) -> bool:
    """Return whether the words up to what was said, or a question mark, take it back."""
    return _NOT.search(body[start:said_end]) is not None or body[start:end].rstrip().endswith("?")
