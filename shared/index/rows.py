"""The rows of a version, as they go into the index.

One row a chunk. Exactly one row of a version is its head, the one with the lowest ordinal: the profile if there is one,
else the first chunk. A version without any text has a head row of its own without text and vector, so that a list by
metadata finds it; it is in no table of chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.index import fields
from shared.index.compounds import parts_text
from shared.index.ids import head_id
from shared.index.indexed import is_indexed
from shared.index.row_ref import RowRef, packed
from shared.index.version_facts import ChunkFacts, VersionFacts
from shared.text.normalise import searched, single_line
from shared.types import ChunkId, ChunkKind, Language, VersionId

HEAD_ORDINAL: Final = -1
_HEADER_SEPARATOR: Final = " | "


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One row without its vector, and the string to embed; None for a row that has no vector."""

    chunk_id: ChunkId
    body: dict[str, Any]
    embedded: str | None


def version_rows(facts: VersionFacts, *, contextualize: bool, max_identifier_bytes: int) -> list[IndexRow]:
    """Return the rows of a version in the order of their ordinals, the head first; never none.

    With `contextualize`, what is embedded begins with a line of title, document type and matter, so that a paragraph
    is found by what it belongs to; the line is neither stored nor searched as text.
    """
    shared = _shared(facts, max_identifier_bytes)
    if not facts.chunks:
        return [_bare_head(facts, shared)]
    kept = [one for one in facts.chunks if is_indexed(one.kind, facts.status)]
    ordered = sorted(kept, key=lambda one: (one.ordinal, one.kind))
    header = _header(facts) if contextualize else ""
    return [_row(facts, chunk, shared, header, is_head=chunk is ordered[0]) for chunk in ordered]


def tombstone(chunk_id: ChunkId, version_id: VersionId, *, write_version: int) -> dict[str, Any]:
    """Return the row that buries a chunk.

    A real delete is forgotten by the engine after a minute, and a late write would then bring the chunk back.
    """
    return {
        fields.CHUNK_ID: str(chunk_id),
        fields.DOCUMENT_VERSION_ID: str(version_id),
        fields.DELETED: True,
        fields.WRITE_VERSION: write_version,
    }


def _row(facts: VersionFacts, chunk: ChunkFacts, shared: dict[str, Any], header: str, *, is_head: bool) -> IndexRow:
    text = searched(chunk.text)
    body = {
        **shared,
        **_place(facts, chunk.id, chunk.kind, chunk.ordinal, is_head=is_head),
        **_text_fields(text, chunk.language),
        fields.CLAUSE_TYPE: chunk.clause_type,
        fields.PAGE_FROM: chunk.page_from,
        fields.PAGE_TO: chunk.page_to,
        fields.META: _meta(facts, chunk),
    }
    # A profile begins with these very lines.
    own_header = "" if chunk.kind is ChunkKind.PROFILE else header
    return IndexRow(chunk.id, _given(body), own_header + text)


def _bare_head(facts: VersionFacts, shared: dict[str, Any]) -> IndexRow:
    chunk_id = head_id(facts.version_id)
    place = _place(facts, chunk_id, ChunkKind.PROFILE, HEAD_ORDINAL, is_head=True)
    return IndexRow(chunk_id, _given({**shared, **place}), None)


def _shared(facts: VersionFacts, max_identifier_bytes: int) -> dict[str, Any]:
    """Return what all rows of a version have in common."""
    identifiers = list(_identifiers(facts, max_identifier_bytes))
    return {
        fields.VERSION_SEQ: facts.version_seq,
        fields.DOCUMENT_VERSION_ID: str(facts.version_id),
        fields.DOCUMENT_ID: str(facts.document_id),
        fields.PROJECT_ID: None if facts.project_id is None else str(facts.project_id),
        fields.MATTER_ID: None if facts.matter_id is None else str(facts.matter_id),
        fields.DOC_TYPE: facts.doc_type,
        fields.DOC_TYPE_ANCESTORS: list(dict.fromkeys([*facts.doc_type_ancestors, *filter(None, [facts.doc_type])])),
        fields.VERSION_STATUS: facts.status,
        fields.LANGUAGE: facts.language,
        fields.DOC_DATE: None if facts.doc_date is None else facts.doc_date.isoformat(),
        fields.TITLE: single_line(facts.title),
        fields.PARTIES: [single_line(name) for name in facts.parties],
        fields.IDENTIFIERS: identifiers,
        fields.IDENTIFIERS_PARTS: identifiers,
        fields.DELETED: False,
        fields.ALLOWED_PRINCIPALS: list(facts.allowed_principals),
        fields.DENIED_PRINCIPALS: list(facts.denied_principals),
    }


def _place(facts: VersionFacts, chunk_id: ChunkId, kind: ChunkKind, ordinal: int, *, is_head: bool) -> dict[str, Any]:
    ref = RowRef(str(chunk_id), str(facts.document_id), facts.version_seq, ordinal, kind, facts.status)
    return {
        fields.CHUNK_ID: str(chunk_id),
        fields.CHUNK_KIND: kind,
        fields.ORDINAL: ordinal,
        fields.IS_HEAD: is_head,
        fields.ROW: packed(ref),
    }


def _text_fields(text: str, language: str) -> dict[str, Any]:
    if language == Language.ENGLISH:
        return {fields.TEXT_EN: text}
    return {fields.TEXT: text, fields.TEXT_PARTS: parts_text(text)}


def _meta(facts: VersionFacts, chunk: ChunkFacts) -> dict[str, Any]:
    meta = {
        "kind": chunk.kind,
        "source_object_id": None if facts.source_object_id is None else str(facts.source_object_id),
        "locus": chunk.locus,
        "clause_type": chunk.clause_type,
    }
    return {name: value for name, value in meta.items() if value is not None}


def _identifiers(facts: VersionFacts, max_bytes: int) -> Iterator[str]:
    """Yield each identifier in its canonical form and as written, once; none that is too long for a file number.

    Bytes count, not characters: the engine refuses a whole row for one term above 32,766 bytes.
    """
    seen: set[str] = set()
    for identifier in facts.identifiers:
        for form in ("canonical", "raw"):
            value = single_line(identifier.get(form) or "")
            if value and value not in seen and len(value.encode()) <= max_bytes:
                seen.add(value)
                yield value


def _header(facts: VersionFacts) -> str:
    parts: Sequence[str | None] = (facts.title, facts.doc_type, facts.matter_title)
    line = _HEADER_SEPARATOR.join(single_line(part) for part in parts if part)
    return f"{line}\n" if line else ""


def _given(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in body.items() if value is not None and value not in ("", [])}
