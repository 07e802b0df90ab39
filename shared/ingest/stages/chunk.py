"""Chunks of a version, and the profile of its document at the latest final version, with what the index must learn.

Rows that stay the same are not touched. What changes and the outbox entry for it are one transaction, so that a worker
killed in between leaves no row of the index behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.engine import run_retrying
from shared.db.tables.catalog import document_versions, documents, matters
from shared.db.tables.content import artifacts, chunks
from shared.index.ids import chunk_id
from shared.ingest import outbox
from shared.ingest.chunking import PROFILE_ORDINAL, profile_text, windows
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.locks import lock_documents
from shared.ingest.metadata.languages import language_of
from shared.ingest.places import PlaceIds
from shared.settings import Retrieval
from shared.text.converted import ARTIFACT_KIND, ConvertedText, page_numbers
from shared.types import ChunkId, ChunkKind, DocumentId, Language, VersionId

_FIELDS = ("text", "char_start", "char_end", "page_from", "page_to", "locus", "language")
_NAMES = ("id", "version_id", "kind", "ordinal", *_FIELDS)

Row = dict[str, Any]


def chunk(call: StageInput, services: Services) -> StageResult:
    """Write the version's chunks, move the document's profile to its latest final version, queue both."""
    version_id = VersionId(UUID(call.payload.need("version_id")))
    document_id = DocumentId(UUID(call.payload.need("document_id")))
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    body = chunk_rows(version_id, text, services.settings.retrieval)

    def work(connection: sa.Connection) -> StageResult:
        _lock(connection, document_id)
        stale = _replace(connection, version_id, (ChunkKind.CHUNK,), body)
        for moved, gone in _move_profile(connection, services, document_id).items():
            stale[moved] = [*stale.get(moved, []), *gone]
        outbox.queue(connection, stale)
        return StageResult({})

    return run_retrying(services.engine, work)


def chunk_rows(version_id: VersionId, text: ConvertedText, retrieval: Retrieval) -> list[Row]:
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


def _lock(connection: sa.Connection, document_id: DocumentId) -> None:
    columns = (documents.c.project_id, documents.c.matter_id)
    place = connection.execute(sa.select(*columns).where(documents.c.id == document_id)).one()
    lock_documents(connection, [PlaceIds(place.project_id, place.matter_id).key])


def _replace(
    connection: sa.Connection, version_id: VersionId, kinds: Sequence[ChunkKind], rows: Sequence[Row]
) -> dict[VersionId, list[ChunkId]]:
    """Make the version's rows of `kinds` these; return it with the ids that are gone if anything changed."""
    found = connection.execute(
        sa.select(*(chunks.c[name] for name in ("id", *_FIELDS))).where(
            chunks.c.version_id == version_id, chunks.c.kind.in_(kinds)
        )
    )
    before = {row.id: tuple(getattr(row, name) for name in _FIELDS) for row in found}
    after = {row["id"]: tuple(row[name] for name in _FIELDS) for row in rows}
    if before == after:
        return {}
    gone = sorted(before.keys() - after.keys())
    if gone:
        connection.execute(sa.delete(chunks).where(chunks.c.id.in_(gone)))
    _write(connection, [row for row in rows if before.get(row["id"]) != after[row["id"]]])
    return {version_id: [ChunkId(UUID(str(identifier))) for identifier in gone]}


def _write(connection: sa.Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    body = [{**row, "id": str(row["id"]), "version_id": str(row["version_id"])} for row in rows]
    if not body:
        return
    given = (
        sa.func.jsonb_to_recordset(sa.cast(sa.literal(json.dumps(body)), pg.JSONB))
        .table_valued(*(sa.column(name, chunks.c[name].type) for name in _NAMES), name="given")
        .render_derived(with_types=True)
    )
    select = sa.select(*(given.c[name] for name in _NAMES)).order_by(given.c.version_id, given.c.kind, given.c.ordinal)
    insert = pg.insert(chunks).from_select(list(_NAMES), select)
    changed = {name: insert.excluded[name] for name in _FIELDS} | {"embedded_sha256": None}
    connection.execute(insert.on_conflict_do_update(index_elements=[chunks.c.id], set_=changed))


def _move_profile(
    connection: sa.Connection, services: Services, document_id: DocumentId
) -> dict[VersionId, list[ChunkId]]:
    """Put the profile at the latest final version and take it from every other; return the versions that changed."""
    holders = connection.execute(
        sa.select(document_versions.c.id)
        .join(chunks, chunks.c.version_id == document_versions.c.id)
        .where(document_versions.c.document_id == document_id, chunks.c.kind == ChunkKind.PROFILE)
    ).scalars()
    stale: dict[VersionId, list[ChunkId]] = {}
    wanted = _profile(connection, services, document_id) if services.settings.retrieval.profile_embeddings else None
    for holder in holders.all():
        if wanted is None or holder != wanted["version_id"]:
            stale |= _replace(connection, VersionId(holder), (ChunkKind.PROFILE,), [])
    if wanted is not None:
        stale |= _replace(connection, wanted["version_id"], (ChunkKind.PROFILE,), [wanted])
    return stale


def _profile(connection: sa.Connection, services: Services, document_id: DocumentId) -> Row | None:
    """Return the profile row, None while the latest final version has no text yet."""
    document = connection.execute(
        sa.select(
            documents,
            document_versions.c.sha256,
            matters.c.title.label("matter_title"),
            matters.c.reference_numbers.label("matter_numbers"),
        )
        .join(document_versions, document_versions.c.id == documents.c.latest_final_version_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
        .where(documents.c.id == document_id)
    ).one()
    key = connection.execute(
        sa.select(artifacts.c.storage_key)
        .where(artifacts.c.sha256 == document.sha256, artifacts.c.kind == ARTIFACT_KIND)
        .order_by(artifacts.c.created_at.desc())
        .limit(1)
    ).scalar()
    if key is None:
        return None
    text = ConvertedText.from_json(services.store.get(key)).text
    lines = (
        ("Title", document.title),
        ("Document type", document.doc_type),
        ("Matter", document.matter_title),
        ("Reference numbers", ", ".join(document.matter_numbers or ())),
        ("Identifiers", ", ".join(item["raw"] for item in document.identifiers)),
        ("Date", document.doc_date_raw or (document.doc_date.isoformat() if document.doc_date else None)),
    )
    version_id = VersionId(document.latest_final_version_id)
    return {
        "id": chunk_id(version_id, ChunkKind.PROFILE, PROFILE_ORDINAL),
        "version_id": version_id,
        "kind": ChunkKind.PROFILE,
        "ordinal": PROFILE_ORDINAL,
        "text": profile_text([(label, value or "") for label, value in lines], text),
        "char_start": None,
        "char_end": None,
        "page_from": None,
        "page_to": None,
        "locus": None,
        "language": str(document.language or Language.UNDETERMINED),
    }
