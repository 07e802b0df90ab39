"""What a language model adds to a version's facts: only where rules found nothing, and only what stands in the text.

A model is asked about the content alone, never about a file's name. Of its answer nothing is taken on trust: a value
that does not stand in the text is dropped, a date is read by the rules from the words that the model points to, a type
is one of the tree. So a text that gives the model orders can at most bring up words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.ingest.facts import DocDate, Facts, FoundParty, Reading
from shared.ingest.metadata.dates import written_dates
from shared.ingest.metadata.party_names import company_name, name_key
from shared.ingest.metadata.roles import PARTY, role_of
from shared.ontology.tree import Ontology
from shared.providers.llm.protocol import LanguageModel
from shared.text.converted import ConvertedText
from shared.text.normalise import single_line
from shared.types import Language, VersionStatus

TASK = "describe_document"
_MAX_QUOTE_CHARS = 500
_MAX_TITLE_CHARS = 300
_MIN_QUOTE_CHARS = 3
_MIN_SENTENCE_CHARS = 15
_MAX_PARTIES = 20
_END_SHARE = 4
_LEFT_OUT = "\n[...]\n"
_MAILS = ("message/rfc822", "application/vnd.ms-outlook", "application/vnd.ms-tnef")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TypeAnswer(_Answer):
    """A type of the tree, and words that show it."""

    id: str
    quote: str


class StatusAnswer(_Answer):
    """How far the document has come, and words that show it."""

    value: Literal["draft", "final", "executed"]
    quote: str


class LanguageAnswer(_Answer):
    """The language that most is written in, and a sentence in it."""

    value: Literal["de", "en"]
    quote: str


class PartyAnswer(_Answer):
    """A party by its name, and the word that the document has for its role."""

    name: str
    role: str | None


class DocumentAnswer(_Answer):
    """What a model says about a document. Every field is asked for; what the document does not say is null."""

    title: str | None
    doc_type: TypeAnswer | None
    doc_date: str | None = Field(description="As it is written in the document.")
    status: StatusAnswer | None
    language: LanguageAnswer | None
    parties: list[PartyAnswer]


def refine(
    reading: Reading,
    text: ConvertedText,
    *,
    mime: str,
    model: LanguageModel,
    ontology: Ontology,
    max_text_chars: int,
) -> Reading:
    """Return the reading with what the model found where the rules had found nothing; it is asked only then."""
    wanted = _open(reading, mime=mime)
    if not wanted:
        return reading
    types = "\n".join(f"{node.id}: {node.labels.en} / {node.labels.de}" for node in ontology.doc_types)
    variables = {"document": excerpt(text.text, max_chars=max_text_chars), "doc_types": types}
    answer = model.complete(TASK, variables, DocumentAnswer)
    found = {name: value for name, value in _checked(answer, text.text, ontology).items() if name in wanted}
    if not found:
        return reading
    note = f"found by {model.model_id}: {', '.join(sorted(found))}"
    return Reading(_with(reading.content, found, note), _with(reading.named, _for_named(reading, found), note))


def with_note(reading: Reading, note: str) -> Reading:
    """Return the reading with a note on why it stands as the rules left it."""
    return Reading(
        replace(reading.content, notes=(*reading.content.notes, note)),
        replace(reading.named, notes=(*reading.named.notes, note)),
    )


def excerpt(text: str, *, max_chars: int) -> str:
    """Return the text, or its beginning and its end where signatures stand, in at most about `max_chars`."""
    if len(text) <= max_chars:
        return text
    end = max_chars // _END_SHARE
    return text[: max_chars - end] + _LEFT_OUT + text[-end:]


def _open(reading: Reading, *, mime: str) -> set[str]:
    """Return the names of the facts that the rules did not find in the content."""
    facts = reading.content
    is_mail = mime in _MAILS
    empty = {
        # With a title of its own a version is called the same with and without the name of its file.
        "title": facts.title != reading.named.title,
        "doc_type": facts.doc_type is None,
        # A mail's date is that of its header; one that cannot be read is none.
        "doc_date": facts.doc_date.day is None and not is_mail,
        "status": facts.status is VersionStatus.UNKNOWN and not is_mail,
        "language": facts.language is Language.UNDETERMINED,
        "parties": not facts.parties and not is_mail,
    }
    return {name for name, is_open in empty.items() if is_open}


def _checked(answer: DocumentAnswer, text: str, ontology: Ontology) -> dict[str, Any]:
    """Return what of the answer holds against the text, by the fact that it is about."""
    found: dict[str, Any] = {}
    title = _quoted(answer.title, text)
    if title is not None and len(title) <= _MAX_TITLE_CHARS:
        found["title"] = title
    known = {node.id for node in ontology.doc_types}
    if answer.doc_type and answer.doc_type.id in known and _quoted(answer.doc_type.quote, text):
        found["doc_type"] = (answer.doc_type.id, ontology.doc_type_closure(answer.doc_type.id))
    dates = list(written_dates(_quoted(answer.doc_date, text) or ""))
    if len(dates) == 1:
        found["doc_date"] = DocDate(dates[0].day, dates[0].precision, dates[0].raw)
    if answer.status and (quote := _quoted(answer.status.quote, text)):
        found["status"] = (VersionStatus(answer.status.value), {"kind": "model", "value": quote})
    if answer.language and len(_quoted(answer.language.quote, text) or "") >= _MIN_SENTENCE_CHARS:
        found["language"] = Language(answer.language.value)
    parties = _parties(answer.parties, text)
    if parties:
        found["parties"] = parties
    return found


def _parties(named: Sequence[PartyAnswer], text: str) -> tuple[FoundParty, ...]:
    found: dict[tuple[str, str], FoundParty] = {}
    for each in named[:_MAX_PARTIES]:
        place = _place(each.name, text)
        if place is None:
            continue
        written = text[place[0] : place[1]]
        role = (role_of(each.role) if each.role and _place(each.role, text) else None) or PARTY
        name = company_name(written)
        found.setdefault((name_key(written), role), FoundParty(role, name, name_key(written), written, *place))
    return tuple(found.values())


def _for_named(reading: Reading, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what also counts beside the file's name: a name that says something itself is left to say it."""
    named = reading.named
    said = {
        "doc_type": named.doc_type is not None,
        "doc_date": named.doc_date.day is not None,
        "status": named.status is not VersionStatus.UNKNOWN,
        "parties": bool(named.parties),
    }
    # A title in the text counts before the name of a file, as one that the rules find does.
    return {name: value for name, value in found.items() if not said.get(name, False)}


def _with(facts: Facts, found: Mapping[str, Any], note: str) -> Facts:
    changes = {name: value for name, value in found.items() if name not in {"doc_type", "status"}}
    if "doc_type" in found:
        changes["doc_type"], changes["doc_type_ancestors"] = found["doc_type"]
    if "status" in found:
        status, evidence = found["status"]
        changes |= {"status": status, "status_evidence": (*facts.status_evidence, evidence)}
    return replace(facts, **changes, notes=(*facts.notes, note))


def _quoted(quote: str | None, text: str) -> str | None:
    """Return the words as the text has them, on one line; None if they do not stand there."""
    place = _place(quote, text)
    return None if place is None else single_line(text[place[0] : place[1]])


def _place(quote: str | None, text: str) -> tuple[int, int] | None:
    """Return where whole words stand in the text, whatever their case and the space between them."""
    words = single_line(quote or "")[:_MAX_QUOTE_CHARS].split(" ")
    if len("".join(words)) < _MIN_QUOTE_CHARS:
        return None
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)"
    found = re.search(pattern, text, re.IGNORECASE)
    return None if found is None else found.span()
