"""The date of a document: a plain day, read where it was written, never invented.

ISO forms are ISO; everything else puts the day first, as German does. A day that does not exist is no date, and a
deadline is not the document's date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

from shared.ingest.facts import DocDate

_NAMES = (
    "januar jänner january jan",
    "februar feber february feb",
    "märz maerz march mar mrz",
    "april apr",
    "mai may",
    "juni june jun",
    "juli july jul",
    "august aug",
    "september sept sep",
    "oktober october okt oct",
    "november nov",
    "dezember december dez dec",
)
_MONTHS = {name: number for number, names in enumerate(_NAMES, start=1) for name in names.split()}
_NAME = "|".join(sorted(_MONTHS, key=len, reverse=True))
_GAP = r"[^\S\n]{0,3}"
_DATE = re.compile(
    rf"""(?<![\w./-])(?:
      (?P<iy>\d{{4}})-(?P<im>\d{{2}})-(?P<id>\d{{2}})(?:T[\d:]+Z?)?
    | (?P<d>\d{{1,2}})\.{_GAP}(?P<m>\d{{1,2}})\.{_GAP}(?P<y>\d{{4}}|\d{{2}})
    | (?P<nd>\d{{1,2}})(?:\.|st|nd|rd|th)?{_GAP}(?:of{_GAP})?(?P<nm>{_NAME})\b\.?,?{_GAP}(?P<ny>\d{{4}})
    | (?P<em>{_NAME})\b\.?{_GAP}(?P<ed>\d{{1,2}})(?:st|nd|rd|th)?,{_GAP}(?P<ey>\d{{4}})
    | (?P<pm>{_NAME})\b\.?{_GAP}(?P<py>\d{{4}})
    )(?![\w-]|[./]\d)""",
    re.IGNORECASE | re.VERBOSE,
)
# Before a date, on the same line: then it is when something ends, began or happened, not when this was written.
_OTHER = re.compile(
    r"\b(?:frist|fristablauf|bis|spätestens|längstens|fällig|zahlbar|ablauf|endet|geboren|geb|termin|verhandlung|gültig"
    r"|befristet|stichtag|deadline|until|by|due|no later than|before|expir\w*|born|hearing|valid|zum|ab|seit|since"
    r"|from|effective|starting)\b(?:[^\n.;]|\.(?!\s)){0,40}$",
    re.IGNORECASE,
)
_WEEKDAY = (
    r"(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
# Before a date: this is the document's own. A word for it, a place ("Hamburg, den"), or a line that begins with it.
_LABEL = re.compile(
    r"(?:^|[\s(|])(?:datum|date|(?-i:Stand)|(?:erstellt|ausgestellt|unterzeichnet|verkündet) am|signed on)"
    r"[\s:|*]*(?:vom\s+|den\s+)?$|^\W*(?:den|dated(?: as of)?)\s+$",
    re.IGNORECASE,
)
_PLACE = re.compile(
    rf"(?:^|[.|]\s+|\s{{2,}})(?!{_WEEKDAY}\b)(?-i:[^\W\d_a-zäöü])[\w./()-]*(?:\s[\w./()-]+){{0,3}},\s*(?:den\s+|the\s+)?$",
    re.IGNORECASE,
)
# In the first lines: "Urteil vom 12. März 2020", "Kaufvertrag vom".
_OF = re.compile(r"^\W*[^\W\d_][\w./()-]*(?: [\w./()-]+){0,5} (?:vom|dated|of)\s+$", re.IGNORECASE)
# With such a word before it even a year or a month in figures is a date: "Stand: 2023", "Datum: 03/2023".
_PARTIAL = re.compile(
    r"(?:^|[(|])[^\S\n#*]{0,4}(?:Datum|Date|(?-i:Stand)|as of)[^\S\n:|*]{0,2}[:|]?[^\S\n|*]{0,3}"
    r"(?P<raw>(?:(?P<month>0?[1-9]|1[0-2])[/.])?(?P<year>(?:19|20)\d{2})(?:-(?P<iso>0[1-9]|1[0-2]))?)(?![\w-]|[./]\d)",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_LINES = 3
_HEAD_CHARS = 3000
_BEFORE_CHARS = 100
_CENTURY_PIVOT = 70
_MIN_YEAR, _MAX_YEAR = 1800, 2200
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date in a text: the day (the first of the month or year if less was written), and `[start, end)`."""

    day: date
    precision: str
    raw: str
    start: int
    end: int


def written_dates(text: str) -> Iterator[WrittenDate]:
    """Yield every date that exists, in order."""
    for match in _DATE.finditer(text):
        day, precision = _day(match)
        if day is not None:
            yield WrittenDate(day, precision, match.group(0), match.start(), match.end())


def document_date(text: str) -> DocDate:
    """Return the date that the head of a document gives itself; no date when it only names others'.

    A date with a word of its own ("Hamburg, den", "Datum:") counts before one that stands alone on its line; any other
    mention is not taken.
    """
    head = text[:_HEAD_CHARS]
    alone: WrittenDate | None = None
    for found in written_dates(head):
        line_start = head.rfind("\n", 0, found.start) + 1
        before = head[max(line_start, found.start - _BEFORE_CHARS) : found.start]
        early = len([line for line in head[:line_start].split("\n") if line.strip()]) < _FIRST_LINES
        if not _OTHER.search(before) and (
            _LABEL.search(before) or _PLACE.search(before) or (early and _OF.search(before))
        ):
            return DocDate(found.day, found.precision, found.raw)
        line_end = head.find("\n", found.end)
        after = head[found.end : line_end if line_end >= 0 else len(head)]
        if alone is None and found.precision == "day" and not before.strip(" \t*_#|") and not after.strip(" \t*_|."):
            alone = found
    return DocDate(alone.day, alone.precision, alone.raw) if alone else _partial(head)


def _partial(head: str) -> DocDate:
    """Return the month or year that a document dates itself by, as the first day of it."""
    found = _PARTIAL.search(head)
    if found is None:
        return DocDate(None, None, None)
    month = found["month"] or found["iso"]
    first = _valid(int(found["year"]), int(month or 1), 1)
    return DocDate(first, "month" if month else "year", found["raw"])


def named_date(name: str) -> DocDate:
    """Return the date in a file's name: "2024-03-28", "20240328", "28.03.2024", "2024-03"."""
    spaced = re.sub(r"[_ ]", " ", name)
    compact = re.search(r"(?<!\d)((?:19|20)\d{2})(\d{2})(\d{2})(?!\d)", spaced)
    if compact:
        day = _valid(*(int(part) for part in compact.groups()))
        if day:
            return DocDate(day, "day", compact.group(0))
    for found in written_dates(spaced.rpartition(".")[0] if "." in spaced else spaced):
        return DocDate(found.day, found.precision, found.raw)
    month = re.search(r"(?<![\d-])((?:19|20)\d{2})-(\d{2})(?![\d-])", spaced)
    if month:
        first = _valid(int(month.group(1)), int(month.group(2)), 1)
        if first:
            return DocDate(first, "month", month.group(0))
    return DocDate(None, None, None)


def mail_date(header: str | None) -> DocDate:
    """Return the day of a mail's Date header in Berlin; without a day when it cannot be read, the raw text kept."""
    if not header or not header.strip():
        return DocDate(None, None, None)
    raw = header.strip()
    # Comments carry 8-bit zone names; the number before them is what counts.
    plain = re.sub(r"\([^()]*\)?", " ", raw).strip()
    # A year of three digits counts from 1900 (RFC 5322, 4.3): programs of 2000 wrote "100".
    plain = re.sub(r"(?<=[a-z] )1\d\d(?= \d{1,2}:)", lambda year: str(1900 + int(year.group())), plain)
    try:
        moment = parsedate_to_datetime(plain)
        # Without a zone the day is taken as written.
        day = moment.astimezone(BERLIN).date() if moment.tzinfo else moment.date()
    except (ValueError, TypeError, OverflowError, IndexError):
        return DocDate(None, None, raw)
    return DocDate(day, "day", raw) if _MIN_YEAR <= day.year <= _MAX_YEAR else DocDate(None, None, raw)


def _day(match: re.Match[str]) -> tuple[date | None, str]:
    part = match.groupdict()
    if part["iy"]:
        return _valid(int(part["iy"]), int(part["im"]), int(part["id"])), "day"
    if part["d"]:
        return _valid(_year(part["y"]), int(part["m"]), int(part["d"])), "day"
    if part["nd"]:
        return _valid(int(part["ny"]), _MONTHS[part["nm"].lower()], int(part["nd"])), "day"
    if part["ed"]:
        return _valid(int(part["ey"]), _MONTHS[part["em"].lower()], int(part["ed"])), "day"
    return _valid(int(part["py"]), _MONTHS[part["pm"].lower()], 1), "month"


def _year(written: str) -> int:
    number = int(written)
    if len(written) > 2:  # noqa: PLR2004 - two digits are a year of this or the last century
        return number
    return number + (1900 if number >= _CENTURY_PIVOT else 2000)


def _valid(year: int, month: int, day: int) -> date | None:
    if not _MIN_YEAR <= year <= _MAX_YEAR:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None
