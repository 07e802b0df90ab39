"""The answer to a read of a document, from values already authorised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.catalog.requests import DocumentRead
from shared.catalog.visible import SourceObject, VisibleVersion, preferred
from shared.errors import InvalidRequestError
from shared.text.converted import ConvertedText, Page


@dataclass(frozen=True, slots=True)
class Passage:
    """Characters `[char_start, char_end)` of a version's text of `total_chars`, and the pages that they touch.

    `limit` is where what was asked for ends: the page's end, or the text's.
    """

    content: str
    char_start: int
    char_end: int
    total_chars: int
    limit: int
    pages: tuple[Page, ...]
    page_count: int | None


def passage(text: ConvertedText, request: DocumentRead) -> Passage:
    """Return the asked-for part of the text. Raises `InvalidRequestError` for a page that there is not."""
    numbers = [page.number for page in text.pages if page.number is not None]
    if request.page is None:
        start, limit = min(request.offset or 0, len(text.text)), len(text.text)
    else:
        wanted = [page for page in text.pages if page.number == request.page]
        if not wanted:
            known = f"it has pages {min(numbers)} to {max(numbers)}" if numbers else "it has no pages; use offset"
            raise InvalidRequestError(f"the version has no page {request.page}: {known}", field="page")
        start, limit = min(page.char_start for page in wanted), max(page.char_end for page in wanted)
    end = min(limit, start + request.chars)
    pages = tuple(text.pages_of(start, end))
    return Passage(text.text[start:end], start, end, len(text.text), limit, pages, max(numbers, default=None))


def document_answer(versions: Sequence[VisibleVersion], chosen: VisibleVersion, part: Passage) -> dict[str, Any]:
    """Return the body of GET /documents/{id}. Everything in it was read from visible versions."""
    standing = preferred(versions)
    latest_final = standing.id if standing is not None and standing.is_final else None
    facts = chosen.facts
    return {
        "document_id": chosen.document_id,
        "version_id": chosen.id,
        "title": chosen.title,
        "doc_type": facts.get("doc_type"),
        "doc_date": (facts.get("doc_date") or {}).get("day"),
        "language": facts.get("language"),
        "identifiers": [dict(found) for found in facts.get("identifiers") or ()],
        "project": chosen.project,
        "matter": chosen.matter,
        "mime": chosen.mime,
        "size_bytes": chosen.size_bytes,
        "version_status": chosen.status,
        "version_ordinal": chosen.ordinal,
        "is_latest_final": chosen.id == latest_final,
        "text": part.content,
        "pages": [
            {"number": page.number, "locus": page.locus, "char_start": page.char_start, "char_end": page.char_end}
            for page in part.pages
        ],
        "window": _window(part),
        "sources": [_source(place) for place in chosen.sources],
        "citation": _citation(chosen, part),
        "versions": [
            {
                "version_id": version.id,
                "title": version.title,
                "version_status": version.status,
                "version_ordinal": version.ordinal,
                "is_latest_final": version.id == latest_final,
                "sha256": version.sha256,
                "size_bytes": version.size_bytes,
                "created_at": version.created_at,
            }
            for version in versions
        ],
    }


def _window(part: Passage) -> dict[str, Any]:
    """Return where in the version's text the shown part stands, and where to go on."""
    has_more = part.char_end < part.limit
    return {
        "char_start": part.char_start,
        "char_end": part.char_end,
        "total_chars": part.total_chars,
        "page_count": part.page_count,
        "has_more": has_more,
        "next_offset": part.char_end if has_more else None,
    }


def _source(place: SourceObject) -> dict[str, Any]:
    return {
        "source_object_id": place.id,
        "path": place.path,
        "name": place.name,
        "source": place.source,
        "source_version": place.source_version,
    }


def _citation(version: VisibleVersion, part: Passage) -> dict[str, Any]:
    return {
        "project": version.project,
        "document": {"id": version.document_id, "title": version.title},
        "version": {
            "id": version.id,
            "ordinal": version.ordinal,
            "status": version.status,
            "sha256": version.sha256,
        },
        "sources": [_source(place) for place in version.sources],
        "span": {"char_start": part.char_start, "char_end": part.char_end},
    }
