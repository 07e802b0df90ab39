"""The notable clauses of a contract, without a model: its numbered sections, each with the type that the tree gives it.

A section begins at a line that is numbered as headings are ("§ 7 Haftung", "12.1 Limitation of Liability", "Article 5 -
Term") or stands in capitals, and ends before the next one of its own or a higher level. Only sections of a known type
are clauses; the rest is found as body text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from shared.ontology.tree import Ontology
from shared.text.normalise import single_line

MAX_CLAUSES: Final = 200
_MAX_HEADING_CHARS: Final = 120
_MAX_HEADING_WORDS: Final = 12
_MAX_LINES: Final = 200_000
_MIN_CLAUSE_CHARS: Final = 20
# The typing of a section without a telling heading looks no further than this.
_PHRASE_CHARS: Final = 2_000
_NAMED = re.compile(
    r"^(?P<mark>§{1,2}|Art\.|Artikel|Article|Section|Clause|Ziffer|Ziff\.|Abschnitt|Klausel)\s*"
    r"(?P<number>\d{1,3}[a-z]?(?:\.\d{1,3}){0,3}|[IVXLC]{1,7}\b)[.):]?\s*(?:[-:\u2013\u2014]\s*)?(?P<title>.*)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^(?P<number>\d{1,3}(?:\.\d{1,3}){0,3})[.)]?\s+(?P<title>\S.*)$")
_ROMAN = re.compile(r"^(?P<number>[IVXLC]{1,7})[.)]\s+(?P<title>\S.*)$")
_CAPITALS = re.compile(r"^[^\W\d_a-zäöüß][^a-zäöüß\n]{3,80}$")
# A sentence is not a heading; "Nr." and the like within one are rare enough.
_SENTENCE_END = re.compile(r"[.;,:]$")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause: `[char_start, char_end)` of the version's text, its type in the tree, and its heading."""

    clause_type: str
    locus: str
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class _Section:
    level: int
    heading: str
    title: str
    char_start: int


def find_clauses(text: str, ontology: Ontology) -> list[Clause]:
    """Return the clauses of a text in order, at most `MAX_CLAUSES`."""
    sections = list(_sections(text))
    found: list[Clause] = []
    for section, end in zip(sections, _ends(sections, len(text)), strict=True):
        body = text[section.char_start : end]
        stripped = body.rstrip()
        if len(stripped) < len(section.heading) + _MIN_CLAUSE_CHARS:
            continue
        clause_type = ontology.clause_type_of(heading=section.title, text=body[len(section.heading) :][:_PHRASE_CHARS])
        if clause_type is not None:
            end_of_text = section.char_start + len(stripped)
            found.append(Clause(clause_type, single_line(section.heading), section.char_start, end_of_text))
        if len(found) == MAX_CLAUSES:
            break
    return _without_repeats(found)


def clauses_to_json(clauses: Sequence[Clause]) -> bytes:
    """Return the stored form; the same clauses give the same bytes."""
    return json.dumps([asdict(one) for one in clauses], ensure_ascii=False, sort_keys=True).encode()


def clauses_from_json(stored: bytes | str) -> list[Clause]:
    """Return the clauses that `clauses_to_json` wrote."""
    return [Clause(**body) for body in json.loads(stored)]


def _sections(text: str) -> Iterator[_Section]:
    start = 0
    for number, line in enumerate(text.split("\n")):
        if number >= _MAX_LINES:
            return
        plain = line.strip()
        section = _section(plain, start + len(line) - len(line.lstrip())) if plain else None
        if section is not None:
            yield section
        start += len(line) + 1


def _section(line: str, char_start: int) -> _Section | None:
    # Markdown's own marks are no part of a heading, yet they say that it is one.
    bare = line.lstrip("#*").rstrip("*").strip()
    if not bare or len(bare) > _MAX_HEADING_CHARS:
        return None
    numbered = _NAMED.match(bare) or _NUMBERED.match(bare) or _ROMAN.match(bare)
    if numbered is not None:
        title = numbered["title"]
        is_named = numbered.re is _NAMED
        if _is_sentence(title) or not (is_named or title[0].isupper() or title[0] == "„"):
            return None
        return _Section(1 + numbered["number"].count("."), line, title, char_start)
    if _CAPITALS.match(bare) or line.startswith("#"):
        return _Section(1, line, bare, char_start)
    return None


def _is_sentence(title: str) -> bool:
    return bool(_SENTENCE_END.search(title)) or len(title.split()) > _MAX_HEADING_WORDS


def _ends(sections: Sequence[_Section], length: int) -> list[int]:
    """Return where each section ends: before the next one that is not below it."""
    ends = [length] * len(sections)
    opened: list[int] = []
    for place, section in enumerate(sections):
        while opened and sections[opened[-1]].level >= section.level:
            ends[opened.pop()] = section.char_start
        opened.append(place)
    return ends


def _without_repeats(clauses: Sequence[Clause]) -> list[Clause]:
    """Leave out a section of the same type within another: it is found with that one."""
    kept: list[Clause] = []
    for clause in clauses:
        around = next((one for one in reversed(kept) if one.char_end >= clause.char_end), None)
        if around is None or around.clause_type != clause.clause_type:
            kept.append(clause)
    return kept
