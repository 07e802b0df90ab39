"""The names of laws: abbreviations ("BGB", "SGB V", "BauO NRW", "UWG 2004"), full names, and acts of the Union.

An abbreviation is told by its shape, a capital and at least one more: there are some two thousand in use, and new ones
every month. What has this shape and is no law is listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from shared.ingest.identifiers.acts import ACT, act
from shared.ingest.identifiers.found import SPACE, Identifier
from shared.ingest.identifiers.reporters import JOURNALS
from shared.text.normalise import single_line

_CAPITAL, _LETTER = "[A-ZÄÖÜ]", "[A-Za-zÄÖÜäöüß]"
_LAND = r"(?:NRW|NW|BW|Bln|Bbg|HE|MV|M-V|Nds|RP|RhPf|SL|SN|SH|LSA|Hmb|HmbG|Bay)"
ABBREVIATION: Final = (
    r"(?:SGB(?:[^\S\n]|-)?(?:[IVX]{1,4}|\d{1,2})(?!\w)"
    r"|(?:Rom|Brüssel)[^\S\n-]?-?[IV]{1,3}[ab]?[^\S\n-]?-?VO(?!\w)"
    rf"|(?:\d{{1,2}}\.[^\S\n]?(?=B(?:ImSch|erBi)))?"
    rf"{_CAPITAL}(?={_LETTER}{{0,18}}{_CAPITAL}){_LETTER}{{1,19}}"
    rf"(?:-{_CAPITAL}{_LETTER}{{0,11}}){{0,2}}(?:/[A-Z](?!\w))?(?!\w|\.\w))"
    rf"(?:[^\S\n](?:{_LAND}|(?:18|19|20)\d{{2}})(?![\w/]))?"
)
_ABBREVIATION = re.compile(ABBREVIATION)
_OF = rf"(?:(?:des|der|of{SPACE}the|of){SPACE})?"
_OF_LAW = re.compile(_OF)
# Followed by a number of a case it is a register sign: "VI ZR 194/17".
_NO_CASE = re.compile(r"(?![^\S\n]{0,2}(?:\([A-Za-z]{1,5}\)[^\S\n]?)?\d{1,6}(?:/|\.\d\d(?!\d)))")
_MOST_CHARS = 36
_LAST = re.compile(rf"(?<![\w/.-])(?P<law>{ABBREVIATION})\Z")
_OTHERS = """
RL VO RiLi DM TDM TEUR Mio GmbH mbH KGaA AG KG OHG SE UG GbR EUR USD CHF GBP MwSt USt RdNr RdNrn RNr RN PDF DIN ISO
NRW BRD DDR EDV IT HRB HRA BGH BFH BAG BSG BVerwG BVerfG BPatG EuGH EuG EGMR RG RFH OLG LG LAG LSG OVG VGH VG SG FG
BayObLG BayVGH KammerG BGHZ BGHSt BVerfGE BVerwGE BAGE BSGE BFHE RGZ BayObLGZ BStBl BGBl RGBl SozR AGB ZR ZB StR AZR
ABR BvR SPA NDA LOI MoU
"""
_NO_LAWS = frozenset(_OTHERS.split()) | frozenset(JOURNALS)
_ROMAN = re.compile(r"[IVX]+")
_LONG_CAPITALS = 5
_KNOWN_CAPITALS = frozenset({"DSGVO", "EGBGB", "EGGVG", "EGZPO", "EGHGB", "EUGVVO", "EGINSO"})

_BOOKS = "Erste Zweite Dritte Vierte Fünfte Sechste Siebte Achte Neunte Zehnte Elfte Zwölfte Dreizehnte Vierzehnte"
_NUMERALS = "I II III IV V VI VII VIII IX X XI XII XIII XIV"
_BOOK_OF = dict(zip(_BOOKS.split(), _NUMERALS.split(), strict=True))
_SOCIAL = re.compile(
    rf"(?:(?P<book>{'|'.join(_BOOK_OF)})[nsrm]?{SPACE}Buch(?:e?s)?{SPACE}(?:des{SPACE})?Sozialgesetzbuch(?:e?s)?"
    rf"|Sozialgesetzbuch(?:e?s)?{SPACE}(?P<numeral>[IVX]{{1,4}}))(?!\w)"
)
_FULL = re.compile(
    rf"(?P<stem>(?:Bürgerliche[nsr]?{SPACE}Gesetzbuch|(?:{_CAPITAL}[a-zäöüß]{{1,40}}-){{0,3}}{_CAPITAL}[a-zäöüß]{{2,60}}"
    rf"(?:gesetz(?:buch)?|ordnung)|Grundgesetz|Datenschutz-Grundverordnung))(?:e?s)?(?![\w-])"
    r"(?:[^\S\n](?:18|19|20)\d{2}(?!\w))?"
)
_TITLED = re.compile(
    rf"Gesetz(?:es)?{SPACE}(?:über|zur|zum|gegen|betreffend){SPACE}[^()\n,;.\u00a7]{{3,120}}?"
    rf"(?:{SPACE}\((?P<short>{ABBREVIATION})\)|(?=[^\S\n]?[(,;.\n]|[^\S\n]vom[^\S\n]|$))"
)
_IN_BRACKETS = re.compile(rf"[^\S\n]?(?:\((?P<round>{ABBREVIATION})(?=[),;])|--(?P<dashed>{ABBREVIATION})--)")
_OURS = frozenset({"hausordnung", "tagesordnung", "geschäftsordnung", "rangordnung", "benutzungsordnung"})
_SHORT = {
    "bürgerlichen gesetzbuch": "BGB",
    "bürgerliches gesetzbuch": "BGB",
    "handelsgesetzbuch": "HGB",
    "grundgesetz": "GG",
    "strafgesetzbuch": "StGB",
    "strafprozessordnung": "StPO",
    "zivilprozessordnung": "ZPO",
    "sozialgerichtsgesetz": "SGG",
    "finanzgerichtsordnung": "FGO",
    "verwaltungsgerichtsordnung": "VwGO",
    "verwaltungsverfahrensgesetz": "VwVfG",
    "arbeitsgerichtsgesetz": "ArbGG",
    "gerichtsverfassungsgesetz": "GVG",
    "gerichtskostengesetz": "GKG",
    "insolvenzordnung": "InsO",
    "abgabenordnung": "AO",
    "aktiengesetz": "AktG",
    "kündigungsschutzgesetz": "KSchG",
    "betriebsverfassungsgesetz": "BetrVG",
    "urheberrechtsgesetz": "UrhG",
    "markengesetz": "MarkenG",
    "patentgesetz": "PatG",
    "einkommensteuergesetz": "EStG",
    "umsatzsteuergesetz": "UStG",
    "körperschaftsteuergesetz": "KStG",
    "wohnungseigentumsgesetz": "WEG",
    "versicherungsvertragsgesetz": "VVG",
    "baugesetzbuch": "BauGB",
    "bundesdatenschutzgesetz": "BDSG",
    "datenschutz-grundverordnung": "DSGVO",
    "rechtsanwaltsvergütungsgesetz": "RVG",
    "bundesausbildungsförderungsgesetz": "BAföG",
}
_SPELLINGS = {"DS-GVO": "DSGVO", "GDPR": "DSGVO", "TFEU": "AEUV", "TEU": "EUV", "ECHR": "EMRK", "EU-DSGVO": "DSGVO"}


@dataclass(frozen=True, slots=True)
class Law:
    """The name of a law that ends at `end`, in its one form; `act` is the act of the Union that it is."""

    name: str
    end: int
    act: Identifier | None = None


def law_at(text: str, at: int) -> Law | None:
    """Return the law whose name, with "des" or "der", begins at `at`."""
    begin = _OF_LAW.match(text, at)
    after = begin.end() if begin else at
    union = ACT.match(text, after)
    if union is not None:
        found = act(union)
        return Law(found.canonical, union.end(), found)
    return _full_name(text, after) or _abbreviated(text, after)


def law_before(text: str, end: int, *, not_before: int) -> tuple[int, str] | None:
    """Return where a law's abbreviation right before `end` begins, and its form: "HGB § 74"."""
    stop = end
    if stop > not_before and text[stop - 1] in " \u00a0":
        stop -= 1
    begin = max(not_before, stop - _MOST_CHARS)
    found = _LAST.search(text, begin, stop)
    if found is None or not is_law(found["law"]):
        return None
    return found.start("law"), canonical_law(found["law"])


def is_law(abbreviation: str) -> bool:
    """Tell whether what has the shape of an abbreviation may be a law's."""
    word = abbreviation.split(maxsplit=1)[0]
    return not {word, word.partition("-")[0]} & _NO_LAWS and not _ROMAN.fullmatch(word)


def is_heading(abbreviation: str) -> bool:
    """Tell whether this is rather a word in capitals: "§ 3 HAFTUNG" on a line of its own."""
    is_long = len(abbreviation) >= _LONG_CAPITALS and abbreviation.isupper() and abbreviation.isalpha()
    return is_long and abbreviation not in _KNOWN_CAPITALS


def canonical_law(written: str) -> str:
    """Return the one form of an abbreviation."""
    line = single_line(written)
    line = re.sub(r"^SGB[ -]?(?=[IVX\d])", "SGB ", line)
    return _SPELLINGS.get(line, line)


def _abbreviated(text: str, at: int) -> Law | None:
    found = _ABBREVIATION.match(text, at)
    if found is None or not is_law(found.group(0)) or not _NO_CASE.match(text, found.end()):
        return None
    return Law(canonical_law(found.group(0)), found.end())


def _full_name(text: str, at: int) -> Law | None:
    social = _SOCIAL.match(text, at)
    if social is not None:
        return Law(f"SGB {social['numeral'] or _BOOK_OF[social['book']]}", social.end())
    titled = _TITLED.match(text, at)
    if titled is not None:
        short = titled["short"]
        return Law(canonical_law(short) if short else single_line(titled.group(0)), titled.end())
    full = _FULL.match(text, at)
    if full is None or full["stem"].lower() in _OURS:
        return None
    brackets = _IN_BRACKETS.match(text, full.end())
    short = brackets and (brackets["round"] or brackets["dashed"])
    known = _SHORT.get(single_line(full["stem"]).lower())
    return Law(known or (canonical_law(short) if short else single_line(full["stem"])), full.end())
