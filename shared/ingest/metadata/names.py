"""What a file's name says: its stem without version marks, its version number, and how far it has come."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from shared.text.normalise import single_line
from shared.types import VersionStatus

_SEP = r"[\s_.\-\u2013\u2014()\[\]]"
_START, _END = rf"(?:(?<={_SEP})|^)", rf"(?={_SEP}|$)"
_EXECUTED = re.compile(
    rf"{_START}(?:unterzeichnet|unterschrieben|gezeichnet|executed|signed|vollzogen|beurkundet|ausfertigung){_END}",
    re.IGNORECASE,
)
_FINAL = re.compile(
    rf"{_START}(?:final|finale?[rs]?|endfassung|endg(?:ü|ue)ltig|schlussfassung|reinschrift|execution version){_END}",
    re.IGNORECASE,
)
_DRAFT = re.compile(
    rf"{_START}(?:entwurf|draft|arbeitsfassung|vorentwurf|markup|mark-up|redline|"
    rf"(?:ä|ae)nderungsmodus)(?={_SEP}|\d|$)",
    re.IGNORECASE,
)
# Neither says how far a text has come: one is without marks of changes, the other is one of something.
_CLEAN = re.compile(rf"{_START}(?:clean(?: version| copy)?|ohne markierungen){_END}", re.IGNORECASE)
_COPY = re.compile(rf"{_START}(?:kopie(?: von)?|copy(?: of)?){_END}", re.IGNORECASE)
_NOT = re.compile(rf"{_START}(?:nicht|not|noch|non|zu|to be|un){_SEP}*$", re.IGNORECASE)
_NUMBER = re.compile(
    rf"{_START}(?:(?:v|ver|version|vers|rev|revision|fassung){_SEP}?(\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})"
    rf"|(?:entwurf|draft){_SEP}?(\d{{1,3}})){_END}",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"{_START}(?:(?:19|20)\d{{2}}-\d{{2}}-\d{{2}}|(?:19|20)\d{{6}}|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}}|\d{{2}})){_END}"
)
_SPACES = re.compile(rf"{_SEP}+")
_MIN_STEM_CHARS = 3
_MAX_ENDING_CHARS = 5


@dataclass(frozen=True, slots=True)
class NameFacts:
    """`family` is None when the name has no version mark: then it says nothing about belonging together.

    `mark` is what the status was read from; with marks that contradict each other the status is unknown.
    """

    stem: str
    family: str | None
    number: tuple[int, ...] | None
    status: VersionStatus
    mark: str | None


def read_name(name: str) -> NameFacts:
    """Return what the name of a file says."""
    stem = _stem(name)
    status, mark = _status(stem)
    number = _number(stem)
    marked = mark is not None or _CLEAN.search(stem) is not None
    return NameFacts(stem, _family(stem, marked=marked, numbered=number is not None), number, status, mark)


def stem_key(name: str) -> str:
    """Return a key that is the same for names that say the same; the name cannot be read from it."""
    return hashlib.sha256(_stem(name).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _stem(name: str) -> str:
    plain = single_line(name)
    stem, dot, ending = plain.rpartition(".")
    return stem if dot and stem and len(ending) <= _MAX_ENDING_CHARS else plain


def _status(stem: str) -> tuple[VersionStatus, str | None]:
    marks: dict[VersionStatus, str] = {}
    for pattern, status in (
        (_EXECUTED, VersionStatus.EXECUTED),
        (_DRAFT, VersionStatus.DRAFT),
        (_FINAL, VersionStatus.FINAL),
    ):
        found = next((one for one in pattern.finditer(stem) if not _NOT.search(stem[: one.start()])), None)
        if found:
            marks[status] = found.group(0)
    if VersionStatus.DRAFT in marks and len(marks) > 1:
        return VersionStatus.UNKNOWN, ", ".join(marks.values())
    return next(iter(marks.items()), (VersionStatus.UNKNOWN, None))


def _number(stem: str) -> tuple[int, ...] | None:
    found = _NUMBER.search(stem)
    if found is None:
        return None
    return tuple(int(part) for part in (found.group(1) or found.group(2)).split("."))


def _family(stem: str, *, marked: bool, numbered: bool) -> str | None:
    if not (marked or numbered):
        return None
    rest = stem
    # Twice: neighbouring marks share a separator.
    for _ in range(2):
        for pattern in (_NUMBER, _EXECUTED, _FINAL, _DRAFT, _CLEAN, _COPY):
            rest = pattern.sub(" ", rest)
        if numbered or _EXECUTED.search(stem):
            # With a number or a signature a date says when this version was made. Otherwise letters of different
            # days would become one document.
            rest = _DATE.sub(" ", rest)
    family = _SPACES.sub(" ", rest).strip().casefold()
    return family if len(family) >= _MIN_STEM_CHARS else None
