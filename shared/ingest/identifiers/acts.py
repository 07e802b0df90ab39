"""Acts of the European Union: "Richtlinie 2011/83/EU", "Verordnung (EU) 2016/679", each by its number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shared.ingest.identifiers.found import GAP, SPACE, Identifier

_DIRECTIVE = rf"(?:Rahmenbeschluss(?:es)?|Richtlinien?|Beschluss(?:es)?|Entscheidung|RL|Directive|Decision){SPACE}"
_REGULATION = rf"(?:Verordnung|VO|Regulation|Durchführungsverordnung){SPACE}"
_UNION = r"(?:EWG|EURATOM|EG|EU|EEC|EC)"
_GERMAN = {"EEC": "EWG", "EC": "EG"}
ACT: Final = re.compile(
    rf"(?<![\w/-])(?:{_DIRECTIVE})?(?:Nr\.{GAP})?(?P<old>\d{{2,4}}/\d{{1,4}})/(?P<of>{_UNION}|JI|GASP|JHA)(?!\w|/\d)"
    rf"|(?<![\w/-])(?:{_REGULATION})?\((?P<union>{_UNION})\)(?:{SPACE}(?:Nr|No)\.?)?{SPACE}(?P<new>\d{{1,4}}/\d{{1,4}})(?![\w/])"
)


def acts(text: str) -> Iterator[Identifier]:
    """Yield every act that is named by its number."""
    for match in ACT.finditer(text):
        yield act(match)


def act(match: re.Match[str]) -> Identifier:
    """Return the act that was matched: a directive's number holds its kind, a regulation's needs its union's."""
    if match["old"]:
        canonical = f"{match['old']}/{_german(match['of'])}"
    else:
        canonical = f"({_german(match['union'])}) {match['new']}"
    return Identifier("eu_act", match.group(0), canonical, match.start(), match.end())


def _german(union: str) -> str:
    return _GERMAN.get(union, union)
