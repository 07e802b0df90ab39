"""Who a document is between, with their roles: only where it says so at a place that is made for it.

These are a contract's opening ("zwischen der X GmbH ... - nachfolgend "Verkäufer" genannt -"), the list of parties of a
pleading or judgment, labelled lines ("Landlord: X Ltd"), a title "X ./. Y", and the fields of a file that has some. A
name anywhere else is no party, and the sender of a mail is none. Better none than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shared.ingest.facts import FoundParty
from shared.ingest.metadata.party_names import Name, company_in, company_name, name_at, name_key
from shared.ingest.metadata.roles import CLAIMANT, DEFENDANT, LITIGANT, PARTY, ROLE, role_of
from shared.text.converted import ConvertedText
from shared.text.normalise import stored

_HEAD_CHARS = 5000
_MOST_PARTIES = 30
_BLOCK_CHARS = 900
_QUOTE = "[„\"“”»«'\u201a\u2018\u2019]"
_GAP = r"[^\S\n]{0,3}(?:\n[^\S\n]{0,3})?"
# "- nachfolgend „Verkäufer“ genannt -", "(the "Seller")", "(im Folgenden: Vermieter)".
_DEFINED = re.compile(
    rf"(?:[-\u2013\u2014(,]{_GAP})?(?:(?:nachfolgend|nachstehend|im{_GAP}Folgenden|im{_GAP}Weiteren|hereinafter)(?:{_GAP}"
    rf"(?:auch|kurz|gemeinsam|jeweils|einzeln|insgesamt|als|nur|referred{_GAP}to{_GAP}as|called|die|der|den|the|:|,)){{0,4}}{_GAP}{_QUOTE}?"
    rf"(?P<plain>{ROLE}|(?<={_QUOTE})[A-ZÄÖÜ][\w.& -]{{1,30}}?)(?!\w){_QUOTE}?"
    rf"|\((?:(?:die|der|the|as|als){_GAP})?(?P<bare>{ROLE})\)|(?<!\w)als{_GAP}(?P<acting>{ROLE})(?!\w)"
    rf"|\((?:(?:die|der|the|as){_GAP})?{_QUOTE}(?P<quoted>[A-ZÄÖÜ][\w.& -]{{1,30}}){_QUOTE}\))",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(?<!\w)(?:zwischen|between|by and (?:between|among)|BETWEEN|ZWISCHEN|Zwischen|Between)(?!\w)")
# Where the opening ends: what is defined further down is no party.
_BODY = re.compile(
    r"^[^\S\n]*(?:§[^\S\n]?1\b|Präambel|Vorbemerkung|WHEREAS|Recitals|Background|RECITALS|BACKGROUND|Inhalt)",
    re.MULTILINE,
)
# A role on a line of its own: "- Klägerin -", "Beklagte,", "Claimant". It is the name above it that has it.
_MARK = re.compile(
    rf"^[^\S\n]{{0,60}}[-\u2013\u2014(]?[^\S\n]?(?:und[^\S\n])?(?P<role>{ROLE})"
    rf"(?:[^\S\n]zu[^\S\n]\d{{1,2}}[.)]?)?(?:(?:,|[^\S\n]und)[^\S\n](?:{ROLE})){{0,3}}[^\S\n]?[-\u2013\u2014,.;:)]{{0,3}}[^\S\n]{{0,60}}$",
    re.MULTILINE,
)
_LITIGANT = re.compile(rf"(?:{LITIGANT})\Z", re.IGNORECASE)
_COURT_HEAD = re.compile(
    r"(?:^|\n)[^\S\n]*(?:in (?:dem|der|dem einstweiligen)\s|in Sachen|gegen(?:\s|$)|-?\s?and\s?-?\s*\n|BETWEEN"
    r"|v(?:s)?\.?\s*\n|Im Namen des Volkes)",
    re.IGNORECASE,
)
_STARTS = re.compile(
    r"^[^\S\n]*(?:[Ii]n (?:dem|der|Sachen)\b[^\n]{0,80}|(?:[Dd]er|[Dd]ie|[Dd]es|[Dd]em)[^\S\n]*$"
    r"|[-\u2013\s]*(?:gegen|und|and|zwischen|AND|between|BETWEEN|GEGEN|UND|g e g e n)[-\u2013:\s]*)$",
    re.MULTILINE,
)
_ITEM = re.compile(r"^[^\S\n]*\(?\d{1,2}[.)][^\S\n]+", re.MULTILINE)
_REPRESENTED = re.compile(
    r"\b(?:Prozess|Verfahrens|Partei)?(?:bevollmächtigt|vertreter\b)|^[^\S\n]*(?:Rechtsanwält|Solicitors|Counsel|vertreten)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    rf"^[^\S\n|*]{{0,8}}(?P<role>{ROLE})[^\S\n]?[:|][^\S\n|*]{{0,8}}(?=\S)(?P<rest>[^\n]{{2,200}})$", re.MULTILINE
)
_CAPTION = re.compile(r"(?<!\w)In (?:Sachen|der Sache|dem Rechtsstreit|dem \w{0,20}(?:verfahren|prozess))[:\s]\s{0,3}")
_AGAINST = re.compile(r"\sgegen\s")
_SAID_ROLE = re.compile(rf"[,\u2013-][^\S\n]{{1,2}}(?P<role>{LITIGANT})(?=[,.\s])")
_CAPTION_CHARS = 300
_VERSUS = re.compile(
    r"^(?:(?:In dem |In der )?(?:In Sachen|Rechtsstreit|Sache|In re)[:\s]+)?(?P<first>[^\n]{2,90}?)"
    r"(?P<sign>[^\S\n]\./\.[^\S\n]|[^\S\n](?:v\.?|vs\.?)[^\S\n])(?P<second>[^\n]{2,90})$",
    re.MULTILINE,
)
_NAMED_SIGN = re.compile(r"[\s_]\.[_\-/]\.[\s_]")
_VERSUS_LINES = 30
_TAIL = re.compile(r"\s*(?:[,;(\u2013|]|[-]\s|wegen\b|u\.\s?a\.|Az\.?:?\s|et al\.?).*$", re.DOTALL)
_PLAIN_NAME = re.compile(
    r"[A-ZÄÖÜ][\wäöüß.&'\u2019+/-]{1,30}(?: (?:[A-ZÄÖÜ&][\wäöüß.&'\u2019+/-]{0,30}|und|von|van|de|der)){0,6}\Z"
)
# "Klage Müller ./. Meier": nobody knows where the name begins.
_DOCUMENT = re.compile(
    r"(?i)\b(?:klage\w*|schriftsatz|replik|duplik|antrag|berufung\w*|revision\w*|beschwerde\w*|schreiben|brief|vermerk|urteil"
    r"|beschluss|stellungnahme|protokoll|akte|sache|verfahren|termin|frist|entwurf|vergleich|mandat|letter|brief|claim|defen[cs]e"
    r"|order|judgment|memo|note|re|wg|betreff)\b"
)


def parties_of(text: ConvertedText, *, title: str | None) -> tuple[FoundParty, ...]:
    """Return the parties that a document's own content names, one a name and role, in the order of the text."""
    fields = tuple(_from_fields(text.meta))
    if fields:
        return _once(fields)
    head = text.text[:_HEAD_CHARS]
    found = [*_from_opening(head), *_from_marks(head), *_from_labels(head)]
    found = found or [*_from_caption(head)]
    if not found:
        found = [*_from_versus(head), *named_in(title or "")]
    return _once(sorted(found, key=lambda one: one.char_start or 0))


def named_in(title: str) -> tuple[FoundParty, ...]:
    """Return the parties in a title "X ./. Y", without a place: it may be a property or a file's name.

    A file's name holds no slash: there it is "X ._. Y" or "X .-. Y".
    """
    plain = _NAMED_SIGN.sub(" ./. ", title).replace("_", " ")
    return tuple(FoundParty(one.role, one.name, one.key, one.text, None, None) for one in _from_versus(plain))


def _from_fields(meta: Mapping[str, Any]) -> Iterator[FoundParty]:
    """Yield the sides of an invoice and those who take part in a court's message, from the file's own fields for them.

    `role` is one of ours; `as` is what the file calls it, in words and codes: "Klägerin, 101".
    """
    for field in meta.get("parties") or ():
        name = stored(field["name"]).strip()
        called = (field.get("as") or "").split(",")
        role = field.get("role") or next((known for word in called if (known := role_of(word))), PARTY)
        if name:
            yield FoundParty(role, company_name(name), name_key(name), name, None, None)


def _from_opening(head: str) -> Iterator[FoundParty]:
    """Yield the parties that a contract's opening defines: the name that begins the part before each role."""
    opening = _BETWEEN.search(head)
    at = opening.end() if opening else 0
    body = _BODY.search(head, at)
    for mark in _DEFINED.finditer(head, at, body.start() if body else len(head)):
        written = mark["plain"] or mark["quoted"] or mark["bare"] or mark["acting"]
        role = role_of(written)
        if opening is None and (role is None or mark["acting"]):
            continue
        begin = max(at, mark.start() - _BLOCK_CHARS)
        name = _name_in_part(head, begin, mark.start(), is_opening=opening is not None)
        at = mark.end()
        if name is not None:
            yield _party(role or PARTY, name)


def _name_in_part(head: str, begin: int, end: int, *, is_opening: bool) -> Name | None:
    """Return the name of a part that ends in a role: it begins the part, or is the one company in its paragraph."""
    name = name_at(head, begin, end) if is_opening else None
    if name is not None:
        return name
    # Other text may go before: the paragraph with the role is what counts.
    paragraph = head.rfind("\n\n" if is_opening else "\n", begin, end)
    start = paragraph + 1 if paragraph >= 0 else begin
    return (name_at(head, start, end) if is_opening else None) or _last_company(head, start, end)


def _last_company(head: str, start: int, end: int) -> Name | None:
    found = company_in(head, start, end)
    if found is None:
        return None
    further = company_in(head, found.end, end)
    # Two companies in one part: nobody knows which one it is.
    return None if further is not None else found


def _from_marks(head: str) -> Iterator[FoundParty]:
    """Yield the parties above lines that say nothing but their role."""
    in_court = _COURT_HEAD.search(head) is not None
    at = 0
    for mark in _MARK.finditer(head):
        role = role_of(mark["role"])
        has_dashes = any(dash in mark.group(0) for dash in "-\u2013\u2014(")
        if role is None or not (has_dashes or (in_court and _LITIGANT.match(mark["role"]))):
            continue
        begin = max(at, mark.start() - _BLOCK_CHARS)
        starts = [one.end() for one in _STARTS.finditer(head, begin, mark.start())]
        yield from _names_above(head, starts[-1] if starts else begin, mark.start(), role)
        at = mark.end()


def _names_above(head: str, begin: int, end: int, role: str) -> Iterator[FoundParty]:
    items = [one.end() for one in _ITEM.finditer(head, begin, end)]
    for at, start in enumerate(items):
        name = name_at(head, start, items[at + 1] if at + 1 < len(items) else end)
        if name is not None:
            yield _party(role, name)
    if items:
        return
    # After the side before come its lawyers: what counts is the last paragraph above the role.
    block = head[begin:end].rstrip()
    paragraph = block.rfind("\n\n")
    for start in dict.fromkeys((begin, begin + paragraph + 2 if paragraph >= 0 else begin)):
        line_end = head.find("\n", _first_letter(head, start), end)
        line = head[start : line_end if line_end >= 0 else end]
        name = None if _REPRESENTED.search(line) else name_at(head, start, end)
        if name is not None:
            yield _party(role, name)
            return


def _first_letter(head: str, at: int) -> int:
    found = re.compile(r"\S").search(head, at)
    return found.start() if found else at


def _from_caption(head: str) -> Iterator[FoundParty]:
    """Yield both sides of "In dem Rechtsstreit X, Klägerin, gegen Y, Beklagte" in running text."""
    caption = _CAPTION.search(head)
    against = _AGAINST.search(head, caption.end(), caption.end() + _BLOCK_CHARS) if caption else None
    if caption is None or against is None:
        return
    end = min(len(head), against.end() + _CAPTION_CHARS)
    first, second = name_at(head, caption.end(), against.start()), name_at(head, against.end(), end)
    if first is None or second is None:
        return
    usual = (CLAIMANT, DEFENDANT) if "Rechtsstreit" in caption.group(0) else (PARTY, PARTY)
    for name, stop, otherwise in ((first, against.start(), usual[0]), (second, end, usual[1])):
        said = _SAID_ROLE.search(head, name.end, stop)
        yield _party((role_of(said["role"]) if said else None) or otherwise, name)


def _from_labels(head: str) -> Iterator[FoundParty]:
    for line in _LABEL.finditer(head):
        role = role_of(line["role"])
        name = name_at(head, line.start("rest"), line.end("rest"))
        if role is not None and name is not None:
            yield _party(role, name)


def _from_versus(text: str) -> Iterator[FoundParty]:
    """Yield both sides of "X ./. Y". Firms put their client first: only English case names say who claims."""
    lines = text.split("\n", _VERSUS_LINES)[:_VERSUS_LINES]
    part = text[: sum(len(line) + 1 for line in lines)]
    for match in _VERSUS.finditer(part):
        is_english = "/" not in match["sign"]
        sides = [_side(text, *match.span(group), is_first=group == "first") for group in ("first", "second")]
        first, second = sides
        if first is None or second is None:
            continue
        if is_english and company_in(text, *match.span()) is None:
            continue
        roles = (CLAIMANT, DEFENDANT) if is_english else (PARTY, PARTY)
        yield _party(roles[0], first)
        yield _party(roles[1], second)
        return


def _side(text: str, start: int, end: int, *, is_first: bool) -> Name | None:
    company = company_in(text, start, end)
    if company is not None:
        return company
    side = text[start:end]
    if is_first and ":" in side:
        start += side.rfind(":") + 1
        side = text[start:end]
    side = _TAIL.sub("", side) if not is_first else side
    plain = side.strip().rstrip(".")
    if not _PLAIN_NAME.match(plain) or _DOCUMENT.search(plain):
        return None
    begin = start + len(side) - len(side.lstrip())
    return Name(plain, begin, begin + len(plain))


def _party(role: str, name: Name) -> FoundParty:
    written = name.written
    return FoundParty(role, company_name(written), name_key(written), written, name.start, name.end)


def _once(found: Iterable[FoundParty]) -> tuple[FoundParty, ...]:
    kept: dict[tuple[str, str], FoundParty] = {}
    for one in found:
        kept.setdefault((one.key, one.role), one)
    # Who has a role is not listed again as a mere party.
    with_role = {key for key, role in kept if role != PARTY}
    return tuple(one for one in kept.values() if one.role != PARTY or one.key not in with_role)[:_MOST_PARTIES]
