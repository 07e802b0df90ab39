"""Names of parties: where one begins and ends, its legal form, and the form in which all spellings are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from shared.ingest.metadata.roles import ROLE
from shared.text.normalise import single_line

_S = r"[^\S\n]{1,2}"
_WRITTEN = {
    "GmbH & Co. KGaA": rf"GmbH{_S}?&{_S}?Co\.?{_S}?KGaA",
    "GmbH & Co. KG": rf"(?:GmbH|mbH){_S}?(?:&|und){_S}?Co(?:mp)?\.?{_S}?(?:KG|Kommanditgesellschaft)",
    "GmbH & Co. OHG": rf"GmbH{_S}?&{_S}?Co\.?{_S}?OHG",
    "AG & Co. KG": rf"AG{_S}?&{_S}?Co\.?{_S}?KG",
    "SE & Co. KGaA": rf"SE{_S}?&{_S}?Co\.?{_S}?KGaA",
    "UG (haftungsbeschränkt)": rf"(?:UG|Unternehmergesellschaft){_S}?\(haftungsbeschränkt\)|UG",
    "gGmbH": r"gGmbH|gemeinnützige GmbH",
    "GmbH": rf"GmbH|Gesellschaft{_S}mit{_S}beschränkter{_S}Haftung|G\.m\.b\.H\.|mbH",
    "KGaA": rf"KGaA|Kommanditgesellschaft{_S}auf{_S}Aktien",
    "AG": r"AG|Aktiengesellschaft",
    "SE": r"SE",
    "KG": r"KG|Kommanditgesellschaft",
    "OHG": r"OHG|oHG|offene Handelsgesellschaft",
    "GbR": r"eGbR|GbR",
    "e.V.": r"e\.[^\S\n]?V\.|eingetragener Verein",
    "eG": r"eG|e\.[^\S\n]?G\.",
    "e.K.": r"e\.[^\S\n]?K(?:fm|fr)?\.",
    "PartG mbB": rf"PartG{_S}?mbB|PartGmbB|Partnerschaft{_S}mbB",
    "LLP": r"LLP|L\.L\.P\.",
    "Pty Ltd": rf"Pty\.?{_S}?(?:Ltd\.?|Limited)",
    "Co., Ltd": rf"Co\.,{_S}?Ltd\.?",
    "Ltd": r"Ltd\.?|Limited|LIMITED|LTD\.?",
    "LLC": r"LLC|L\.L\.C\.",
    "Inc": r"Inc\.?|Incorporated|INC\.?",
    "Corp": r"Corp\.?|Corporation|CORP\.?",
    "plc": r"plc|PLC|p\.l\.c\.",
    "S.A.": r"S\.A\.(?:S\.)?|S\.p\.A\.|SpA|SAS",
    "S.à r.l.": r"S\.[^\S\n]?à[^\S\n]?r\.[^\S\n]?l\.|S\.?à[^\S\n]?r\.?l\.?|Sàrl|SARL|S\.a\.r\.l\.",
    "B.V.": r"B\.V\.|BV",
    "N.V.": r"N\.V\.|NV",
    "S.r.l.": r"S\.r\.l\.",
    "Sp. z o.o.": rf"Sp\.{_S}?z{_S}?o\.?{_S}?o\.?",
}
_FORM = "|".join(_WRITTEN.values())
# What may stand in a company's name: words with a capital or a digit, and small ones between them.
_WORD = r"(?:[A-ZÄÖÜ0-9][\w.&+'\u2019/-]{0,40}|&|\+|[a-z]{1,2}\.)"
_LINK = r"(?:und|für|der|die|des|am|an|im|in|zur|zum|von|of|the|and|for|de|du|la|i\.)"
_COMPANY = re.compile(
    rf"[„\"»“]?(?P<name>{_WORD}(?:{_S}(?:{_WORD}|{_LINK})){{0,9}}?(?:-|{_S}|,{_S}(?=(?:Inc|Ltd|LLC|Corp|L\.L\.C)))"
    rf"(?P<form>{_FORM})(?![\w&])(?!{_S}&{_S}Co))"
)
_PERSON = re.compile(
    r"(?:(?:Herrn?|Frau|Mr\.?|Mrs\.?|Ms\.?)[^\S\n]{1,2})?(?P<name>(?:(?:Dr|Prof|Dipl\.-Ing|Ing)\.[^\S\n]{1,2}(?:h\.[^\S\n]?c\.[^\S\n]{1,2})?){0,3}"
    r"[A-ZÄÖÜ][a-zäöüß]{1,20}(?:-[A-ZÄÖÜ][a-zäöüß]{1,20})?(?:[^\S\n]{1,2}(?:[A-Z]\.|von|van|de|zu|der|vom|[A-ZÄÖÜ][a-zäöüß]{1,25}"
    r"(?:-[A-ZÄÖÜ][a-zäöüß]{1,25})?)){1,4})(?=\s*(?:,|;|\(|\n|$|[-\u2013](?=\s)|geb\.|geboren))"
)
_PUBLIC = re.compile(
    r"(?P<name>(?:Bundesrepublik|Land|Freistaat|Freie und Hansestadt|Freie Hansestadt|Stadt|Gemeinde|Landkreis|Kreis"
    r"|Universität|Bundesland|Landeshauptstadt)[^\S\n][A-ZÄÖÜ][\wäöüß-]{2,30}(?:[^\S\n][A-ZÄÖÜ(][\wäöüß()-]{2,30}){0,2})(?=\s*(?:,|;|\(|\n|$))"
)
_LEAD = re.compile(
    r"(?:[\s\-\u2013*•#>|).,;:\"“”]|\(?\d{1,2}[.)]|\([a-z]\)|[a-z]\)|(?:der|die|das|des|dem|den|the|Firma|Fa\.|und|and|zwischen|between|by|of"
    r"|gegen|Von|von|Die|Der|Zwischen|Between|BETWEEN|AND|Und)(?=\s))*"
)
_NAMES_OF_THINGS = re.compile(
    r"(?i)\b(?:vertrag|urteil|beschluss|klage|antrag|gericht|kammer|senat|straße|strasse|allee|platz|weg|rechtsanw\w*|anlage"
    r"|agreement|contract|court|street|road|geschäftsführer\w*|vertreten\w*|sitz|parteien|vorbemerkung|präambel|datum)\b"
)
# The end of a sentence, or a role beside a name ("the Agent and X AG"): more than one thing.
_TWO_THINGS = re.compile(rf"\w{{4,}}\.\s|(?:^|\s)(?:{ROLE})\s(?:and|und)\s")
_MAX_NAME_CHARS = 120


@dataclass(frozen=True, slots=True)
class Name:
    """A name at `[start, end)` of a text."""

    written: str
    start: int
    end: int


def company_in(text: str, start: int, end: int) -> Name | None:
    """Return the first company with a legal form in a part of a text."""
    found = _COMPANY.search(text, start, end)
    return _named(text, found) if found else None


def name_at(text: str, start: int, end: int) -> Name | None:
    """Return the name with which a part of a text begins: a company, a public body or a person."""
    lead = _LEAD.match(text, start, end)
    at = lead.end() if lead else start
    company = _COMPANY.match(text, at, end)
    if company is not None:
        return _named(text, company)
    public = _PUBLIC.match(text, at, end)
    if public is not None:
        return _named(text, public)
    person = _PERSON.match(text, at, end)
    return _named(text, person) if person else None


def company_name(written: str) -> str:
    """Return a name on one line with its legal form in the usual spelling: "X Gesellschaft mit ..." is "X GmbH"."""
    line = single_line(written).strip("„“”\"»«' ,;")
    for form, pattern in _FORMS:
        found = pattern.search(line)
        if found is not None:
            return f"{line[: found.start()].rstrip(' ,')} {form}"
    return line


def name_key(written: str) -> str:
    """Return what is the same for all spellings of a name: case, spaces and the spelling of the legal form are not."""
    plain = re.sub(r"^(?:firma|fa\.|herrn?|frau|mr\.?|mrs\.?|ms\.?)\s+", "", company_name(written), flags=re.IGNORECASE)
    return re.sub(r"[„“”\"»«'\u2019]", "", plain).casefold()


_FORMS: Final = tuple((form, re.compile(rf"(?<=\s)(?:{written})$")) for form, written in _WRITTEN.items())


def _named(text: str, found: re.Match[str]) -> Name | None:
    start, end = found.span("name")
    name = text[start:end]
    if end - start > _MAX_NAME_CHARS or _NAMES_OF_THINGS.search(name) or _TWO_THINGS.search(name):
        return None
    return Name(name, start, end)
