"""All that is read from one version, put together."""

from __future__ import annotations

import re
from dataclasses import replace

from shared.ingest import identifiers
from shared.ingest.facts import DocDate, Facts, Reading
from shared.ingest.metadata.dates import document_date, mail_date, named_date
from shared.ingest.metadata.declared import all_identifiers, declared_doc_type
from shared.ingest.metadata.languages import language_of
from shared.ingest.metadata.names import NameFacts, read_name, stem_key
from shared.ingest.metadata.parties import named_in, parties_of
from shared.ingest.metadata.signature import Evidence, text_status
from shared.ontology.tree import Ontology, load_ontology
from shared.text.converted import ConvertedText
from shared.text.normalise import single_line, stored
from shared.types import Language, VersionStatus

_MAILS = frozenset({"message/rfc822", "application/vnd.ms-outlook", "application/vnd.ms-tnef"})
_NO_TITLE = "untitled"
_MAX_TITLE_CHARS = 300
_MAX_LINE_TITLE_CHARS = 120
_MAX_IDENTIFIERS = 500
_SENSELESS_TITLE = re.compile(
    r"^(?:microsoft (?:word|powerpoint|excel)\b.*|untitled.*|unbenannt.*|dokument\s*\d*|document\s*\d*"
    r"|.*\.(?:docx?|pdf|rtf|odt|dotx?|tmp|indd|qxd)|(?:[a-z]:)?[\\/].*|[\W\d_]*)$",
    re.IGNORECASE,
)
_HEAD_CHARS = 2000
_FIRST_LINES = 3
_MAX_FIRST_LINE_CHARS = 100


def read_facts(
    text: ConvertedText, *, name: str, mime: str, max_identifier_chars: int, ontology: Ontology | None = None
) -> Facts:
    """Return what is read from a version with its name, by the built-in tree of types unless another is given."""
    tree = ontology or load_ontology(None)
    return read_both(text, name=name, mime=mime, max_identifier_chars=max_identifier_chars, ontology=tree).named


def read_both(text: ConvertedText, *, name: str, mime: str, max_identifier_chars: int, ontology: Ontology) -> Reading:
    """Return what the content says alone, and what it says with the name of the file."""
    found, dropped = identifiers.within(all_identifiers(text), max_chars=max_identifier_chars)
    kept, notes = found[:_MAX_IDENTIFIERS], []
    if dropped:
        notes.append(f"{dropped} identifiers of more than {max_identifier_chars} bytes were left out")
    if len(found) > len(kept):
        notes.append(f"{len(found) - len(kept)} of {len(found)} identifiers were left out")
    if refused := text.meta.get("members_refused"):
        notes.append(f"partially processed: {refused} of {text.meta.get('members')} files in it could not be taken out")
    own_title, own_date = _own_title(text), _own_date(text, mime=mime)
    title = own_title or _line_title(text)
    doc_type = declared_doc_type(text, ontology) or ontology.doc_type_of(
        mime=mime, names=(title, *_first_lines(text.text))
    )
    # A mail is sent as it is; marks in it are about something else.
    status, evidence = (VersionStatus.UNKNOWN, ()) if mime in _MAILS else text_status(text.text, text.meta)
    content = Facts(
        title=title,
        language=_language(text),
        doc_date=own_date,
        doc_type=doc_type,
        doc_type_ancestors=ontology.doc_type_closure(doc_type),
        identifiers=tuple({"kind": i.kind, "raw": i.raw, "canonical": i.canonical} for i in kept),
        status=status,
        status_evidence=evidence,
        family=None,
        number=None,
        notes=tuple(notes),
        # Who writes or gets a mail is no party of anything.
        parties=() if mime in _MAILS else parties_of(text, title=own_title),
    )
    return Reading(content, _with_name(content, text, own_title, name=name, mime=mime, ontology=ontology))


def _with_name(
    content: Facts, text: ConvertedText, own_title: str | None, *, name: str, mime: str, ontology: Ontology
) -> Facts:
    about = read_name(name)
    title = own_title or stored(about.stem)[:_MAX_TITLE_CHARS] or _NO_TITLE
    doc_type = declared_doc_type(text, ontology) or ontology.doc_type_of(
        mime=mime, names=(title, about.stem, *_first_lines(text.text))
    )
    status, evidence = _named_status(content, about)
    when = content.doc_date
    return replace(
        content,
        title=title,
        # A mail without a date that can be read has none.
        doc_date=named_date(name) if when.day is None and mime not in _MAILS else when,
        doc_type=doc_type,
        doc_type_ancestors=ontology.doc_type_closure(doc_type),
        status=status,
        status_evidence=evidence,
        # Mails of one subject are a thread, not drafts of one another.
        family=None if mime in _MAILS else about.family,
        number=about.number,
        parties=content.parties or (() if mime in _MAILS else named_in(about.stem)),
        named_by=stem_key(name),
    )


def _own_title(text: ConvertedText) -> str | None:
    """Return the title that the content gives itself: a property, a heading, a mail's subject."""
    for candidate in (text.title, _meta_text(text, "heading")):
        line = single_line(candidate or "")
        if line and not _SENSELESS_TITLE.match(line):
            return stored(line)[:_MAX_TITLE_CHARS]
    return None


def _line_title(text: ConvertedText) -> str:
    """Return the first line that says something, cut at a word: what a file without title and name is called."""
    body = next((page for page in text.pages if page.locus == "body"), None)
    start = body.char_start if body else 0
    for line in text.text[start : start + _HEAD_CHARS].split("\n"):
        plain = single_line(line).lstrip("#*>- ").strip()
        if plain and not _SENSELESS_TITLE.match(plain):
            return stored(_cut(plain))
    return _NO_TITLE


def _cut(line: str) -> str:
    if len(line) <= _MAX_LINE_TITLE_CHARS:
        return line
    kept, space, _ = line[: _MAX_LINE_TITLE_CHARS + 1].rpartition(" ")
    return (kept if space else line[:_MAX_LINE_TITLE_CHARS]).rstrip(" ,;:")


def _first_lines(text: str) -> list[str]:
    """Return the short lines that a document begins with: where it says what it is."""
    lines = [line for line in text[:_HEAD_CHARS].split("\n") if line.strip()]
    return [line for line in lines[:_FIRST_LINES] if len(line) <= _MAX_FIRST_LINE_CHARS]


def _language(text: ConvertedText) -> Language:
    """Return the language of the text; what the file declares decides only where the text is too short to tell."""
    declared = (_meta_text(text, "language") or "").lower()[:2]
    otherwise = Language(declared) if declared in {"de", "en"} else Language.UNDETERMINED
    body = next((page for page in text.pages if page.locus == "body"), None)
    return language_of(text.text[body.char_start :] if body else text.text, otherwise=otherwise)


def _own_date(text: ConvertedText, *, mime: str) -> DocDate:
    if mime in _MAILS:
        # A date in a mail's text is about something else.
        return mail_date(_meta_text(text, "date"))
    declared = _meta_text(text, "doc_date")
    for found in (document_date(declared) if declared else None, document_date(text.text)):
        if found is not None and found.day is not None:
            return found
    return DocDate(None, None, None)


def _named_status(content: Facts, about: NameFacts) -> tuple[VersionStatus, Evidence]:
    if about.mark is not None:
        return about.status, ({"kind": "file_name", "value": about.mark},)
    if not content.status_evidence and about.number is not None:
        return VersionStatus.UNKNOWN, ({"kind": "version_number", "value": ".".join(map(str, about.number))},)
    return content.status, content.status_evidence


def _meta_text(text: ConvertedText, key: str) -> str | None:
    value = text.meta.get(key)
    return value if isinstance(value, str) else None
