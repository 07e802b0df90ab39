"""Where decisions are printed: official collections by volume, journals by year ("BGHZ 148, 1", "NJW 2015, 1827")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shared.ingest.identifiers.found import SPACE, Identifier
from shared.text.normalise import single_line

_COLLECTED = """
BGHZ BGHSt BVerfGE BVerfGK BVerwGE BAGE BSGE BFHE BPatGE RGZ RGSt RFHE BayObLGZ BayObLGSt OLGZ OVGE ESVGH VRS BDHE
RAGE
"""
_MONTHLY = """
NJW NJW-RR NZG NZA NZA-RR NZM NZI NZBau NStZ NStZ-RR NVwZ NVwZ-RR NZS NZV NZKart NJOZ GRUR GRUR-RR GRUR-RS GRUR-Prax
GRURInt WRP WM ZIP DB BB MDR FamRZ FGPrax BtPrax Rpfleger RNotZ DNotZ MittBayNot ZNotP NotBZ VersR DStR DStRE DStZ
EFG HFR UR GmbHR AG ZMR WuM DWW GE BauR ZfBR IBR ZfIR DÖV DVBl BayVBl NWVBl VBlBW ThürVBl SächsVBl LKV JZ JuS JR JA
JurBüro JW StV wistra StraFo ZInsO DZWIR KTS EuZW EuGRZ EuR EWiR ZUM ZUM-RD AfP MMR CR ITRB ZD BeckRS DAR zfs SGb
ZEV ErbR BKR ZBB AnwBl RdA AuR ArbRB FamRB FuR ZVI NuR ZUR UPR BFH/NV OLGR OLG-NL OLGReport HRR LM Recht SeuffArch
FPR
"""
COLLECTIONS: Final = tuple(_COLLECTED.split())
JOURNALS: Final = tuple(_MONTHLY.split())
_COLLECTION = "|".join(sorted(COLLECTIONS, key=len, reverse=True))
_JOURNAL = "|".join(re.escape(name) for name in sorted(JOURNALS, key=len, reverse=True))
_YEAR = r"(?:18|19|20)\d{2}"
_PAGES = rf",{SPACE}\d{{1,5}}(?![\w])(?:,[^\S\n]{{0,2}}\d{{1,5}}(?![\w.\u00a7/-])(?![^\S\n]?[A-Z(])){{0,2}}"
_PRINTED = re.compile(
    rf"(?<![\w/-])(?:(?:{_COLLECTION}){SPACE}(?:\d{{1,3}}|{_YEAR})"
    rf"|BStBl\.?{SPACE}(?:(?:III|II|I){SPACE})?{_YEAR}"
    rf"|(?:{_JOURNAL}|GRUR{SPACE}Int\.?|K&R|r\+s){SPACE}{_YEAR}){_PAGES}"
)
_FOREIGN = re.compile(
    r"(?<![\w/.-])(?:\[(?:19|20)\d{2}\][^\S\n](?:UKSC|UKHL|UKPC|EWCA[^\S\n](?:Civ|Crim)|EWHC)[^\S\n]\d{1,5}"
    r"(?:[^\S\n]\((?:Ch|Comm|QB|KB|TCC|Pat|Fam|Admin|IPEC)\))?"
    r"|\d{1,3}[^\S\n](?:U\.S\.|S\.[^\S\n]?Ct\.|F\.(?:2d|3d|4th)|F\.[^\S\n]?Supp\.(?:[^\S\n]?[23]d)?)[^\S\n]\d{1,4})(?![\w])"
)


# "Knispel, SGb 2014, 374": an article by its author, no decision.
_AUTHOR = re.compile(r"(?<![\w.-])[A-ZÄÖÜ][a-zäöüß]{2,20}(?:[/-][A-ZÄÖÜ][a-zäöüß]{2,20}){0,3},[^\S\n]\Z")
_BEFORE_AUTHORS = ("vgl.", "(", ";", "siehe", "auch", "dazu", " so", "etwa", "z.B.", "statt vieler", "\n")
_MOST_BEFORE = 80


def printed(text: str) -> Iterator[Identifier]:
    """Yield every place in a collection or journal, with its pages as written, and neutral citations.

    The kind is "article" behind an author's name, else "reporter".
    """
    for pattern in (_PRINTED, _FOREIGN):
        for match in pattern.finditer(text):
            raw = match.group(0)
            author = _AUTHOR.search(text, max(0, match.start() - _MOST_BEFORE), match.start())
            kind = (
                "article"
                if author
                and text[max(0, author.start() - _MOST_BEFORE) : author.start()].rstrip(" ").endswith(_BEFORE_AUTHORS)
                else "reporter"
            )
            yield Identifier(kind, raw, _first_page(raw), match.start(), match.end())


def _first_page(raw: str) -> str:
    """Return the citation by its first page: the further ones are where in it to look."""
    line = re.sub(r"^BStBl\.", "BStBl", single_line(raw))
    head, comma, pages = line.partition(",")
    return f"{head}, {pages.split(',')[0].strip()}" if comma else line
