"""The passage of a chunk that answers the query best, with what is marked in it.

Offsets count characters (Unicode code points) of the stored text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.search.marks import Marks, Match, matches

EXCERPT_CHARS: Final = 320
_MAX_SHIFT: Final = 40
# The beginning of a mail as it is stored, or of one that was printed, forwarded or saved as text.
_MAIL_FIELDS: Final = (
    "from|to|cc|bcc|date|sent|subject|reply-to|message-id|attachments?"
    "|von|an|kopie|datum|gesendet(?: am)?|betreff|antwort an|anlagen?"
)
_MAIL_FIELD: Final = rf"(?:{_MAIL_FIELDS})[ \t]*:[^\n]*(?:\n[ \t]+\S[^\n]*)*(?:\n\s*|$)"
_MAIL_HEADER: Final = re.compile(rf"\s*(?:{_MAIL_FIELD}){{2,}}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is exactly `chunk[start : start + len(text)]`; `highlights` are [start, end) within `text`, in order."""

    text: str
    start: int
    highlights: tuple[tuple[int, int], ...]


def excerpt_of(chunk: str, marks: Marks, *, chars: int = EXCERPT_CHARS) -> Excerpt:
    """Return the window of at most `chars` characters that answers best, cut at word ends.

    An identifier comes first, then the most different words of the query. The headers of a mail are left out when what
    was asked for stands in its body.
    """
    found = matches(chunk, marks)
    body = _body_start(chunk)
    in_body = [match for match in found if match.start >= body]
    if in_body and any(match.is_identifier for match in in_body) == any(match.is_identifier for match in found):
        start, end = _window(chunk, in_body, chars, least=body)
    else:
        start, end = _window(chunk, found, chars, least=0)
    start, end = _trimmed(chunk, start, end)
    marked = tuple(
        (match.start - start, match.end - start) for match in found if start <= match.start < match.end <= end
    )
    return Excerpt(chunk[start:end], start, marked)


def _body_start(chunk: str) -> int:
    header = _MAIL_HEADER.match(chunk)
    return 0 if header is None else header.end()


def _window(chunk: str, found: Sequence[Match], chars: int, *, least: int) -> tuple[int, int]:
    """Return the best span from `least` on: with an identifier, most different keys, most matches, the first."""
    if len(chunk) - least <= chars or not found:
        return least, _word_end(chunk, min(least + chars, len(chunk)), least)
    best, best_rank = (found[0].start, found[0].end), (False, 0, 0)
    last = 0
    for first, match in enumerate(found):
        last = max(last, first)
        while last + 1 < len(found) and found[last + 1].end - match.start <= chars:
            last += 1
        held = found[first : last + 1]
        rank = (any(one.is_identifier for one in held), len({one.key for one in held}), len(held))
        if rank > best_rank:
            best, best_rank = (match.start, found[last].end), rank
    begin, end = best
    # What is left of the window goes before and behind in equal parts, as far as the text reaches.
    spare = max(0, chars - (end - begin))
    start = max(least, min(begin - spare // 2, len(chunk) - chars))
    start = _word_start(chunk, start, begin, least=least)
    return start, _word_end(chunk, min(len(chunk), start + chars), end)


def _word_start(chunk: str, wanted: int, latest: int, *, least: int) -> int:
    """Return where the first whole word at or after `wanted` begins, but no later than `latest`."""
    if wanted == least:
        return least
    start = wanted
    while start < latest and start - wanted < _MAX_SHIFT and not chunk[start - 1].isspace():
        start += 1
    return start


def _word_end(chunk: str, wanted: int, earliest: int) -> int:
    """Return where the last whole word before `wanted` ends, but no earlier than `earliest`."""
    if wanted >= len(chunk):
        return len(chunk)
    end = wanted
    while end > earliest and wanted - end < _MAX_SHIFT and not chunk[end].isspace():
        end -= 1
    return end if chunk[end].isspace() else wanted


def _trimmed(chunk: str, start: int, end: int) -> tuple[int, int]:
    while start < end and chunk[start].isspace():
        start += 1
    while end > start and chunk[end - 1].isspace():
        end -= 1
    return start, end
