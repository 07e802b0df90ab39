"""A verified row as a result with its citation, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from shared.ontology.tree import Ontology
from shared.search.excerpt import excerpt_of
from shared.search.marks import Marks
from shared.search.verification import Row
from shared.search.words import holds, runs
from shared.types import ChunkKind

# What a profile quotes of its version's text: see shared.ingest.chunking.
_QUOTED_CHARS: Final = 400

Result = dict[str, Any]
_COLUMNS: Final = {
    prefix: attrgetter(
        *(f"{prefix}_{name}" for name in ("id", "kind", "text", "char_start", "char_end", "page_from", "locus"))
    )
    for prefix in ("matched", "wanted", "passage")
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The query in the forms in which hits are compared with it; `None` for a list by metadata."""

    marks: Marks
    runs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk to show: `text` is the version's text from `char_start` on, where that is known."""

    id: str
    kind: str
    text: str
    char_start: int | None
    char_end: int | None
    page: int | None
    locus: str | None


def result(row: Row, *, score: float, asked: Asked | None, by_identifier: bool, ontology: Ontology) -> dict[str, Any]:
    """Return the result of one row; no excerpt without a query. With `by_identifier`, identifiers in it are named."""
    facts = _facts(row)
    passage = shown_passage(row)
    excerpt = None if asked is None or passage is None else excerpt_of(passage.text, asked.marks)
    begins = None if excerpt is None or passage is None or passage.char_start is None else passage.char_start
    identifiers = facts["identifiers"]
    return {
        "document_id": row.document_id,
        "version_id": row.version_id,
        "title": row.title,
        "doc_type": facts["doc_type"],
        "doc_type_label": ontology.doc_type_label(facts["doc_type"], facts["language"]),
        "doc_date": facts["doc_date"],
        "language": facts["language"],
        "matter": _named(row.matter_id, row.matter_key, row.matter_title),
        "parties": list(row.parties or ()),
        "identifiers": identifiers,
        "version_status": row.version_status,
        "version_ordinal": row.version_ordinal,
        "is_latest_final": row.is_latest_final,
        "score": score,
        "excerpt": "" if excerpt is None else excerpt.text,
        "excerpt_start": None if excerpt is None or begins is None else begins + excerpt.start,
        "highlights": [] if excerpt is None else [list(mark) for mark in excerpt.highlights],
        "matched_identifiers": matched_identifiers(identifiers, asked.runs) if asked and by_identifier else [],
        "citation": _citation(row, passage),
    }


def shown_passage(row: Row) -> Passage | None:
    """Return what is shown for a row, None if its version has no text.

    A profile is no text of its version: what stands there is the beginning that it quotes.
    """
    shown = _passage(row, "wanted") or _passage(row, "matched")
    if shown is None or shown.kind != ChunkKind.PROFILE:
        return shown
    opening = _passage(row, "passage")
    if opening is None:
        return None
    text = opening.text[:_QUOTED_CHARS]
    end = None if opening.char_start is None else opening.char_start + len(text)
    return Passage(shown.id, shown.kind, text, opening.char_start, end, opening.page, opening.locus)


def matched_identifiers(identifiers: Sequence[Mapping[str, str]], query_runs: Sequence[str]) -> list[str]:
    """Return the identifiers, as written, that stand in the query in either of their forms, however they are spaced."""
    found = [
        one.get("raw") or one.get("canonical") or ""
        for one in identifiers
        if any(holds(query_runs, runs(one.get(form) or "")) for form in ("raw", "canonical"))
    ]
    return list(dict.fromkeys(found))


def _facts(row: Row) -> dict[str, Any]:
    """Return what was read from this very version: its document shows its latest final one, which may be walled."""
    own = row.facts
    return {
        "doc_type": own.get("doc_type"),
        "doc_date": (own.get("doc_date") or {}).get("day"),
        "language": own.get("language"),
        "identifiers": [dict(one) for one in own.get("identifiers") or ()],
    }


def _citation(row: Row, passage: Passage | None) -> dict[str, Any]:
    return {
        "project": _named(row.project_id, row.project_key, row.project_title),
        "document": {"id": row.document_id, "title": row.title},
        "version": {
            "id": row.version_id,
            "ordinal": row.version_ordinal,
            "status": row.version_status,
            "sha256": row.sha256,
        },
        "sources": row.sources,
        "chunks": [] if passage is None else [_chunk(passage)],
    }


def _chunk(passage: Passage) -> dict[str, Any]:
    return {
        "id": passage.id,
        "kind": passage.kind,
        "locus": passage.locus,
        "page": passage.page,
        "char_start": passage.char_start,
        "char_end": passage.char_end,
    }


def _passage(row: Row, prefix: str) -> Passage | None:
    identifier, kind, text, char_start, char_end, page, locus = _COLUMNS[prefix](row)
    if identifier is None:
        return None
    return Passage(identifier, kind, text, char_start, char_end, page, locus)


def _named(identifier: str | None, key: str | None, title: str | None) -> dict[str, Any] | None:
    return None if identifier is None else {"id": identifier, "key": key, "title": title}
