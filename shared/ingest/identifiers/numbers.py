"""Numbers of registers, banks, tax offices, patents, notaries and the parties themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.ingest.identifiers.found import GAP, SPACE, Identifier
from shared.text.normalise import single_line

_TOWN = r"[A-ZÄÖÜ][\wäöüß-]{1,24}(?:[^\S\n](?:a\.[^\S\n]?M\.|am[^\S\n]Main|\(Oder\)|\([A-ZÄÖÜ][a-zäöü]{2,20}\)))?"
_COURT = rf"(?:Amtsgerichts?|AG|Registergerichts?){SPACE}{_TOWN}"
_REGISTER = re.compile(
    rf"(?<!\w)(?P<register>HRA|HRB|GnR|VR|PR|GsR|GüR|EGR){GAP}(?:Nr\.?|Nummer)?:?{GAP}(?P<number>\d{{1,7}})"
    rf"(?:[^\S\n](?P<letter>B|FL|KI|PI|HL|NM|SO))?(?!\w|[.,/]\d)"
    rf"(?P<after>,?{SPACE}(?:(?:des|beim){SPACE})?{_COURT}|{SPACE}\({_COURT}\))?"
)
_COURT_BEFORE = re.compile(
    rf"(?<!\w)(?:Amtsgerichts?|AG|Registergerichts?|Handelsregister)[^\S\n]{{1,2}}(?:des[^\S\n]Amtsgerichts[^\S\n])?(?P<town>{_TOWN})"
    r"(?:,|:|[^\S\n]unter|[^\S\n]\()?[^\S\n]{0,2}(?:(?:der|Nr\.|unter|Nummer|Handelsregister|Registernummer:?)[^\S\n]{0,2}){0,3}\Z"
)
_TOWN_AFTER = re.compile(rf"(?:Amtsgerichts?|AG|Registergerichts?){SPACE}(?P<town>{_TOWN})")
_MOST_BEFORE = 90
_DEED = re.compile(
    rf"(?<!\w)(?:UR(?:-?Nr\.?)?|URNr\.?|UVZ(?:-?Nr\.?)?|Urkundenrolle{GAP}(?:Nr\.)?|UVZ-?Nr\.?){GAP}"
    r"(?P<number>[A-Z]?\d{1,6}/\d{2,4}(?:[^\S\n]?[A-Z]{1,2}(?!\w))?)(?![\w/])"
)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[^\S\n]?[A-Z0-9]{4}){2,7}(?:[^\S\n]?[A-Z0-9]{1,3})?(?!\w)")
_IBAN_CHARS = {"DE": 22, "AT": 20, "CH": 21, "LI": 21, "LU": 20, "FR": 27, "NL": 18, "BE": 16, "GB": 22, "IT": 27,
               "ES": 24, "PL": 28, "DK": 18, "CZ": 24, "IE": 22, "SE": 24}  # fmt: skip
_GERMAN_VAT = re.compile(r"(?<!\w)DE(?P<digits>(?:[^\S\n]?\d){9})(?![\w])")
_VAT = re.compile(
    rf"(?<!\w)(?:USt\.?-?{GAP}Id(?:ent)?\.?-?(?:{GAP}Nr\.?|{GAP}Nummer)?|Umsatzsteuer-Identifikationsnummer|VAT(?:{SPACE}(?:Reg\.?|ID))?"
    rf"(?:{SPACE}(?:No\.?|number))?){GAP}:?{GAP}(?P<value>(?:AT{GAP}?U|[A-Z]{{2}})[^\S\n]?[\dA-Z]{{2,4}}(?:[^\S\n]?\d{{2,10}}){{1,4}})(?!\w)"
)
_TAX = re.compile(
    rf"(?<!\w)(?:Steuernummer|Steuer-?Nr\.|St\.-?Nr\.|StNr\.?){GAP}:?{GAP}(?P<value>\d{{2,3}}/\d{{3,4}}/\d{{4,5}})(?![\w/])"
)
_PATENT = re.compile(
    r"(?<![\w/])(?:(?P<ep>EP)[^\S\n]?(?P<epn>\d(?:[^\S\n.]?\d{3}){2})|(?P<wo>WO)[^\S\n]?(?P<won>\d{2,4}/\d{5,6})"
    r"|(?P<de>DE)[^\S\n](?P<den>\d{2}[^\S\n](?:19|20)\d{2}[^\S\n]\d{3}[^\S\n]\d{3}(?:\.\d)?|(?:[34]\d|19\d)[^\S\n]\d{2,3}[^\S\n]\d{3})"
    r"|(?P<us>US)[^\S\n](?P<usn>\d{1,2},\d{3},\d{3}))(?:[^\S\n]?(?P<step>[ABCTU]\d))?(?![\w/]|[.,]\d)"
)
# Some write initials behind their number: "123/24 MU".
_VALUE = r"(?P<value>[\w./#-]*\d[\w./#-]*(?:[^\S\n][A-ZÄÖÜ]{2,3}(?!\w)){0,2})"
_PLAIN_VALUE = r"(?P<value>[\w./#-]*\d[\w./#-]*)"
_NR = rf"(?:nummer|{GAP}-?(?:Nr\.?|Nummer|No\.?|number|\#))"
_LABELS = (
    ("invoice", rf"\w*Rechnungs?-?{GAP}(?:nummer|Nr\.?)", _PLAIN_VALUE),
    ("invoice", rf"\w*rechnung{GAP}(?:\([^)\n]{{1,20}}\){GAP})?Nr\.", _PLAIN_VALUE),
    ("invoice", rf"Invoice{GAP}(?:No\.?|number|\#)", _PLAIN_VALUE),
    ("contract", rf"\w*Vertrags?-?{_NR}", _PLAIN_VALUE),
    ("contract", rf"(?:Contract|Agreement|Lease){GAP}(?:No\.?|number|\#)", _PLAIN_VALUE),
    ("order", rf"(?:Bestell|Auftrags|Order|Purchase{SPACE}Order|PO){GAP}-?{_NR}", _PLAIN_VALUE),
    ("customer", rf"(?:Kunden|Mandanten|Mandats|Customer|Client){GAP}-?{_NR}", _PLAIN_VALUE),
    ("policy", rf"(?:Versicherungsschein|Policen|Policy|Schaden|Claim){GAP}-?{_NR}", _PLAIN_VALUE),
    ("reference", rf"(?:Unser(?:e)?|Ihr(?:e)?|Mein|Our|Your){GAP}(?:Zeichen|Akte|Az\.?|ref(?:erence)?\.?)", _VALUE),
    ("reference", r"(?:Az\.|Aktenzeichen|Geschäftszeichen|Geschäftsnummer|Gz\.|GZ:|Akte:|Our[^\S\n]File)", _VALUE),
    ("case", rf"(?:(?:ICC|DIS|LCIA|SCC|ICSID){GAP})?(?:Case|Claim){GAP}No\.?", _PLAIN_VALUE),
    ("application", rf"(?:Beschwerde{GAP}Nr\.|Application{GAP}[Nn]o\.?)", r"(?P<value>\d{3,5}/\d{2})(?!\w)"),
)  # fmt: skip
_MIN_VALUE_CHARS = 3
_LABELLED = tuple(
    (kind, re.compile(rf"(?<!\w){label}{GAP}:?{GAP}{value}", re.IGNORECASE if value is _PLAIN_VALUE else 0))
    for kind, label, value in _LABELS
)


def ibans(text: str) -> Iterator[Identifier]:
    """Yield account numbers whose check digits are right (ISO 13616), without blanks."""
    for match in _IBAN.finditer(text):
        plain = re.sub(r"\s", "", match.group(0))
        wanted = _IBAN_CHARS.get(plain[:2])
        end = match.end()
        if wanted and len(plain) > wanted:
            # A word in capitals or a number right behind it.
            end, plain = _cut(match.group(0), match.start(), wanted)
        if (wanted in {None, len(plain)}) and _is_iban(plain):
            yield Identifier("iban", text[match.start() : end], plain, match.start(), end)


def _cut(raw: str, start: int, chars: int) -> tuple[int, str]:
    kept = ""
    for at, char in enumerate(raw):
        if len(kept) == chars:
            return start + at - (raw[at - 1].isspace()), kept
        kept += "" if char.isspace() else char
    return start + len(raw), kept


def _is_iban(plain: str) -> bool:
    digits = "".join(str(int(char, 36)) for char in plain[4:] + plain[:4])
    return int(digits) % 97 == 1


def registers(text: str) -> Iterator[Identifier]:
    """Yield numbers of companies, associations and partnerships, with the register court where it is named."""
    for match in _REGISTER.finditer(text):
        start, end = match.start(), match.end("letter") if match["letter"] else match.end("number")
        number = " ".join(piece for piece in (match["register"], match["number"], match["letter"]) if piece)
        plain = Identifier("register", text[start:end], number, start, end)
        before = _COURT_BEFORE.search(text, max(0, start - _MOST_BEFORE), start)
        town = before["town"] if before else _town(match["after"])
        if town is None:
            yield plain
            continue
        begin, stop = (before.start(), end) if before else (start, match.end())
        yield Identifier("register", text[begin:stop], single_line(f"AG {town} {number}"), begin, stop, (plain,))


def _town(after: str | None) -> str | None:
    found = _TOWN_AFTER.search(after) if after else None
    return found["town"] if found else None


def tax_numbers(text: str) -> Iterator[Identifier]:
    """Yield VAT numbers (a German one by its check digit, ISO 7064 MOD 11,10) and tax numbers that are called so."""
    for match in _GERMAN_VAT.finditer(text):
        digits = re.sub(r"\s", "", match["digits"])
        if _is_german_vat(digits):
            yield Identifier("vat", match.group(0), f"DE{digits}", match.start(), match.end())
    for kind, pattern in (("vat", _VAT), ("tax", _TAX)):
        for match in pattern.finditer(text):
            start, end = match.span("value")
            yield Identifier(kind, match["value"], re.sub(r"\s", "", match["value"]), start, end)


def _is_german_vat(digits: str) -> bool:
    product = 10
    for digit in digits[:8]:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(digits[8])


def patents(text: str) -> Iterator[Identifier]:
    """Yield numbers of patents and applications: "EP 1234567 B1", "WO 2019/123456 A1"."""
    for match in _PATENT.finditer(text):
        office = match["ep"] or match["wo"] or match["de"] or match["us"]
        number = match["epn"] or match["won"] or match["den"] or match["usn"]
        digits = re.sub(r"[\s.,](?!\d$)", "", number)
        canonical = " ".join(piece for piece in (office, digits, match["step"]) if piece)
        yield Identifier("patent", match.group(0), canonical, match.start(), match.end())


def deeds(text: str) -> Iterator[Identifier]:
    """Yield numbers of notarial deeds."""
    for match in _DEED.finditer(text):
        yield Identifier("deed", match.group(0), f"UR {match['number']}", match.start(), match.end())


def labelled(text: str) -> Iterator[Identifier]:
    """Yield what a label calls an invoice, a contract, somebody's reference."""
    for kind, pattern in _LABELLED:
        for match in pattern.finditer(text):
            start = match.start("value")
            value = match["value"].rstrip(".-/")
            # "Order No. 1": a number as short as this is in every text.
            if len(value) >= _MIN_VALUE_CHARS:
                yield Identifier(kind, value, single_line(value), start, start + len(value))
