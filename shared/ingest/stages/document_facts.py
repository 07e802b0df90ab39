"""A document shows what was read from its latest final version."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.ingest import outbox
from shared.ingest.facts import Facts
from shared.ingest.families import Link, latest_final
from shared.types import DocumentId, VersionId


def refresh_document(connection: sa.Connection, document_id: DocumentId, *, unchunked: VersionId | None = None) -> None:
    """Bring the document's row up to its versions; queue all of them when what their index rows carry changed.

    `unchunked` is a version whose chunks are still to be written: it is queued with them. The caller holds the lock on
    the document's place.
    """
    rows = connection.execute(
        sa.select(document_versions.c.id, document_versions.c.facts)
        .where(document_versions.c.document_id == document_id)
        .order_by(document_versions.c.ordinal, document_versions.c.seq)
    ).all()
    read = {VersionId(row.id): Facts.from_json(row.facts) for row in rows}
    chosen = latest_final([Link(version, facts.status, facts.number) for version, facts in read.items()])
    facts = read[chosen]
    values = {
        "title": facts.title,
        "doc_type": facts.doc_type,
        "doc_type_ancestors": list(facts.doc_type_ancestors),
        "language": facts.language,
        "doc_date": facts.doc_date.day,
        "doc_date_precision": facts.doc_date.precision,
        "doc_date_raw": facts.doc_date.raw,
        "identifiers": [dict(item) for item in facts.identifiers],
        "latest_final_version_id": chosen,
    }
    differs = [
        documents.c[name].is_distinct_from(sa.cast(value, documents.c[name].type)) for name, value in values.items()
    ]
    changed = connection.execute(
        sa.update(documents)
        .where(documents.c.id == document_id, sa.or_(*differs))
        .values(updated_at=sa.func.now(), **values)
        .returning(documents.c.id)
    ).one_or_none()
    if changed is not None:
        outbox.queue(connection, {version: [] for version in read if version != unchunked})
