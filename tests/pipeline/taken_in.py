"""What the pipeline left in the database, without ids and times: two ways of taking the same files in must agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox, ingest_state, quarantine
from shared.db.tables.sources import source_objects, version_sources


def trace(engine: sa.Engine) -> dict[str, set[tuple[str, Any, Any, Any]]]:
    """Stages by object with their outcomes: (stage, status, error, tries)."""
    found: dict[str, set[tuple[str, Any, Any, Any]]] = {}
    for row in _rows(
        engine,
        sa.select(source_objects.c.path, ingest_state).join(
            ingest_state, ingest_state.c.source_object_id == source_objects.c.id
        ),
    ):
        found.setdefault(row.path, set()).add((row.stage, row.status, row.error, row.attempts))
    return found


def objects_of(engine: sa.Engine) -> set[tuple[Any, ...]]:
    """Objects with their content and what holds them."""
    outer = source_objects.alias("outer")
    columns = [source_objects.c[name] for name in ("path", "name", "mime", "sha256", "size_bytes")]
    gone = source_objects.c.deleted_at.is_not(None)
    statement = sa.select(*columns, gone, outer.c.path.label("holder")).outerjoin(
        outer, outer.c.id == source_objects.c.parent_id
    )
    return {tuple(row) for row in _rows(engine, statement)}


def versions_of(engine: sa.Engine) -> set[tuple[Any, ...]]:
    """Versions with their facts, and where each was seen."""
    statement = (
        sa.select(
            source_objects.c.path,
            document_versions.c.sha256,
            document_versions.c.title,
            document_versions.c.status,
            document_versions.c.ordinal,
            documents.c.doc_type,
            documents.c.language,
            sa.cast(documents.c.doc_date, sa.Text),
        )
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .join(documents, documents.c.id == document_versions.c.document_id)
    )
    return {tuple(row) for row in _rows(engine, statement)}


def chunks_of(engine: sa.Engine) -> set[tuple[Any, ...]]:
    """Chunks by the content that they were cut from."""
    statement = sa.select(
        document_versions.c.sha256, chunks.c.kind, chunks.c.ordinal, chunks.c.text, chunks.c.char_start, chunks.c.locus
    ).join(document_versions, document_versions.c.id == chunks.c.version_id)
    return {tuple(row) for row in _rows(engine, statement)}


def quarantine_of(engine: sa.Engine) -> Mapping[str, tuple[Any, ...]]:
    """What stopped, where and why."""
    columns = [quarantine.c[name] for name in ("stage", "error", "reason", "sha256", "attempts")]
    statement = sa.select(source_objects.c.path, *columns).join(
        quarantine, quarantine.c.source_object_id == source_objects.c.id
    )
    return {row.path: tuple(row)[1:] for row in _rows(engine, statement)}


def queued_for_the_index(engine: sa.Engine) -> int:
    """How many entries wait for the index."""
    [row] = _rows(engine, sa.select(sa.func.count()).where(index_outbox.c.done_at.is_(None)))
    return int(row[0])


def all_of(engine: sa.Engine) -> dict[str, Any]:
    return {
        "trace": trace(engine),
        "objects": objects_of(engine),
        "versions": versions_of(engine),
        "chunks": chunks_of(engine),
        "quarantine": quarantine_of(engine),
    }


def _rows(engine: sa.Engine, statement: sa.Select[Any]) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(statement))
