"""Identifiers in a text: file numbers, statute references, ECLI, register and other numbers, each with its span.

`raw` is as written, `canonical` the one form of all spellings: "1 C 4.16" and "1 C 4/16" (with whatever spaces) are
"1 C 4/16". Courts' register signs: Aktenordnung of the Länder, and the federal courts' rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shared.text.normalise import single_line

# One way to match each gap: two ways would double the work with every gap of a long reference.
_S = r"[^\S\n]{0,3}(?:\n[^\S\n]{0,3})?"
_SP = rf"(?=\s){_S}"

# Register signs by branch of the courts; a sign is one of these, not any capital letter.
_SIGNS = [
    sign
    for signs in (
        # ordinary courts and prosecutors
        "C H B O S T U W F UF WF AR OH OWi Ds Cs Ls Ks KLs Ns Qs Js UJs Gs BRs Ss Ws VAs StVK M K L N IN IK VI XVII",
        "HKO Kart Verg Lw UKl EK",
        # federal courts
        "ZR ZB ZA ARZ StR StB ARs KZR KZB KVR KVZ EnVR EnZR BLw AnwZ AnwSt NotZ RiZ BvR BvL BvF BvE BvB BvC BvG BvH",
        "BvK BvM BvN BvO BvP BvQ BvT PBvU",
        # labour courts
        "AZR AZB AZN AZA ABR ABN ABA GS Ca BV BVGa Ga Sa SaGa Ta TaBV TaBVGa SLa",
        # administrative and fiscal courts
        "A D E G P R V Z AE AK AS BN BS CE CN CS DB KN KR ME NE OB VR WB WD GrS KO",
        # social courts
        "AL AY BA BK BL EG KA KG RE RS SB SF SO VE VG VJ VK VM VS VU",
    )
    for sign in signs.split()
]
_SIGN = "|".join(sorted(set(_SIGNS), key=len, reverse=True))
_SUFFIX = r"(?:KfH|B\s?ER|ER|NZB|R|B|PKH|WA|RG|EU|Kart|\(PKH\)|\(Kart\)|\(EnwG\)|E|G|L|D|Z)"
_FILE_NUMBER = re.compile(
    rf"""(?<![\w./-])
    (?:(?P<place>[A-Z]{{1,2}}|\d?[A-Z][a-z])[^\S\n]{{1,2}})?
    (?P<chamber>(?:[IVX]{{1,5}}|\d{{1,4}}[a-z]?)(?:-[IVX\d]{{1,4}})?){_SP}
    (?P<sign>{_SIGN}){_SP}(?:\((?:[A-Z]|Kart|EnwG)\){_SP})?
    (?P<number>\d{{1,6}})[^\S\n]?[/.][^\S\n]?(?P<year>\d{{4}}|\d{{2}})(?!\d|[./]\d)
    (?P<suffix>(?:[^\S\n]{{1,2}}{_SUFFIX}(?![\w.]))*)""",
    re.VERBOSE,
)
# Munich's administrative courts put the year first: "M 12 K 19.1234", "10 ZB 18.123".
_BAVARIAN = re.compile(
    rf"(?<![\w./-])(?:[A-Z]{{1,2}}[^\S\n]{{1,2}})?\d{{1,2}}{_SP}(?:K|ZB|CS|CE|B|BV|N|NE|C|S|E|M|AS|AE){_SP}\d{{2}}\.\d{{3,6}}(?![\w]|\.\d)"
)
_ECLI = re.compile(
    r"(?<!\w)ECLI:[A-Z]{2}:[A-Z0-9]{1,7}:\d{4}:[A-Z0-9](?:[A-Z0-9.]{0,24}[A-Z0-9])?(?!\w)", re.IGNORECASE
)
_REGISTER = re.compile(
    rf"(?<!\w)(?P<register>HRA|HRB|GnR|VR|PR|GsR){_S}(?:Nr\.?|Nummer)?{_S}(?P<number>\d{{1,7}})"
    r"(?:[^\S\n](?P<letter>B|FL|KI|PI))?(?!\w|[.,/]\d)"
)
_DASH = "[-\u2010-\u2015\u2212]"
_EU = re.compile(
    rf"(?<![\w/-])(?P<court>[CTF]){_DASH}(?P<number>\d{{1,4}})/(?P<year>\d{{2}})(?P<suffix>[^\S\n](?:PPU|P|AP|R))?(?!\w|/\d)"
)
_DEED = re.compile(
    rf"(?<!\w)(?:UR(?:-?Nr\.?)?|URNr\.?|Urkundenrolle{_S}Nr\.?|UVZ-?Nr\.?){_S}(?P<number>\d{{1,6}}/\d{{2,4}})(?![\w/])"
)
_VALUE = r"(?P<value>[\w./#-]*\d[\w./#-]*)"
_LABELS = (
    ("invoice", rf"\w*(?:Rechnungs?-?{_S}(?:nummer|Nr\.?)|rechnung{_S}(?:\([^)\n]{{1,20}}\){_S})?Nr\.)"),
    ("invoice", rf"Invoice{_S}(?:No\.?|number|\#)"),
    ("reference", rf"(?:Unser|Ihr|Mein|Our|Your){_S}(?:Zeichen|ref(?:erence)?\.?)"),
    ("reference", r"(?:Az\.|Aktenzeichen|Geschäftszeichen|Gz\.)"),
    ("case", rf"(?:(?:ICC|DIS|LCIA|SCC){_S})?Case{_S}No\.?"),
)
_LABELLED = tuple((kind, re.compile(rf"(?<!\w){label}{_S}:?{_S}{_VALUE}", re.IGNORECASE)) for kind, label in _LABELS)

_LAW = (
    r"(?:[A-ZÄÖÜ][A-Za-zÄÖÜäöüß]{0,14}[A-ZÄÖÜ][A-Za-z]{0,4}(?:-[A-ZÄÖÜ]{1,4})?|GG|VO)(?:[^\S\n](?:[IVX]{1,4})(?!\w))?"
)
_UNIT = (
    r"(?:(?:U|Unter)?Abs(?:\.|atz|ätze)|S(?:\.|atz|ätze)|Nr(?:n)?\.|Nummer|lit\.|Buchst(?:\.|abe)|Halbs(?:\.|atz)"
    r"|HS\.?|Alt(?:\.|ernative)|Var\.)"
)
_NUMBERS = r"(?:\d{1,4}[a-z]?(?![\w])|[a-z]{1,2}(?=\)|\s|,)\)?|[IVX]{1,4}(?!\w))"
_JOIN = r"(?:,|und|bis|sowie|oder|u\.|[-\u2013/]|f{1,2}\.?|i\.?[^\S\n]?V\.?[^\S\n]?m\.)"
# Each piece is atomic and the row of pieces possessive: a long list without a law at its end is given up at once,
# where backtracking over its parts would take hours.
_STATUTE = re.compile(
    rf"(?<!\w)(?:§{{1,2}}|Art(?:\.|ikel)){_S}\d{{1,4}}[a-z]?(?!\w)"
    rf"(?>{_S}(?>{_UNIT}{_S}{_NUMBERS}|{_JOIN}(?={_S}(?:{_UNIT}|\d|§|{_LAW}))|{_NUMBERS}|§{{1,2}})){{0,40}}+"
    rf"{_SP}(?:(?:des|der){_SP})?(?P<law>{_LAW})(?!\w)"
)
_SPELLINGS = (
    (re.compile(r"\bArtikel\b"), "Art."),
    (re.compile(r"\bAbs(?:atz|ätze)\b"), "Abs."),
    (re.compile(r"\bS(?:atz|ätze)\b"), "S."),
    (re.compile(r"\b(?:Nummer|Nrn\.)"), "Nr."),
    (re.compile(r"\bBuchst(?:\.|abe\b)"), "lit."),
    (re.compile(r"§(?=\d)"), "§ "),
    (re.compile(r"(?<=\.)(?=\d)"), " "),
    (re.compile(r"\s(?:des|der)\s"), " "),
)


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier at `text[start:end]`."""

    kind: str
    raw: str
    canonical: str
    start: int
    end: int


def extract(text: str) -> list[Identifier]:
    """Return every identifier of a stored text, in order; of overlapping ones the first kind of the list wins."""
    found: list[Identifier] = []
    taken = bytearray(len(text))
    for kind, pattern, group, canonical in _KINDS:
        for match in pattern.finditer(text):
            start, end = match.span(group)
            if any(taken[start:end]):
                continue
            taken[start:end] = b"\x01" * (end - start)
            found.append(Identifier(kind, text[start:end], canonical(match), start, end))
    return sorted(found, key=lambda identifier: identifier.start)


def within(found: Iterable[Identifier], *, max_chars: int) -> tuple[list[Identifier], int]:
    """Return one identifier a canonical form, first mention first, and how many were too long (in UTF-8 bytes)."""
    kept: dict[tuple[str, str], Identifier] = {}
    dropped = 0
    for identifier in found:
        if max(len(identifier.raw.encode()), len(identifier.canonical.encode())) > max_chars:
            dropped += 1
            continue
        kept.setdefault((identifier.kind, identifier.canonical), identifier)
    return list(kept.values()), dropped


def _file_number(match: re.Match[str]) -> str:
    part = match.groupdict()
    head = [piece for piece in (part["place"], part["chamber"], part["sign"]) if piece]
    inner = re.search(r"\([^)]*\)", match.group(0)[: match.start("number") - match.start()])
    words = [*head, *([inner.group(0)] if inner else []), f"{part['number']}/{part['year'][-2:]}", part["suffix"] or ""]
    return single_line(" ".join(words))


def _register(match: re.Match[str]) -> str:
    return " ".join(piece for piece in (match["register"], match["number"], match["letter"]) if piece)


def _eu(match: re.Match[str]) -> str:
    return single_line(f"{match['court']}-{match['number']}/{match['year']}{match['suffix'] or ''}")


def _statute(match: re.Match[str]) -> str:
    line = single_line(match.group(0))
    for pattern, spelling in _SPELLINGS:
        line = pattern.sub(spelling, line)
    return single_line(line)


def _upper(match: re.Match[str]) -> str:
    return match.group(0).upper()


def _plain(match: re.Match[str]) -> str:
    return single_line(match.group(0))


def _value(match: re.Match[str]) -> str:
    return single_line(match["value"]).rstrip(".-/")


_Canonical = Callable[[re.Match[str]], str]
_KINDS: Sequence[tuple[str, re.Pattern[str], str | int, _Canonical]] = (
    ("ecli", _ECLI, 0, _upper),
    ("statute", _STATUTE, 0, _statute),
    ("eu_case", _EU, 0, _eu),
    ("file_number", _BAVARIAN, 0, _plain),
    ("file_number", _FILE_NUMBER, 0, _file_number),
    ("register", _REGISTER, 0, _register),
    ("deed", _DEED, 0, lambda match: f"UR {match['number']}"),
    *((kind, pattern, "value", _value) for kind, pattern in _LABELLED),
)
