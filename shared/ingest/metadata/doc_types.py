"""The type of a document by rules; a small table until a firm's own tree of types replaces it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PARENTS = {
    "contract.purchase": "contract",
    "contract.lease": "contract",
    "contract.licence": "contract",
    "contract.employment": "contract",
    "contract.confidentiality": "contract",
    "contract.letter_of_intent": "contract",
    "pleading.claim": "pleading",
    "pleading.defence": "pleading",
    "pleading.reply": "pleading",
    "pleading.appeal": "pleading",
    "court.judgment": "court",
    "court.order": "court",
    "correspondence.mail": "correspondence",
    "correspondence.letter": "correspondence",
    "finance.invoice": "finance",
    "finance.accounts": "finance",
}


@dataclass(frozen=True, slots=True)
class _Rule:
    doc_type: str
    pattern: re.Pattern[str]


def _rule(doc_type: str, *words: str) -> _Rule:
    # A word may be part of a compound to its left ("Gewerbemietvertrag"), unless it begins with "=".
    parts = [rf"\b{word[1:]}" if word.startswith("=") else word for word in words]
    return _Rule(doc_type, re.compile(rf"(?:{'|'.join(parts)})(?![^\W\d_])", re.IGNORECASE))


# The first rule that matches wins: what answers or decides comes before what it is about.
_RULES = (
    _rule("court.judgment", "=urteil", "=judgment", "endurteil", "versäumnisurteil", "teilurteil"),
    _rule("court.order", "beschluss", "=verfügung", "procedural order(?: no\\.? ?\\d+)?", "=court order"),
    _rule("pleading.defence", "klageerwiderung", "statement of defen[cs]e", "=defen[cs]e", "antragserwiderung"),
    _rule("pleading.reply", "=replik", "=duplik", "=reply", "=rejoinder"),
    _rule("pleading.appeal", "berufungsbegründung", "=berufung", "revisionsbegründung", "notice of appeal"),
    _rule("pleading.claim", "klageschrift", "=klage", "request for arbitration", "statement of claim"),
    _rule("pleading", "schriftsatz", "schriftsätze", "=pleading"),
    _rule("finance.invoice", "rechnung", "gutschrift", "=invoice"),
    _rule("finance.accounts", "jahresabschluss", "bilanz", "annual accounts", "financial statements"),
    _rule("note", "vermerk", "notiz", "=memo(?:randum)?", "=minutes", "protokoll", "=interview"),
    _rule("report", "bericht", "=gutachten", "=report", "bewertung"),
    _rule("register_extract", "registerauszug", "handelsregister", "grundbuchauszug"),
    _rule("contract.letter_of_intent", "absichtserklärung", "letter of intent", "=loi", "term ?sheet"),
    _rule("contract.purchase", "kaufvertrag", "kauf- und übertragungsvertrag", "=spa", "=apa", "purchase agreement"),
    _rule("contract.lease", "mietvertrag", "pachtvertrag", "=lease(?: agreement)?", "tenancy agreement"),
    _rule("contract.licence", "lizenzvertrag", "licen[cs]e agreement"),
    _rule("contract.employment", "arbeitsvertrag", "dienstvertrag", "employment (?:agreement|contract)"),
    _rule(
        "contract.confidentiality",
        "vertraulichkeitsvereinbarung",
        "geheimhaltungsvereinbarung",
        "=nda",
        "non-disclosure agreement",
        "confidentiality agreement",
    ),
    _rule("contract", "vertrag", "vereinbarung", "=agreement", "=contract", "=nachtrag"),
    _rule("correspondence.letter", "=brief", "=schreiben", "=letter", "=angebot"),
)


def doc_type_of(*, mime: str, words: Sequence[str]) -> str | None:
    """Return the type by the kind of file and by what it is called, the most telling words first; None if unknown."""
    if mime == "message/rfc822":
        return "correspondence.mail"
    for called in words:
        # An underscore is a letter to a pattern; in a file's name it is a space.
        spaced = re.sub(r"[_.]+", " ", called)
        for rule in _RULES:
            if rule.pattern.search(spaced):
                return rule.doc_type
    return None


def ancestors_of(doc_type: str | None) -> tuple[str, ...]:
    """Return the type itself and all above it, so that one term finds a subtree."""
    found: list[str] = []
    while doc_type is not None:
        found.append(doc_type)
        doc_type = _PARENTS.get(doc_type)
    return tuple(found)
