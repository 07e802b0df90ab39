"""Chunks of a version, with what the index must learn. Rows that stay the same are not touched."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from shared.db.engine import recording
from shared.index.ids import chunk_id
from shared.ingest import chunk_store
from shared.ingest.chunking import windows
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.metadata.languages import language_of
from shared.settings import Retrieval
from shared.text.converted import ConvertedText, page_numbers
from shared.types import ChunkKind, VersionId


def chunk(call: StageInput, services: Services) -> StageResult:
    """Write the version's chunks and queue it if they changed."""
    version_id = VersionId(UUID(call.payload.need("version_id")))
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    rows = chunk_rows(version_id, text, services.settings.retrieval)
    # One statement, so one transaction; two workers with copies of one file write the same rows in the same order.
    with recording(services.engine) as connection:
        chunk_store.replace_and_queue(connection, version_id, ChunkKind.CHUNK, rows)
    return StageResult({})


def chunk_rows(version_id: VersionId, text: ConvertedText, retrieval: Retrieval) -> list[dict[str, Any]]:
    """Return the body chunks of a text as rows."""
    whole = language_of(text.text)
    rows = []
    cut = windows(text.text, chars=retrieval.chunk_chars, overlap=retrieval.chunk_overlap_chars)
    for ordinal, window in enumerate(cut):
        pages = text.pages_of(window.char_start, window.char_end)
        first, last = page_numbers(pages)
        rows.append(
            {
                "id": chunk_id(version_id, ChunkKind.CHUNK, ordinal),
                "version_id": version_id,
                "kind": ChunkKind.CHUNK,
                "ordinal": ordinal,
                "text": window.text,
                "char_start": window.char_start,
                "char_end": window.char_end,
                "page_from": first,
                "page_to": last,
                "locus": next((page.locus for page in pages if page.locus), None),
                "language": language_of(window.text, otherwise=whole),
            }
        )
    return rows
