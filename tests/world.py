"""A firm for tests of search: projects, documents, versions, places and grants in SQL, brought to a real index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from shared.access.caller import Caller
from shared.access.principals import normalise_all
from shared.db.tables import access, catalog, sources
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.index.client import IndexClient
from shared.index.ids import chunk_id
from shared.index.writer import IndexWriter
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.settings import Settings
from shared.types import ChunkKind, DocumentId, OutboxOperation, ProjectId, VersionId
from tests.own_facts import own_facts

STAFF = "group:staff"


def caller(subject: str = "anna", *groups: str) -> Caller:
    """Someone of the staff, unless other groups are named."""
    return Caller(f"user:{subject}", normalise_all([f"user:{subject}", *(groups or (STAFF,))]))


class World:
    """Writes the firm; `publish` brings what was written to the index."""

    def __init__(
        self, engine: sa.Engine, client: IndexClient, embedding: EmbeddingProvider, settings: Settings
    ) -> None:
        self.engine = engine
        self.client = client
        self.settings = settings
        self._writer = IndexWriter(engine, client, embedding, settings)
        self.source_id = uuid4()
        with engine.begin() as connection:
            connection.execute(sa.insert(sources.sources).values(id=self.source_id, name="ablage", kind="local_fs"))

    def project(self, key: str, *allowed: str) -> ProjectId:
        """Return a project that these principals may see, the staff unless others are named."""
        project_id = uuid4()
        with self.engine.begin() as connection:
            connection.execute(sa.insert(catalog.projects).values(id=project_id, key=key, title=key.title()))
            for principal in allowed or (STAFF,):
                self.grant("project", project_id, principal, connection=connection)
        return ProjectId(project_id)

    def matter(self, project_id: ProjectId, key: str, *, title: str = "Nordwerk ./. Südbau") -> UUID:
        matter_id = uuid4()
        values = {"id": matter_id, "project_id": project_id, "key": key, "title": title}
        with self.engine.begin() as connection:
            connection.execute(sa.insert(catalog.matters).values(values))
        return matter_id

    def document(
        self,
        project_id: ProjectId | None,
        *texts: str,
        title: str = "Vertrag",
        status: str = "final",
        profile: str | None = None,
        **facts: Any,
    ) -> VersionId:
        """Return the only version of a new document, with one body chunk for each text; queued for the index."""
        document_id = uuid4()
        day = facts.pop("doc_date", date(2024, 3, 1))
        values = {
            "id": document_id,
            "project_id": project_id,
            "title": title,
            "language": "de",
            "doc_date": day,
            "doc_date_precision": None if day is None else "day",
            **facts,
        }
        with self.engine.begin() as connection:
            connection.execute(sa.insert(catalog.documents).values(values))
        read = own_facts(**{**values, "doc_date": day})
        return self.version(DocumentId(document_id), *texts, title=title, status=status, profile=profile, facts=read)

    def version(
        self,
        document_id: DocumentId,
        *texts: str,
        title: str = "Vertrag",
        status: str = "final",
        profile: str | None = None,
        ordinal: int = 1,
        is_latest: bool = True,
        facts: dict[str, Any] | None = None,
    ) -> VersionId:
        """Return a further version of a document, seen at a place of its own; queued for the index."""
        version_id = VersionId(uuid4())
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(catalog.document_versions).values(
                    id=version_id,
                    document_id=document_id,
                    sha256=version_id.hex * 2,
                    title=title,
                    status=status,
                    ordinal=ordinal,
                    mime="text/plain",
                    size_bytes=1,
                    facts=facts or own_facts(doc_date=date(2024, 3, 1)),
                )
            )
            if is_latest:
                connection.execute(
                    sa.update(catalog.documents)
                    .where(catalog.documents.c.id == document_id)
                    .values(latest_final_version_id=version_id)
                )
            rows = _chunk_rows(version_id, texts, profile)
            if rows:
                connection.execute(sa.insert(chunks), rows)
        self.observe(version_id)
        self.queue(version_id)
        return version_id

    def observe(self, version_id: VersionId, *, path: str | None = None) -> UUID:
        """Return a new place without an ACL of its own at which the version was seen."""
        object_id = uuid4()
        place = path or f"akten/{object_id}.txt"
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(sources.source_objects).values(
                    id=object_id,
                    source_id=self.source_id,
                    external_id=str(object_id),
                    path=place,
                    name=place.rpartition("/")[2],
                )
            )
            connection.execute(
                sa.insert(sources.version_sources).values(version_id=version_id, source_object_id=object_id)
            )
        return object_id

    def grant(
        self, kind: str, target: UUID, principal: str, effect: str = "allow", *, connection: sa.Connection | None = None
    ) -> None:
        """Grant at a project, document or source_object."""
        table = {
            "project": access.project_grants,
            "document": access.document_grants,
            "source_object": access.source_object_grants,
        }[kind]
        values = {f"{kind}_id": target, "principal": principal, "effect": effect}
        if connection is not None:
            connection.execute(sa.insert(table).values(values))
            return
        with self.engine.begin() as own:
            own.execute(sa.insert(table).values(values))

    def document_of(self, version_id: VersionId) -> DocumentId:
        with self.engine.connect() as connection:
            column = catalog.document_versions.c.document_id
            statement = sa.select(column).where(catalog.document_versions.c.id == version_id)
            return DocumentId(connection.execute(statement).scalar_one())

    def wall(self, version_id: VersionId, principal: str = STAFF) -> None:
        """Deny the version's document to someone."""
        self.grant("document", self.document_of(version_id), principal, "deny")

    def bury(self, version_id: VersionId) -> None:
        """Queue the version's rows for removal from the index; SQL keeps it."""
        self.queue(version_id, OutboxOperation.DELETE)

    def queue(self, version_id: VersionId, operation: OutboxOperation = OutboxOperation.INDEX) -> None:
        seq = sa.select(catalog.document_versions.c.seq).where(catalog.document_versions.c.id == version_id)
        values = {"version_id": version_id, "version_seq": seq.scalar_subquery(), "operation": operation}
        with self.engine.begin() as connection:
            connection.execute(sa.insert(index_outbox).values(values))

    def publish(self) -> None:
        """Bring everything queued to the index and make it visible to searches."""
        report = self._writer.drain(10_000)
        assert report.error is None
        assert not report.versions_failed
        self.client.refresh(self.settings.retrieval.index_name)


def _chunk_rows(version_id: VersionId, texts: Sequence[str], profile: str | None) -> list[dict[str, Any]]:
    """Body chunks that follow one another in the version's text, one line each."""
    rows, start = [], 0
    for ordinal, text in enumerate(texts):
        rows.append(_row(version_id, ChunkKind.CHUNK, ordinal, text, start))
        start += len(text) + 1
    if profile is not None:
        rows.append(_row(version_id, ChunkKind.PROFILE, -1, profile, None))
    return rows


def _row(version_id: VersionId, kind: ChunkKind, ordinal: int, text: str, start: int | None) -> dict[str, Any]:
    return {
        "id": chunk_id(version_id, kind, ordinal),
        "version_id": version_id,
        "kind": kind,
        "ordinal": ordinal,
        "text": text,
        "char_start": start,
        "char_end": None if start is None else start + len(text),
        "page_from": 1,
        "page_to": 1,
        "language": "de",
    }
