"""Index: the chunks and clauses of a version, and its place in the queue. Rows that stay the same are not touched.

The stages before queue what they change in their own transactions; queueing here is the net below them, and the point
at which an object is handed over: the runner drains the queue through the index writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from shared.db.engine import recording
from shared.index.ids import chunk_id
from shared.ingest import chunk_store, outbox
from shared.ingest.chunking import FIRST_CLAUSE_ORDINAL, Window, windows
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.metadata.clauses import Clause, clauses_from_json
from shared.ingest.metadata.languages import language_of
from shared.settings import Retrieval
from shared.text.converted import ConvertedText, page_numbers
from shared.types import ChunkKind, Language, VersionId


def index(call: StageInput, services: Services) -> StageResult:
    """Write the version's chunks and clauses, queue it if they changed, and unless it is indexed or queued already.

    Clauses are written whatever the version's status, which may change later; only those of a final or executed one
    go into the index (`shared.index.rows`).
    """
    version_id = VersionId(UUID(call.payload.need("version_id")))
    retrieval = services.settings.retrieval
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    rows = chunk_rows(version_id, text, retrieval)
    if call.payload.clauses_key is not None and retrieval.clause_embeddings:
        clauses = clauses_from_json(services.store.get(call.payload.clauses_key))
        rows += clause_rows(version_id, text, clauses, retrieval)
    # One statement, so one transaction; two workers with copies of one file write the same rows in the same order.
    with recording(services.engine) as connection:
        chunk_store.replace_and_queue(connection, version_id, (ChunkKind.CHUNK, ChunkKind.CLAUSE), rows)
    with recording(services.engine) as connection:
        outbox.queue_if_waiting(connection, version_id)
    return StageResult({})


def chunk_rows(version_id: VersionId, text: ConvertedText, retrieval: Retrieval) -> list[dict[str, Any]]:
    """Return the body chunks of a text as rows."""
    whole = language_of(text.text)
    cut = windows(text.text, chars=retrieval.chunk_chars, overlap=retrieval.chunk_overlap_chars)
    return [_row(version_id, text, window, ChunkKind.CHUNK, ordinal, whole=whole) for ordinal, window in enumerate(cut)]


def clause_rows(
    version_id: VersionId, text: ConvertedText, clauses: Sequence[Clause], retrieval: Retrieval
) -> list[dict[str, Any]]:
    """Return the clauses as rows, a long one as several; their ordinals are far from those of body chunks."""
    whole = language_of(text.text)
    parts = [
        (clause, Window(part.text, clause.char_start + part.char_start, clause.char_start + part.char_end))
        for clause in clauses
        for part in windows(text.text[clause.char_start : clause.char_end], chars=retrieval.chunk_chars, overlap=0)
    ]
    return [
        _row(version_id, text, window, ChunkKind.CLAUSE, ordinal, whole=whole)
        | {"locus": clause.locus, "clause_type": clause.clause_type}
        for ordinal, (clause, window) in enumerate(parts, start=FIRST_CLAUSE_ORDINAL)
    ]


def _row(
    version_id: VersionId, text: ConvertedText, window: Window, kind: ChunkKind, ordinal: int, *, whole: Language
) -> dict[str, Any]:
    pages = text.pages_of(window.char_start, window.char_end)
    first, last = page_numbers(pages)
    return {
        "id": chunk_id(version_id, kind, ordinal),
        "version_id": version_id,
        "kind": kind,
        "ordinal": ordinal,
        "text": window.text,
        "char_start": window.char_start,
        "char_end": window.char_end,
        "page_from": first,
        "page_to": last,
        "locus": next((page.locus for page in pages if page.locus), None),
        "clause_type": None,
        "language": language_of(window.text, otherwise=whole),
    }
