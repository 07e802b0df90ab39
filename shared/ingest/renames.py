"""A file's old name is forgotten in the transaction that gives it another one.

Its bytes may be unreadable from now on, so that no later stage would come to it, and whoever may cite the file would go
on reading the old name in the title of a version that it still shows. What is left is what the content says alone; the
stages that follow read the new name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.base import Json, TextArray, Uuid
from shared.db.tables.catalog import document_versions, documents, matters, projects
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest import chunk_store, outbox, parties_rows
from shared.ingest.locks import lock_documents, place_name
from shared.ingest.metadata.names import stem_key
from shared.ingest.recordset import recordset
from shared.ingest.relations import rows as relation_rows
from shared.types import ChunkKind, DocumentId, SourceId, SourceObjectId, VersionId

# For facts from before those of the content were kept beside them.
_NOTHING: Final[Mapping[str, Any]] = {
    "title": "untitled",
    "doc_date": {"day": None, "precision": None, "raw": None},
    "doc_type": None,
    "doc_type_ancestors": [],
    "status": "unknown",
    "status_evidence": [],
    "family": None,
    "number": None,
    "parties": [],
}


def forget_old_names(connection: sa.Connection, source_id: SourceId, names: Mapping[str, str]) -> None:
    """Take from versions what was read from names that their files are about to lose; the new names by external id.

    One statement when no file has been renamed. Before the files' rows are changed: who places a version holds the lock
    on its place first and the row of its file second.
    """
    given = [{"external_id": external_id, "key": stem_key(name)} for external_id, name in names.items()]
    found = connection.execute(_renamed(), {"given": given, "of_source": source_id}).all()
    if not found:
        return
    lock_documents(connection, {place_name(row.project_key, row.matter_key) for row in found})
    versions = {VersionId(row.version_id): DocumentId(row.document_id) for row in found}
    connection.execute(_forget(), {"versions": [str(one) for one in versions], "nothing": dict(_NOTHING)})
    parties_rows.forget_names(connection, list(versions))
    connection.execute(_show(), {"documents": [str(one) for one in set(versions.values())]})
    relation_rows.forget_names(connection, {SourceObjectId(row.object_id) for row in found})
    gone = chunk_store.replace(connection, list(versions), ChunkKind.PROFILE, [])
    outbox.queue(connection, {**{version: [] for version in versions}, **gone})


def _renamed() -> sa.Select[Any]:
    """Return the versions whose facts were read with a name that one of their files loses."""
    given = recordset("given", [source_objects.c.external_id, sa.column("key", sa.Text)])
    named_by = document_versions.c.facts["named_by"].astext
    return (
        sa.select(
            document_versions.c.id.label("version_id"),
            document_versions.c.document_id,
            source_objects.c.id.label("object_id"),
            projects.c.key.label("project_key"),
            matters.c.key.label("matter_key"),
        )
        .select_from(given)
        .join(source_objects, source_objects.c.external_id == given.c.external_id)
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .join(documents, documents.c.id == document_versions.c.document_id)
        .outerjoin(projects, projects.c.id == documents.c.project_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
        .where(source_objects.c.source_id == sa.bindparam("of_source"), named_by.is_not(None), named_by != given.c.key)
    )


def _forget() -> sa.Update:
    version = document_versions.c
    content = sa.func.coalesce(version.facts["content"], sa.bindparam("nothing", type_=Json), type_=Json)
    named_by_nobody = sa.func.jsonb_build_object("named_by", None, type_=Json)
    facts = version.facts.op("-")("content").op("||")(content).op("||")(named_by_nobody)
    return (
        sa.update(document_versions)
        .where(_any_of(version.id, "versions"))
        .values(
            facts=facts,
            title=sa.func.coalesce(content["title"].astext, version.title),
            status=sa.func.coalesce(content["status"].astext, version.status),
            status_evidence=sa.func.coalesce(content["status_evidence"], version.status_evidence),
        )
    )


def _show() -> sa.Update:
    """Let documents show what is left of the versions that stand for them."""
    facts = document_versions.c.facts
    day = sa.cast(facts["doc_date"]["day"].astext, sa.Date)
    values = {
        "title": document_versions.c.title,
        "doc_type": facts["doc_type"].astext,
        "doc_type_ancestors": sa.func.array(
            sa.select(
                sa.func.jsonb_array_elements_text(facts["doc_type_ancestors"]).column_valued("ancestor")
            ).scalar_subquery(),
            type_=TextArray,
        ),
        "doc_date": day,
        "doc_date_precision": sa.case((day.is_not(None), facts["doc_date"]["precision"].astext)),
        "doc_date_raw": facts["doc_date"]["raw"].astext,
        "updated_at": sa.func.now(),
    }
    return (
        sa.update(documents)
        .where(_any_of(documents.c.id, "documents"), document_versions.c.id == documents.c.latest_final_version_id)
        .values(values)
    )


def _any_of(column: sa.ColumnElement[Any], parameter: str) -> sa.ColumnElement[bool]:
    return column == sa.any_(sa.cast(sa.bindparam(parameter, type_=TextArray), pg.ARRAY(Uuid)))
