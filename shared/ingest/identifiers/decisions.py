"""Decisions as they are cited: court, kind, day and number ("BGH, Urt. v. 27.11.1963 - Ib ZR 60/62").

The same number is given by many courts: only with its court it names one decision. So what stands before a file number
or a printed place is looked through for a court, a bounded way back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shared.ingest.identifiers.found import Identifier
from shared.text.normalise import single_line

_FULL: Final = {
    "Bundesgerichtshof": "BGH",
    "Bundesverfassungsgericht": "BVerfG",
    "Bundesverwaltungsgericht": "BVerwG",
    "Bundesarbeitsgericht": "BAG",
    "Bundessozialgericht": "BSG",
    "Bundesfinanzhof": "BFH",
    "Bundespatentgericht": "BPatG",
    "Reichsgericht": "RG",
    "Oberlandesgericht": "OLG",
    "Landgericht": "LG",
    "Amtsgericht": "AG",
    "Landesarbeitsgericht": "LAG",
    "Arbeitsgericht": "ArbG",
    "Landessozialgericht": "LSG",
    "Sozialgericht": "SG",
    "Oberverwaltungsgericht": "OVG",
    "Verwaltungsgerichtshof": "VGH",
    "Verwaltungsgericht": "VG",
    "Finanzgericht": "FG",
    "Kammergericht": "KG",
    "Gerichtshof der Europäischen Union": "EuGH",
    "Europäischer Gerichtshof": "EuGH",
}
_G = r"[^\S\n]{1,2}"
_ONE = (
    "BGH|BVerfG|BVerwG|BAG|BSG|BFH|BPatG|RG|RFH|RAG|BayObLG|EuGH|EuG|EGMR|GmS-OGB|BayVGH|BayVerfGH|ThürOLG|SchlHOLG"
    "|HansOLG|PfälzOLG|NdsOVG|ThürOVG|SächsOVG|HessVGH|KG"
)
_AT_PLACE = "OLG|LG|AG|LAG|ArbG|LSG|SG|OVG|VGH|VG|FG|AGH|VerfGH|StGH|LVerfG"
# There is one Bundesgerichtshof, but an Oberlandesgericht only tells with its place.
_LONG_AT = "|".join(name for name, short in _FULL.items() if short in _AT_PLACE.split("|"))
_LONG = "|".join(name for name, short in _FULL.items() if short not in _AT_PLACE.split("|"))
_WORD = r"[A-ZÄÖÜ][A-Za-zäöüß]{1,20}(?:-[A-ZÄÖÜ][a-zäöüß]{1,20}){0,2}\.?"
_BY_WATER = rf"(?:a\.?[^\S\n]?M\.|am{_G}Main|\(Oder\)|an{_G}der{_G}\w{{3,10}}|i\.?[^\S\n]?d\.?[^\S\n]?O(?:Pf)?\.)"
_PLACE = rf"(?:{_WORD}(?:{_G}{_BY_WATER})?)"
_KIND = (
    r"(?:(?:Grund|Teil|Versäumnis|Schluss|End|Zwischen|Hinweis|Vorlage|Kammer|Senats|Nichtannahme)?"
    r"(?:[Uu]rt(?:\.|eil(?:e|en|s)?)|[Bb]eschl(?:\.|u(?:ss|ß)(?:es)?|üss(?:e|en))|[Vv]erf(?:\.|ügung)"
    r"|[Ee]ntscheidung(?:en)?)|U\.|B\.|judgment|order)"
)
_DAY = (
    r"(?:(?:19|20)\d{2}-\d{2}-\d{2}|\d{1,2}\.[^\S\n]?\d{1,2}\.[^\S\n]?\d{2,4}"
    r"|\d{1,2}\.[^\S\n]{1,2}[A-ZÄÖÜ][a-zäöü]{2,8}\.?[^\S\n]{1,2}\d{4})"
)
_BEFORE = re.compile(
    rf"(?<![\w./])(?P<court>(?:{_ONE}|{_LONG})(?:{_G}{_PLACE})?|(?:{_LONG_AT}|{_AT_PLACE}){_G}(?:des{_G}Landes{_G})?{_PLACE})"
    rf"(?:(?:-|,?{_G}){_KIND})?(?:{_G}in)?(?:,?{_G}(?:(?:vom?\.?|v\.|of){_G})?{_DAY})?"
    rf"(?:[^\S\n]?[,;:]|{_G}[-\u2013]{{1,2}}|[^\S\n]?\((?=[^()]{{0,3}}$))?{_G}?"
    rf"(?:(?:Az\.?:?|Aktenzeichen:?|Rs\.|Rechtssache|verb\.{_G}Rs\.)[^\S\n]{{0,2}})?\Z"
)
_MOST_CHARS = 120


def with_courts(text: str, numbers: list[Identifier]) -> Iterator[Identifier]:
    """Yield each file number and printed place (given in order), within its court's citation if one is before it."""
    end = 0
    for number in numbers:
        found = _BEFORE.search(text, max(end, number.start - _MOST_CHARS), number.start)
        end = number.end
        if found is None:
            yield number
            continue
        raw = text[found.start() : number.end]
        canonical = f"{_court(found['court'])} {number.canonical}"
        yield Identifier("decision", raw, canonical, found.start(), number.end, (number,))


def _court(written: str) -> str:
    line = single_line(written)
    for name, short in _FULL.items():
        if line.startswith(name):
            return single_line(f"{short}{line[len(name) :]}")
    return line
