"""What SQL knows of versions that are to be indexed: two statements, however many versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.observed import is_observed
from shared.db.tables.access import document_grants, project_grants, source_object_grants
from shared.db.tables.catalog import (
    document_parties,
    document_versions,
    documents,
    matter_parties,
    matters,
    parties,
)
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects, version_sources
from shared.types import ChunkId, ChunkKind, Effect, Language, VersionId, VersionStatus


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """One chunk as it is stored."""

    id: ChunkId
    kind: ChunkKind
    ordinal: int
    text: str
    language: str
    page_from: int | None
    page_to: int | None
    locus: str | None
    clause_type: str | None


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """A version with all that its rows carry. `identifiers` are {"kind", "raw", "canonical"}.

    `is_observed` says that it still lies at a source; the index holds no row of one that does not.

    Title, type, language, date and identifiers are the version's own: a document shows those of its latest final
    version, and a reader of an earlier draft must not find the draft by what stands in a final behind a wall.
    """

    version_id: VersionId
    version_seq: int
    document_id: UUID
    project_id: UUID | None
    matter_id: UUID | None
    matter_title: str | None
    title: str
    status: VersionStatus
    doc_type: str | None
    doc_type_ancestors: Sequence[str]
    language: str
    doc_date: date | None
    identifiers: Sequence[Mapping[str, str]]
    parties: Sequence[str]
    source_object_id: UUID | None
    allowed_principals: Sequence[str]
    denied_principals: Sequence[str]
    chunks: Sequence[ChunkFacts] = field(default_factory=tuple)
    is_observed: bool = True


def load_versions(connection: sa.Connection, version_ids: Sequence[VersionId]) -> dict[VersionId, VersionFacts]:
    """Return the versions that exist, each with its chunks in the order of ordinals."""
    wanted = sorted(set(version_ids))
    if not wanted:
        return {}
    by_version: dict[VersionId, list[ChunkFacts]] = {}
    for row in connection.execute(_chunks_of(wanted)):
        by_version.setdefault(VersionId(row.version_id), []).append(_chunk(row))
    found = connection.execute(_facts_of(wanted))
    return {VersionId(row.version_id): _version(row, by_version.get(VersionId(row.version_id), [])) for row in found}


def _chunks_of(version_ids: Sequence[VersionId]) -> sa.Select[Any]:
    return (
        sa.select(chunks)
        .where(chunks.c.version_id == sa.any_(_uuids(version_ids)))
        .order_by(chunks.c.version_id, chunks.c.ordinal, chunks.c.kind)
    )


def _facts_of(version_ids: Sequence[VersionId]) -> sa.Select[Any]:
    source = (
        sa.select(version_sources.c.source_object_id)
        .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
        .where(version_sources.c.version_id == document_versions.c.id, source_objects.c.deleted_at.is_(None))
        .order_by(version_sources.c.created_at, version_sources.c.source_object_id)
        .limit(1)
        .scalar_subquery()
    )
    return (
        sa.select(
            document_versions.c.id.label("version_id"),
            document_versions.c.seq.label("version_seq"),
            document_versions.c.title,
            document_versions.c.status,
            documents.c.id.label("document_id"),
            documents.c.project_id,
            documents.c.matter_id,
            document_versions.c.facts,
            matters.c.title.label("matter_title"),
            _party_names().label("parties"),
            source.label("source_object_id"),
            is_observed(document_versions.c.id).label("is_observed"),
            _principals(Effect.ALLOW).label("allowed_principals"),
            _principals(Effect.DENY).label("denied_principals"),
        )
        .join(documents, documents.c.id == document_versions.c.document_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
        .where(document_versions.c.id == sa.any_(_uuids(version_ids)))
    )


def _party_names() -> sa.ScalarSelect[Any]:
    """Return the names of the parties of a version, as it writes them, and of its matter, sorted."""
    of_version = sa.select(document_parties.c.name).where(document_parties.c.version_id == document_versions.c.id)
    of_matter = sa.select(parties.c.name).join(matter_parties, matter_parties.c.party_id == parties.c.id)
    return _sorted_array(
        of_version,
        of_matter.where(matter_parties.c.matter_id == documents.c.matter_id),
    )


def _principals(effect: Effect) -> sa.ScalarSelect[Any]:
    """Return the principals of the grants around a version, sorted: for inspection. Nothing decides by these."""
    observed = (
        sa.select(source_object_grants.c.principal)
        .join(source_objects, source_objects.c.id == source_object_grants.c.source_object_id)
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .where(version_sources.c.version_id == document_versions.c.id, source_objects.c.deleted_at.is_(None))
    )
    granted = ((project_grants, "project_id", documents.c.project_id), (document_grants, "document_id", documents.c.id))
    return _sorted_array(
        observed.where(source_object_grants.c.effect == effect),
        *(
            sa.select(table.c.principal).where(table.c[column] == target, table.c.effect == effect)
            for table, column, target in granted
        ),
    )


def _sorted_array(*selects: sa.Select[Any]) -> sa.ScalarSelect[Any]:
    """Return the distinct values of all `selects` as one sorted array, empty if there are none."""
    correlated = [one.correlate(documents, document_versions) for one in selects]
    union = sa.union(*correlated).subquery("united")
    value = next(iter(union.c))
    array = sa.func.array_agg(pg.aggregate_order_by(value, value.asc()))
    return sa.select(sa.func.coalesce(array, sa.cast(pg.array([]), pg.ARRAY(sa.Text)))).scalar_subquery()


def _uuids(version_ids: Sequence[VersionId]) -> sa.Cast[Any]:
    return sa.cast(sa.literal([str(version_id) for version_id in version_ids], pg.ARRAY(sa.Text)), pg.ARRAY(pg.UUID))


def _chunk(row: sa.Row[Any]) -> ChunkFacts:
    return ChunkFacts(
        id=ChunkId(row.id),
        kind=ChunkKind(row.kind),
        ordinal=row.ordinal,
        text=row.text,
        language=row.language,
        page_from=row.page_from,
        page_to=row.page_to,
        locus=row.locus,
        clause_type=row.clause_type,
    )


def _version(row: sa.Row[Any], its_chunks: Sequence[ChunkFacts]) -> VersionFacts:
    own: Mapping[str, Any] = row.facts
    day = (own.get("doc_date") or {}).get("day")
    return VersionFacts(
        version_id=VersionId(row.version_id),
        version_seq=row.version_seq,
        document_id=row.document_id,
        project_id=row.project_id,
        matter_id=row.matter_id,
        matter_title=row.matter_title,
        title=row.title,
        status=VersionStatus(row.status),
        doc_type=own.get("doc_type"),
        doc_type_ancestors=own.get("doc_type_ancestors") or (),
        language=own.get("language") or Language.UNDETERMINED,
        doc_date=date.fromisoformat(day) if day else None,
        identifiers=own.get("identifiers") or (),
        parties=row.parties,
        source_object_id=row.source_object_id,
        allowed_principals=row.allowed_principals,
        denied_principals=row.denied_principals,
        chunks=its_chunks,
        is_observed=row.is_observed,
    )
