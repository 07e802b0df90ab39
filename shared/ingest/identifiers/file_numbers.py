"""File numbers of courts, prosecutors and authorities.

Register signs: Aktenordnung of the Länder, and the rules of the federal courts. A sign is one of these, not any capital
letter: "1 C 4/16" is a file number, "1 X 4/16" is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shared.ingest.identifiers.found import DASH, SPACE, Identifier
from shared.text.normalise import single_line

_SIGNS = [
    sign
    for signs in (
        # ordinary courts and prosecutors
        "C H B O S T U W F UF WF UFH UH AR OH OWi Ds Cs Ls Ks KLs Ns Qs Js UJs VRs VRJs Gs BRs Ss Ws VAs StVK M K L N",
        "J IN IK IE VI XVII III IV HKO HK{s}O KfH{s}O Kart Verg Lw UKl EK RVs RBs ORs ORbs OBWs Rv Ss{s}OWi Ss{s}Bs",
        "Rev Reh Rh SsRs SsBs VK{s}LSA VollzWs OLGAusl StO Vollz",
        "Wx Sch SchH VA Ausl OAus OJs OBL Ni ObOWi StRR Zs HEs Bs UR{s}II UR{s}III Li EH BJs BGs StE",
        # federal courts
        "ZR ZB ZA ARZ StR StB ARs AR KZR KZB KVR KVZ EnVR EnZR EnVZ EnRB BLw AnwZ AnwSt NotZ NotSt RiZ RiSt PatAnwZ",
        "BvR BvL BvF BvE BvB BvC BvG BvH BvK BvM BvN BvO BvP BvQ BvT PBvU PBvS",
        # labour courts
        "AZR AZB AZN AZA ABR ABN ABA ASR GS AS AV Ca BV BVGa Ga Ha Sa SaGa SLa SHa Ta TaBV TaBVGa TaBVHa Oa",
        # administrative and fiscal courts
        "A D E G P R V Z AE AK BN BS CE CN CS DB KN KR ME NE OB VR WB WD GrS KO LA LB LC MB MN PA ZB ZO So Bf Nc KM KE",
        "SV NB PKH OA KS MR PS LP KF RR MF LZ MC MP LD OD",
        # social courts
        "AL AY BA BK BL EG KA KG RE RS RK RJ RA RU RVg RKn RAr RKg SB SF SO VE VG VJ VK VM VS VU SV P{s}A",
    )
    for sign in signs.split()
]
_ROMAN_CHAMBER = r"[IVX]{1,5}[ab]?"
_SIGN = "|".join(sign.replace("{s}", r"[^\S\n]?") for sign in sorted(set(_SIGNS), key=len, reverse=True))
_INNER = r"(?:[^\S\n]{0,2}\((?:[A-Za-zÜ]|[A-Z]{2,3}|Kart|Brfg|EnwG|EnW|Enw|pat|Vs|Vollz|OWi|Ri|KapMuG|Rev|Reh|Ausl)\))"
_SUFFIX = (
    r"(?:KfH|B[^\S\n]?ER|ER|NZB|R|B|PKH|KL|WA|RG|EU|Kart|BH|C|S|BK|(?:As[^\S\n])?(?:HGW|SN|HAL|MD)|As|(?:Str|M)?Vollz|WEG|Lw"
    r"|\((?:PKH|VKH|Kart|EnwG|EP|EU|pat|Rev|Hs|KfB|Abl|(?:Str|M)?Vollz\.?|Zust|B|Z)\)|E|G|L|D|Z"
    r"|eA|EASO|VKH|RN|F|U|K|Kg|AO|A|NW|P|RH)"
)
_NUMBER = r"(?P<number>\d{1,6}(?:[^\S\n][ab](?=/))?)[^\S\n]?[/.][^\S\n]?(?P<year>\d{4}|\d{2})(?!\d|[./]\d)"
_FILE_NUMBER = re.compile(
    rf"""(?<![\w./-])
    (?:(?P<place>(?:VG|OVG|VGH)|[A-Z]{{1,2}}|\d?[A-Z][a-z])[^\S\n]{{1,2}})?
    (?P<chamber>(?:{_ROMAN_CHAMBER}|\d{{1,4}}[a-z]?)(?:[-/][IVX\d]{{1,4}}[a-z]?)?){SPACE}
    (?P<first>(?:OLG|OWi|Qs|Ds|Ls|Ks|KLs|Rv|Cs|Gs){SPACE}\d{{1,4}}{SPACE})?(?P<sign>{_SIGN})(?P<inner>{_INNER})?{SPACE}
    {_NUMBER}
    (?P<tail>\.[A-Z]{{1,3}}(?![\w.]))?(?P<suffix>(?:[^\S\n]{{1,2}}{_SUFFIX}(?![\w.])){{0,3}})""",
    re.VERBOSE,
)
# Senates that are alone at their court have a sign and no number before it.
_ALONE = re.compile(
    rf"(?<![\w./-])(?:(?P<chamber>[IVX]{{1,4}}-)?(?P<sign>KZR|KZB|KVR|KVZ|KRB|EnVR|EnZR|EnVZ|EnRB|StB|AnwZ|AnwSt|NotZ|NotSt"
    rf"|PatAnwZ|RiZ|RiSt|StbSt|WpSt|BLw|GSZ|GSSt|GrS|Verg|AK|PBvU))(?P<inner>{_INNER})?{SPACE}"
    rf"{_NUMBER}(?P<suffix>(?:[^\S\n]{{1,2}}\(?e\)?(?![\w.]))?)"
)
# The year first: Bavaria's and some other administrative courts ("M 12 K 19.1234", "10 ZB 18.123").
_YEAR_FIRST = re.compile(
    rf"(?<![\w./-])(?:(?:VG|OVG|VGH|[A-Z]{{1,2}}|[A-Z][a-z])[^\S\n]{{1,2}})?\d{{1,2}}{SPACE}"
    rf"(?:K|ZB|CS|CE|BV|NE|AS|AE|B|N|C|S|E|M|A|P|PKH){SPACE}(?!20\.20)\d{{2}}\.\d{{3,6}}(?!\w|\.\d)"
)
_EUROPE = re.compile(
    rf"(?<![\w/-])(?P<court>[CTF]){DASH}(?P<number>\d{{1,4}})/(?P<year>\d{{2}})"
    r"(?P<suffix>(?:[^\S\n](?:PPU|RENV|INTP|DEP|REV|OP|P|AP|R|I)(?!\w)){0,2})(?!\w|/\d)"
)
# Before 1989 Europe had one court and numbers without a letter: only a word tells them.
_OLD_EUROPE = re.compile(
    rf"(?<!\w)(?:Rs\.|Rechtssachen?|[Cc]ases?){SPACE}(?P<number>\d{{1,3}}/(?:5[3-9]|[6-8]\d))(?![\w/])"
)
_AUTHORITY = re.compile(
    rf"(?<![\w/-])(?:(?P<cartel>B)[^\S\n]?(?P<division>\d{{1,2}})[^\S\n]?{DASH}[^\S\n]?(?P<case>\d{{1,4}}/\d{{2}})"
    rf"|BK[^\S\n]?\d{{1,2}}{DASH}\d{{2}}[-/]\d{{1,5}}(?:{DASH}[A-Z]\d?)?"
    rf"|VK[^\S\n]?\d{{1,2}}[^\S\n]?{DASH}[^\S\n]?\d{{1,4}}/\d{{2}}"
    r"|(?:COMP/)?(?:AT\.\d{5}|M\.\d{4,5}|SA\.\d{5,6}))(?!\w|/\d|\.\d)"
)
_ECLI = re.compile(
    r"(?<!\w)ECLI:[A-Z]{2}:[A-Z0-9]{1,7}:\d{4}:[A-Z0-9](?:[A-Z0-9.]{0,24}[A-Z0-9])?(?!\w)", re.IGNORECASE
)
_AUTHORITY_DASHES: Final = re.compile(rf"[^\S\n]?{DASH}[^\S\n]?")


def eclis(text: str) -> Iterator[Identifier]:
    """Yield every European Case Law Identifier, in capitals."""
    for match in _ECLI.finditer(text):
        yield _found("ecli", match, match.group(0).upper())


def file_numbers(text: str) -> Iterator[Identifier]:
    """Yield file numbers of German courts and prosecutors, of the Union's courts, and of authorities."""
    for match in _EUROPE.finditer(text):
        yield _found(
            "eu_case", match, single_line(f"{match['court']}-{match['number']}/{match['year']}{match['suffix']}")
        )
    for match in _OLD_EUROPE.finditer(text):
        start, end = match.span("number")
        yield Identifier("eu_case", match["number"], match["number"], start, end)
    for match in _YEAR_FIRST.finditer(text):
        yield _found("file_number", match, single_line(match.group(0)))
    for match in _FILE_NUMBER.finditer(text):
        tail = match["tail"] or ""
        head = (
            f"{match['place'] or ''} {match['chamber']} {match['first'] or ''} {match['sign']} {match['inner'] or ''}"
        )
        number = f"{match['number']}/{match['year'][-2:]}{tail}{match['suffix']}"
        yield _found("file_number", match, single_line(f"{head} {number}"))
    for match in _ALONE.finditer(text):
        head = f"{match['chamber'] or ''}{match['sign']} {match['inner'] or ''}"
        yield _found(
            "file_number", match, single_line(f"{head} {match['number']}/{match['year'][-2:]}{match['suffix']}")
        )
    for match in _AUTHORITY.finditer(text):
        if match["cartel"]:
            yield _found("authority", match, f"B{match['division']}-{match['case']}")
        else:
            plain = _AUTHORITY_DASHES.sub("-", single_line(match.group(0))).removeprefix("COMP/")
            yield _found("authority", match, re.sub(r"^(BK|VK)\s+", r"\1 " if plain.startswith("VK") else r"\1", plain))


def _found(kind: str, match: re.Match[str], canonical: str) -> Identifier:
    return Identifier(kind, match.group(0), canonical, match.start(), match.end())
