"""Versions: which document and which version the object's bytes are.

Within one project and matter identical bytes are one version with several observations; across them they are separate
documents. New bytes at the same path are the next version of the same document; the version that lay there before
keeps its observation and stays readable through the same object. Drafts in one folder whose names differ only by
version marks are versions of one document (ADR 0005).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.engine import run_retrying
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest import objects, outbox, places
from shared.ingest.contract import Payload, Services, StageInput, StageResult
from shared.ingest.facts import Facts
from shared.ingest.families import Link, position_of
from shared.ingest.locks import lock_documents
from shared.ingest.objects import ObjectRow
from shared.ingest.places import PlaceIds
from shared.ingest.stages.document_facts import refresh_document
from shared.types import DocumentId, VersionId, VersionStatus

NEW, CHANGED, COPY, SAME = "new", "changed", "copy", "same"


def versions(call: StageInput, services: Services) -> StageResult:
    """Write the version and its observation, and say whether it is new, changed, a copy or the same as before."""
    payload = call.payload
    facts = Facts.from_json(services.store.get(payload.need("facts_key")))

    def work(connection: sa.Connection) -> StageResult:
        row = objects.load(connection, payload.object_id)
        ids = places.ids_of(connection, services.source.config.place_of(row.path))
        return _Decision(connection, payload, facts, row, ids).make()

    return run_retrying(services.engine, work)


class _Decision:
    """One decision in one transaction."""

    def __init__(
        self, connection: sa.Connection, payload: Payload, facts: Facts, row: ObjectRow, place: PlaceIds
    ) -> None:
        self._connection = connection
        self._payload = payload
        self._facts = facts
        self._row = row
        self._place = place

    def make(self) -> StageResult:
        elsewhere = self._documents_elsewhere()
        lock_documents(self._connection, [self._place.key, *(place.key for place in elsewhere.values())])
        for document_id in sorted(elsewhere):
            self._leave(document_id)
        current = self._current_document()
        found = self._same_bytes(current)
        if found is not None:
            version_id, document_id = found
            note = SAME if self._observe(version_id) else COPY
            self._describe(version_id, first_only=True)
        elif current is not None:
            document_id, note = current, CHANGED
            version_id = self._append(document_id)
        else:
            related = self._family()
            document_id, note = related or self._new_document(), NEW
            version_id = self._append(document_id)
        written = version_id if note in {NEW, CHANGED} else None
        refresh_document(self._connection, document_id, unchunked=written)
        return StageResult({"document_id": str(document_id), "version_id": str(version_id)}, note=note)

    def _documents_elsewhere(self) -> dict[DocumentId, PlaceIds]:
        """Return the documents that this object has shown in another project or matter: its folder was re-assigned."""
        rows = self._connection.execute(
            sa.select(documents.c.id, documents.c.project_id, documents.c.matter_id)
            .join(document_versions, document_versions.c.document_id == documents.c.id)
            .join(version_sources, version_sources.c.version_id == document_versions.c.id)
            .where(version_sources.c.source_object_id == self._row.id, ~self._here())
            .distinct()
        )
        return {DocumentId(row.id): PlaceIds(row.project_id, row.matter_id) for row in rows}

    def _leave(self, document_id: DocumentId) -> None:
        """Move a document that only this object shows; leave one behind that others show as well."""
        theirs = sa.select(document_versions.c.id).where(document_versions.c.document_id == document_id)
        seen_by = version_sources.c.version_id.in_(theirs)
        others = sa.exists().where(seen_by, version_sources.c.source_object_id != self._row.id)
        if not self._connection.execute(sa.select(others)).scalar_one() and not self._same_bytes(None):
            self._connection.execute(
                sa.update(documents)
                .where(documents.c.id == document_id)
                .values(project_id=self._place.project_id, matter_id=self._place.matter_id, updated_at=sa.func.now())
            )
            moved = self._connection.execute(theirs).scalars()
            outbox.queue(self._connection, {VersionId(UUID(str(version))): [] for version in moved})
            return
        self._connection.execute(
            sa.delete(version_sources).where(seen_by, version_sources.c.source_object_id == self._row.id)
        )

    def _current_document(self) -> DocumentId | None:
        """Return the document whose newest version this object has shown."""
        found = self._connection.execute(
            sa.select(document_versions.c.document_id)
            .join(version_sources, version_sources.c.version_id == document_versions.c.id)
            .join(documents, documents.c.id == document_versions.c.document_id)
            .where(version_sources.c.source_object_id == self._row.id, self._here())
            .order_by(version_sources.c.created_at.desc(), document_versions.c.seq.desc())
            .limit(1)
        ).scalar()
        return None if found is None else DocumentId(found)

    def _same_bytes(self, current: DocumentId | None) -> tuple[VersionId, DocumentId] | None:
        """Return the version of this place with these bytes, that of the object's own document first."""
        row = self._connection.execute(
            sa.select(document_versions.c.id, document_versions.c.document_id)
            .join(documents, documents.c.id == document_versions.c.document_id)
            .where(document_versions.c.sha256 == self._payload.need("sha256"), self._here())
            .order_by((document_versions.c.document_id == current).desc().nulls_last(), document_versions.c.seq)
            .limit(1)
        ).one_or_none()
        return None if row is None else (VersionId(row.id), DocumentId(row.document_id))

    def _family(self) -> DocumentId | None:
        """Return the document of a draft beside this file whose name differs only by version marks.

        A document is signed once: a second signed paper is one of its own.
        """
        if self._facts.family is None:
            return None
        folder, _, _ = self._row.path.rpartition("/")
        signed = document_versions.alias("signed")
        has_signed = sa.exists().where(
            signed.c.document_id == document_versions.c.document_id, signed.c.status == VersionStatus.EXECUTED
        )
        beside = sa.func.regexp_replace(source_objects.c.path, "(^|/)[^/]*$", "") == folder
        found = self._connection.execute(
            sa.select(document_versions.c.document_id)
            .join(documents, documents.c.id == document_versions.c.document_id)
            .join(version_sources, version_sources.c.version_id == document_versions.c.id)
            .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
            .where(
                self._here(),
                document_versions.c.facts["family"].astext == self._facts.family,
                document_versions.c.facts["doc_type"].astext.is_not_distinct_from(self._facts.doc_type),
                source_objects.c.source_id == self._row.source_id,
                source_objects.c.parent_id.is_not_distinct_from(self._row.parent_id),
                source_objects.c.deleted_at.is_(None),
                beside,
                ~has_signed if self._facts.status is VersionStatus.EXECUTED else sa.true(),
            )
            .order_by(document_versions.c.seq)
            .limit(1)
        ).scalar()
        return None if found is None else DocumentId(found)

    def _new_document(self) -> DocumentId:
        return DocumentId(
            self._connection.execute(
                sa.insert(documents)
                .values(project_id=self._place.project_id, matter_id=self._place.matter_id, title=self._facts.title)
                .returning(documents.c.id)
            ).scalar_one()
        )

    def _append(self, document_id: DocumentId) -> VersionId:
        """Write a new version at its place in the chain, with its observation."""
        chain = self._chain(document_id)
        inserted = self._connection.execute(
            sa.insert(document_versions)
            .values(
                document_id=document_id,
                sha256=self._payload.need("sha256"),
                mime=self._payload.need("mime"),
                size_bytes=sa.select(source_objects.c.size_bytes)
                .where(source_objects.c.id == self._row.id)
                .scalar_subquery(),
                title=self._facts.title,
            )
            .returning(document_versions.c.id)
        ).scalar_one()
        version_id = VersionId(inserted)
        self._describe(version_id, first_only=False)
        self._observe(version_id)
        link = Link(version_id, self._facts.status, self._facts.number)
        # New bytes at the object's own path came last, whatever they call themselves.
        own = any(version in {known.version_id for known in chain} for version in self._shown())
        position = len(chain) if own else position_of(link, chain)
        self._number([*chain[:position], link, *chain[position:]])
        return version_id

    def _describe(self, version_id: VersionId, *, first_only: bool) -> None:
        """Write what was read from the version; of a copy the object that showed it first decides."""
        first = (
            sa.select(version_sources.c.source_object_id)
            .where(version_sources.c.version_id == version_id)
            .order_by(version_sources.c.created_at, version_sources.c.source_object_id)
            .limit(1)
            .scalar_subquery()
        )
        values = {
            "title": self._facts.title,
            "status": self._facts.status,
            "status_evidence": [dict(item) for item in self._facts.status_evidence],
            "facts": self._facts.to_json(),
        }
        differs = sa.or_(
            *(
                document_versions.c[name].is_distinct_from(sa.cast(value, document_versions.c[name].type))
                for name, value in values.items()
            )
        )
        statement = sa.update(document_versions).where(document_versions.c.id == version_id, differs)
        if first_only:
            statement = statement.where(first == self._row.id)
        self._connection.execute(statement.values(values))

    def _observe(self, version_id: VersionId) -> bool:
        """Link the version to the object; return whether it was linked before."""
        insert = pg.insert(version_sources).values(version_id=version_id, source_object_id=self._row.id)
        written = self._connection.execute(insert.on_conflict_do_nothing().returning(version_sources.c.version_id))
        return written.one_or_none() is None

    def _shown(self) -> set[VersionId]:
        rows = self._connection.execute(
            sa.select(version_sources.c.version_id).where(version_sources.c.source_object_id == self._row.id)
        ).scalars()
        return {VersionId(row) for row in rows}

    def _chain(self, document_id: DocumentId) -> list[Link]:
        rows = self._connection.execute(
            sa.select(document_versions.c.id, document_versions.c.facts)
            .where(document_versions.c.document_id == document_id)
            .order_by(document_versions.c.ordinal, document_versions.c.seq)
        )
        return [_link(VersionId(row.id), row.facts) for row in rows]

    def _number(self, chain: Sequence[Link]) -> None:
        for ordinal, link in enumerate(chain, start=1):
            self._connection.execute(
                sa.update(document_versions)
                .where(
                    document_versions.c.id == link.version_id,
                    document_versions.c.ordinal.is_distinct_from(ordinal),
                )
                .values(ordinal=ordinal)
            )

    def _here(self) -> sa.ColumnElement[bool]:
        return documents.c.project_id.is_not_distinct_from(self._place.project_id) & (
            documents.c.matter_id.is_not_distinct_from(self._place.matter_id)
        )


def _link(version_id: VersionId, facts: dict[str, object]) -> Link:
    read = Facts.from_json(facts)
    return Link(version_id, read.status, read.number)
