"""References to statutes: "§§ 280 Abs. 1, 3, 281 BGB", "Art. 6 Abs. 1 lit. f DSGVO", "HGB § 74a Abs 1 S 1".

A reference is read piece by piece from its sign on, never backwards, so that hostile text costs no more than prose.
Signs that are joined ("§ 25, § 13 Abs. 1, § 14 Abs. 3 GKG") share the law that follows. Without a law a section is one
of some contract, and no reference.

Each sign gives one identifier, its parts are one reference for each section: "§ 280 Abs. 1, 3 BGB" and "§ 281 BGB". The
part of a reference with subdivisions is its section: "§ 280 BGB".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.ingest.identifiers.found import GAP, SPACE, Identifier
from shared.ingest.identifiers.laws import Law, is_heading, law_at, law_before
from shared.text.normalise import single_line

_SIGN = re.compile(r"§{1,2}|(?<!\w)(?:Art(?:\.|ikels?n?|icles?)?(?=[\s\d])|Artt\.)")
_GAP = re.compile(GAP)
_NUMBER = re.compile(
    r"(?P<number>\d{1,4})(?:(?P<letter>[a-z]{1,2})|[^\S\n](?P<apart>[a-eg-z])(?![\w.)]))?(?!\w|\.\w|\.?/\d)"
)
_FOLLOWING = re.compile(r"ff?(?:\.|(?!\w))")
_UNIT = re.compile(
    r"(?P<UAbs>(?:U|Unter)abs(?:\.|atz(?:es)?)?)|(?P<Abs>Abs(?:\.|(?:atz|ätze)(?:es|n)?|(?=\s))|para\.)"
    r"|(?P<S>S(?:\.|(?:atz|ätze)(?:es|n)?|(?=[^\S\n]\d)))|(?P<Nr>Nr(?:n)?(?:\.|(?=\s))|Nummern?|Ziff(?:\.|ern?)|No\.)"
    r"|(?P<lit>lit(?:\.|(?=\s))|Buchst(?:\.|aben?)|Bst\.)|(?P<Halbs>Halbs(?:\.|atz)|HS(?:\.|(?=\s))|Hs\.)"
    r"|(?P<Alt>Alt(?:\.|ernative))|(?P<Var>Var(?:\.|iante))|(?P<Teil>Teil(?=\s))|(?P<Fall>Fall(?=\s))",
)
_VALUE = re.compile(r"(?:\d{1,4}[a-z]{0,2}|[a-z]{1,2}\)?|[IVX]{1,4}|[A-Z])(?!\w)(?!\.\w)")
_COUNTED = re.compile(rf"(?P<count>\d)\.{GAP}(?P<of>Alt|Halbs|HS|Hs|Var)(?:\.|\w{{1,9}})?(?!\w)")
_ROMAN = re.compile(r"(?P<roman>[IVX]{1,5})(?![\w.])(?:[^\S\n]{1,2}(?P<sentence>\d{1,2})(?![\w./]))?")
_ROUND = re.compile(r"[^\S\n]?\((?P<value>\d{1,3}[a-z]?|[a-z]{1,2})\)")
_JOIN = re.compile(
    rf"(?P<with>i\.?[^\S\n]?V\.?[^\S\n]?m\.?(?!\w)|in{SPACE}Verbindung{SPACE}mit(?!\w))|(?P<range>bis(?!\w)|[-\u2013])"
    r"|(?P<word>und|oder|sowie|bzw\.|u\.|and|or)(?!\w)|(?P<mark>,(?:[^\S\n]{0,2}(?:und|sowie|jeweils)(?!\w))?|/|;(?=\s{0,2}§))"
)
# "AP Nr. 4 zu § 59 HGB": where a decision is filed in a collection.
_FILED = re.compile(r"\bNrn?\.?[^\S\n]{0,2}\d{1,4}(?:(?:,|[^\S\n]und)[^\S\n]\d{1,4}){0,3}[^\S\n]zu[^\S\n]{0,2}\Z")
_MOST_BEFORE = 40
_RANK: Final = {"Abs": 1, "UAbs": 2, "S": 3, "Nr": 4, "Halbs": 4, "lit": 5, "Teil": 2, "Alt": 6, "Var": 6, "Fall": 6}
_ROMANS = {"I": 1, "V": 5, "X": 10}
_MOST_BETWEEN = 30
_MOST_PARTS = 300
_US_CODE = re.compile(
    r"(?<![\w.])(?P<title>\d{1,2})[^\S\n]U\.?S\.?C\.?[^\S\n]§{1,2}[^\S\n]?(?P<section>\d{1,5}[a-z]?(?:\([A-Za-z0-9]{1,3}\)){0,4})(?!\w)"
)
_UK_ACT = re.compile(
    rf"(?<!\w)(?:[Ss]ections?|ss?\.|§){SPACE}(?P<section>\d{{1,4}}[A-Z]{{0,2}}(?:\(\w{{1,3}}\)){{0,3}}){SPACE}"
    rf"(?:of{SPACE}the{SPACE}|of{SPACE})?(?P<act>(?:[A-Z][A-Za-z]{{1,20}}{SPACE}(?:(?:and|of|for|\(){SPACE})?){{1,6}}Act{SPACE}\d{{4}})(?!\d)"
)


@dataclass(slots=True)
class _Section:
    """A section as cited: its number, what of it, and where it stands."""

    number: int
    letters: str
    start: int
    end: int
    of_it: str = ""
    follows: str = ""
    is_range: bool = False
    last_rank: int = 0


@dataclass(slots=True)
class _Group:
    """What stands behind one sign."""

    sign: str
    start: int
    end: int
    sections: list[_Section] = field(default_factory=list)


def statutes(text: str) -> Iterator[Identifier]:
    """Yield every reference to a statute, in order; those of one chain of signs one behind the other."""
    at = 0
    while sign := _SIGN.search(text, at):
        groups, law, end = _chain(text, sign)
        if groups and _FILED.search(text, max(0, sign.start() - _MOST_BEFORE), sign.start()):
            groups = []
        elif groups and law is None:
            before = law_before(text, groups[0].start, not_before=at)
            if before is not None:
                groups[0].start, law = before[0], Law(before[1], groups[0].start)
                groups[0].sections[0].start = before[0]
        elif groups and law is not None:
            if _is_a_heading(text, groups, law):
                groups = []
            else:
                groups[-1].end = groups[-1].sections[-1].end = law.end
        if law is not None:
            for group in groups:
                yield _identifier(text, group, law if group is groups[-1] else Law(law.name, law.end))
        at = max(end, sign.end())
    yield from _foreign(text)


def _chain(text: str, sign: re.Match[str]) -> tuple[list[_Group], Law | None, int]:
    """Return the signs that stand together from `sign` on, the law behind them, and where reading stopped."""
    groups: list[_Group] = []
    following: re.Match[str] | None = sign
    end = sign.end()
    while following is not None:
        group = _Group("§" if following.group(0)[0] == "§" else "Art.", following.start(), following.end())
        if not _first_section(text, group, following.end()):
            break
        groups.append(group)
        law, following, end = _rest_of_group(text, group, is_plural=following.group(0) == "§§")
        if law is not None:
            return groups, law, law.end
    return groups, None, end


def _first_section(text: str, group: _Group, after: int) -> bool:
    number = _NUMBER.match(text, _skip(text, after))
    if number is None:
        return False
    _add(group, number, start=group.start)
    return True


def _rest_of_group(text: str, group: _Group, *, is_plural: bool) -> tuple[Law | None, re.Match[str] | None, int]:
    """Read on from a first section; return the law behind, or the next sign, and where reading stopped."""
    while True:
        section = group.sections[-1]
        at = _skip(text, group.end)
        if _take_part(text, group, section, at, after="" if not section.of_it else " "):
            continue
        law = law_at(text, at) if at > group.end else None
        if law is not None:
            return law, None, law.end
        join = _JOIN.match(text, at)
        if join is None:
            return None, None, group.end
        at = _skip(text, join.end())
        sign = _SIGN.match(text, at)
        if sign is not None:
            return None, sign, group.end
        if join["with"] or not _take_joined(text, group, section, join, at, is_plural=is_plural):
            return None, None, group.end


def _take_part(text: str, group: _Group, section: _Section, at: int, *, after: str) -> bool:
    """Read one subdivision at `at`: "Abs. 1", "(1)(f)", "I 1", "1. Alt.", "ff."."""
    unit = _UNIT.match(text, at)
    if unit is not None and unit.lastgroup is not None:
        value = _VALUE.match(text, _skip(text, unit.end()))
        if value is None:
            return False
        _extend(group, section, f"{after}{_written(unit.lastgroup)} {_value(value.group(0))}", value.end())
        section.last_rank = _RANK[unit.lastgroup]
        return True
    return _take_shorthand(text, group, section, at, after=after)


def _take_shorthand(text: str, group: _Group, section: _Section, at: int, *, after: str) -> bool:
    """Read a subdivision without the word for it before its number."""
    following = _FOLLOWING.match(text, at)
    if following is not None and not section.follows:
        section.follows = " ff." if following.group(0).startswith("ff") else " f."
        _extend(group, section, "", following.end())
        return True
    counted = _COUNTED.match(text, at)
    if counted is not None:
        name = "Halbs" if counted["of"].lower() in {"hs", "halbs"} else counted["of"]
        _extend(group, section, f"{after}{name}. {counted['count']}", counted.end())
        section.last_rank = _RANK[name]
        return True
    rounded = _ROUND.match(text, group.end)
    if rounded is not None and section.last_rank < _RANK["Alt"]:
        name = "lit" if rounded["value"].isalpha() else ("Nr" if section.last_rank else "Abs")
        _extend(group, section, f"{after}{name}. {rounded['value']}", rounded.end())
        section.last_rank = max(section.last_rank + 1, _RANK[name])
        return True
    roman = _ROMAN.match(text, at) if not section.of_it and at > group.end else None
    if roman is not None:
        sentence = f" S. {roman['sentence']}" if roman["sentence"] else ""
        _extend(group, section, f"{after}Abs. {_arabic(roman['roman'])}{sentence}", roman.end())
        section.last_rank = _RANK["S" if sentence else "Abs"]
        return True
    return False


def _take_joined(text: str, group: _Group, section: _Section, join: re.Match[str], at: int, *, is_plural: bool) -> bool:
    """Read what a join leads to: a further section, or more of the one before."""
    glue = _glue(join)
    if _UNIT.match(text, at) and section.of_it:
        return _take_part(text, group, section, at, after=glue)
    number = _NUMBER.match(text, at)
    if number is not None and _begins_section(text, section, number, join, is_plural=is_plural):
        _add(group, number, start=number.start(), is_range=join["range"] is not None)
        return True
    value = _VALUE.match(text, at) if section.of_it else None
    if value is None:
        return False
    if value.group(0).isalpha() and not _is_letter_expected(text, section, value):
        return False
    _extend(group, section, f"{glue}{_value(value.group(0))}", value.end())
    return True


def _begins_section(
    text: str, section: _Section, number: re.Match[str], join: re.Match[str], *, is_plural: bool
) -> bool:
    """Tell whether a number after a join is a section: of "§§ 280 Abs. 1, 3, 281" the 281 is, the 3 is not."""
    if not section.of_it:
        return True
    unit = _UNIT.match(text, _skip(text, number.end()))
    if unit is not None and unit.lastgroup is not None:
        rank = _RANK[unit.lastgroup]
        if rank <= min(section.last_rank, _RANK["S"]):
            return True
        if join["word"]:
            return False
    return is_plural and int(number["number"]) > section.number


def _is_letter_expected(text: str, section: _Section, value: re.Match[str]) -> bool:
    """Tell whether a letter or Roman number goes on with the last value, rather than beginning a word or a name."""
    if value.group(0).isupper():
        # Roman numbers of paragraphs: "§ 280 I, III BGB". Otherwise it may be the senate of a court.
        is_roman = bool(_ROMAN.fullmatch(value.group(0))) and section.last_rank == _RANK["Abs"]
        return is_roman and law_at(text, _skip(text, value.end())) is not None
    return section.last_rank == _RANK["lit"]


def _add(group: _Group, number: re.Match[str], *, start: int, is_range: bool = False) -> None:
    letters = number["letter"] or number["apart"] or ""
    if letters in {"f", "ff"}:
        # "433f": the following one; a section 433f would be one with 433e before it, and there are few.
        known = _Section(int(number["number"]), "" if letters == "ff" else letters, start, number.end())
        known.follows = " ff." if letters == "ff" else ""
        group.sections.append(known)
    else:
        group.sections.append(_Section(int(number["number"]), letters, start, number.end(), is_range=is_range))
    group.end = number.end()


def _extend(group: _Group, section: _Section, piece: str, end: int) -> None:
    section.of_it += piece
    section.end = group.end = end


def _glue(join: re.Match[str]) -> str:
    if join["range"]:
        return "-"
    word = join["word"]
    if word in {"u.", "and", "sowie"}:
        word = "und"
    return f" {word} " if word else ", "


def _written(unit: str) -> str:
    return f"{unit}" if unit in {"Teil", "Fall"} else f"{unit}."


def _value(written: str) -> str:
    plain = written.rstrip(")")
    return str(_arabic(plain)) if _ROMAN.fullmatch(plain) and len(plain) > 1 else plain


def _arabic(roman: str) -> int:
    values = [_ROMANS[letter] for letter in roman]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _is_a_heading(text: str, groups: Sequence[_Group], law: Law) -> bool:
    """Tell whether a contract's heading ("§ 3 HAFTUNG") only looks like a reference."""
    group = groups[0]
    if law.act is not None or len(groups) > 1 or len(group.sections) > 1 or group.sections[0].of_it:
        return False
    line_start = text.rfind("\n", 0, group.start) + 1
    line_end = text.find("\n", law.end)
    rest = text[law.end : line_end if line_end >= 0 else len(text)]
    return is_heading(law.name) and not text[line_start : group.start].strip(" \t#*") and not rest.strip(" \t*:.")


def _identifier(text: str, group: _Group, law: Law) -> Identifier:
    references = [reference for at, _ in enumerate(group.sections) for reference in _references(text, group, at, law)]
    parts = tuple(references[:_MOST_PARTS])
    act = (law.act,) if law.act is not None else ()
    if len(group.sections) == 1 and len(parts) == 1:
        only = parts[0]
        return Identifier(only.kind, only.raw, only.canonical, only.start, only.end, (*only.parts, *act))
    sign = "§§" if group.sign == "§" else group.sign
    canonical = f"{sign} {_list_of(group.sections)} {law.name}"
    raw = text[group.start : group.end]
    return Identifier("statute", raw, canonical, group.start, group.end, (*parts, *act))


def _references(text: str, group: _Group, at: int, law: Law) -> Iterator[Identifier]:
    """Yield a reference to the section, and to those that a range or "f." puts beside it, at the same place."""
    section = group.sections[at]
    raw = text[section.start : section.end]
    place = (section.start, section.end)
    if section.is_range and at and len(group.sections) < _MOST_BETWEEN:
        for between in _between(group.sections[at - 1], section):
            yield Identifier("statute", raw, f"{group.sign} {between} {law.name}", *place)
    number = f"{section.number}{section.letters}"
    plain = Identifier("section", raw, f"{group.sign} {number} {law.name}", *place)
    of_it = f" {section.of_it}" if section.of_it else ""
    if of_it or section.follows:
        yield Identifier(
            "statute", raw, f"{group.sign} {number}{of_it}{section.follows} {law.name}", *place, parts=(plain,)
        )
    else:
        yield Identifier("statute", raw, plain.canonical, *place)
    if section.follows == " f." and not section.letters and not of_it:
        yield Identifier("statute", raw, f"{group.sign} {section.number + 1} {law.name}", *place)


def _between(first: _Section, last: _Section) -> list[str]:
    """Return the sections between the ends of a range, none when it is too long to mean each."""
    if not first.letters and not last.letters and 0 < last.number - first.number <= _MOST_BETWEEN:
        return [str(number) for number in range(first.number + 1, last.number)]
    if first.number == last.number and len(last.letters) == 1 and len(first.letters or "a") == 1:
        begin = ord(first.letters) + 1 if first.letters else ord("a")
        return [f"{first.number}{chr(letter)}" for letter in range(begin, ord(last.letters))]
    return []


def _list_of(sections: Sequence[_Section]) -> str:
    written = ""
    for section in sections:
        glue = "" if not written else "-" if section.is_range else ", "
        of_it = f" {section.of_it}" if section.of_it else ""
        written += f"{glue}{section.number}{section.letters}{of_it}{section.follows}"
    return written


def _foreign(text: str) -> Iterator[Identifier]:
    for match in _US_CODE.finditer(text):
        canonical = f"{match['title']} U.S.C. § {match['section']}"
        yield Identifier("statute", match.group(0), canonical, match.start(), match.end())
    for match in _UK_ACT.finditer(text):
        canonical = single_line(f"s. {match['section']} {match['act']}")
        yield Identifier("statute", match.group(0), canonical, match.start(), match.end())
