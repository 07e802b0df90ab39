"""Index: the chunks of a version, and a place in the queue for the index. Rows that stay the same are not touched.

The stages before queue what they change in their own transactions; queueing here is the net below them, and the point
at which an object is handed over: the runner drains the queue through the index writer.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from shared.db.engine import recording
from shared.index.ids import chunk_id
from shared.ingest import chunk_store, outbox
from shared.ingest.chunking import windows
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.metadata.languages import language_of
from shared.settings import Retrieval
from shared.text.converted import ConvertedText, page_numbers
from shared.types import ChunkKind, VersionId


def index(call: StageInput, services: Services) -> StageResult:
    """Write the version's chunks, queue it if they changed, and unless it is indexed or queued already."""
    version_id = VersionId(UUID(call.payload.need("version_id")))
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    rows = chunk_rows(version_id, text, services.settings.retrieval)
    # One statement, so one transaction; two workers with copies of one file write the same rows in the same order.
    with recording(services.engine) as connection:
        chunk_store.replace_and_queue(connection, version_id, ChunkKind.CHUNK, rows)
    with recording(services.engine) as connection:
        outbox.queue_if_waiting(connection, version_id)
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
