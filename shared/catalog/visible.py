"""What a caller may see of one document: every version decides for itself, every observation too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from shared.access.predicate import Standing, Viewer, citable_observations, visible_versions
from shared.db.chain import FINAL_STATUSES, oldest_first
from shared.db.tables.base import TextArray, Uuid
from shared.db.tables.catalog import document_versions, documents, matters, projects
from shared.db.tables.content import artifacts
from shared.db.tables.sources import source_objects, sources
from shared.text.converted import ARTIFACT_KIND
from shared.types import AclMode, DocumentId, SourceObjectId, VersionId, VersionStatus


@dataclass(frozen=True, slots=True)
class SourceObject:
    """One place where the caller may see the version."""

    id: SourceObjectId
    path: str
    name: str
    source: str
    source_version: str | None


@dataclass(frozen=True, slots=True)
class VisibleVersion:
    """One version with what was read from itself. What was read from another, maybe walled, version is not here."""

    document_id: DocumentId
    id: VersionId
    ordinal: int | None
    status: VersionStatus
    title: str
    mime: str
    size_bytes: int
    sha256: str
    facts: Mapping[str, Any]
    created_at: datetime
    text_key: str | None
    project: Mapping[str, Any] | None
    matter: Mapping[str, Any] | None
    sources: tuple[SourceObject, ...]
    # The version whose changes this one shows, if that lies there without them as well.
    compares: VersionId | None = None

    @property
    def is_final(self) -> bool:
        """Whether the version is final or executed."""
        return self.status in FINAL_STATUSES


def visible_of(connection: sa.Connection, viewer: Viewer, document_id: UUID) -> list[VisibleVersion]:
    """Return the versions of the document that the viewer may see, oldest first, in one statement.

    Empty for a document that does not exist and for one that is not theirs: the two cannot be told apart.
    """
    statement = _statement(viewer.mode, is_administrator=viewer.is_administrator)
    rows = connection.execute(statement, {"viewer": sorted(viewer.principals), "document_id": document_id}).all()
    return [_version(list(seen)) for _, seen in groupby(rows, key=lambda row: row.version_id)]


def preferred(versions: Sequence[VisibleVersion]) -> VisibleVersion | None:
    """Return the version that stands for the document: the latest final one of these, else the newest.

    Among what the caller may see: that a later final version exists behind a wall must not show. A comparison with one
    of them stands for no document.
    """
    ids = {version.id for version in versions}
    plain = [version for version in versions if version.compares not in ids]
    return _last(version for version in plain if version.is_final) or _last(plain or versions)


def _last(versions: Iterable[VisibleVersion]) -> VisibleVersion | None:
    found = None
    for version in versions:
        found = version
    return found


@cache
def _statement(mode: AclMode, *, is_administrator: bool) -> sa.Select[Any]:
    """Return the statement; built once a process, because building it costs more than running it."""
    standing = Standing(sa.bindparam("viewer", type_=TextArray), mode, is_administrator)
    among = document_versions.c.document_id == sa.bindparam("document_id", type_=Uuid)
    visible = visible_versions(standing, among=among)
    citable = citable_observations(standing, visible)
    text_key = (
        sa.select(artifacts.c.storage_key)
        .where(artifacts.c.sha256 == document_versions.c.sha256, artifacts.c.kind == ARTIFACT_KIND)
        .order_by(artifacts.c.created_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    version, seen_at = document_versions.c, source_objects.c
    return (
        sa.select(
            documents.c.id.label("document_id"),
            version.id.label("version_id"),
            version.ordinal,
            version.status,
            version.title,
            version.mime,
            version.size_bytes,
            version.sha256,
            version.facts,
            version.created_at,
            sa.case((version.is_comparison, version.redline_of)).label("compares"),
            text_key.label("text_key"),
            projects.c.id.label("project_id"),
            projects.c.key.label("project_key"),
            projects.c.title.label("project_title"),
            matters.c.id.label("matter_id"),
            matters.c.key.label("matter_key"),
            matters.c.title.label("matter_title"),
            seen_at.id.label("object_id"),
            seen_at.path,
            seen_at.name,
            seen_at.source_version,
            sources.c.name.label("source"),
        )
        .select_from(visible)
        .join(document_versions, version.id == visible.c.version_id)
        .join(documents, documents.c.id == version.document_id)
        # Inner: a version without a citable observation is not shown.
        .join(citable, citable.c.version_id == version.id)
        .join(source_objects, seen_at.id == citable.c.source_object_id)
        .join(sources, sources.c.id == seen_at.source_id)
        .outerjoin(projects, projects.c.id == documents.c.project_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
        .order_by(*oldest_first(), seen_at.path, seen_at.id)
    )


def _version(rows: Sequence[Any]) -> VisibleVersion:
    first = rows[0]
    return VisibleVersion(
        document_id=DocumentId(first.document_id),
        id=VersionId(first.version_id),
        ordinal=first.ordinal,
        status=VersionStatus(first.status),
        title=first.title,
        mime=first.mime,
        size_bytes=first.size_bytes,
        sha256=first.sha256,
        facts=first.facts,
        created_at=first.created_at,
        text_key=first.text_key,
        project=_thing("project_id", first.project_id, first.project_key, first.project_title),
        matter=_thing("matter_id", first.matter_id, first.matter_key, first.matter_title),
        sources=tuple(
            SourceObject(SourceObjectId(row.object_id), row.path, row.name, row.source, row.source_version)
            for row in rows
        ),
        compares=None if first.compares is None else VersionId(first.compares),
    )


def _thing(id_name: str, id_: UUID | None, key: str | None, title: str | None) -> dict[str, Any] | None:
    return None if id_ is None else {id_name: id_, "key": key, "title": title}
