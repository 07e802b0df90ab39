"""Versions with chunks in SQL, and what tests ask of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents, matters, projects
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.db.tables.sources import source_objects, sources, version_sources
from shared.index.ids import chunk_id
from shared.types import ChunkId, ChunkKind, OutboxOperation, VersionId
from tests.own_facts import own_facts


class Firm:
    """One project with one matter."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.project_id, self.matter_id, self.source_id = uuid4(), uuid4(), uuid4()
        with engine.begin() as connection:
            connection.execute(sa.insert(sources).values(id=self.source_id, name="ablage", kind="local_fs"))
            connection.execute(sa.insert(projects).values(id=self.project_id, key="nord", title="Nordwerk"))
            connection.execute(
                sa.insert(matters).values(
                    id=self.matter_id, project_id=self.project_id, key="nord-1", title="Nordwerk ./. Südbau"
                )
            )

    def version(self, *texts: str, title: str = "Mietvertrag", language: str = "de", **facts: Any) -> VersionId:
        """Return a version of a new document with one chunk for each text; nothing is queued."""
        document_id, version_id = uuid4(), VersionId(uuid4())
        status = facts.pop("status", "final")
        values = {"identifiers": [], "doc_date": date(2024, 3, 1), "doc_date_precision": "day", "language": language}
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(documents).values(
                    id=document_id,
                    project_id=self.project_id,
                    matter_id=self.matter_id,
                    title=title,
                    latest_final_version_id=version_id,
                    **(values | facts),
                )
            )
            connection.execute(
                sa.insert(document_versions).values(
                    id=version_id,
                    document_id=document_id,
                    sha256=version_id.hex,
                    title=title,
                    status=status,
                    mime="text/plain",
                    size_bytes=1,
                    facts=own_facts(**(values | facts)),
                )
            )
            place = {"source_id": self.source_id, "external_id": str(version_id), "path": "x.txt", "name": "x.txt"}
            lies_at = connection.execute(
                sa.insert(source_objects).values(place).returning(source_objects.c.id)
            ).scalar_one()
            connection.execute(sa.insert(version_sources).values(version_id=version_id, source_object_id=lies_at))
        self.write(version_id, texts, language=language)
        return version_id

    def write(self, version_id: VersionId, texts: Sequence[str], *, language: str = "de") -> list[ChunkId]:
        """Replace the chunks of a version; return the ids that are gone."""
        rows = [
            {
                "id": chunk_id(version_id, ChunkKind.CHUNK, ordinal),
                "version_id": version_id,
                "kind": ChunkKind.CHUNK,
                "ordinal": ordinal,
                "text": text,
                "language": language,
            }
            for ordinal, text in enumerate(texts)
        ]
        with self.engine.begin() as connection:
            before = set(connection.execute(sa.select(chunks.c.id).where(chunks.c.version_id == version_id)).scalars())
            connection.execute(sa.delete(chunks).where(chunks.c.version_id == version_id))
            if rows:
                connection.execute(sa.insert(chunks), rows)
        return [ChunkId(gone) for gone in before - {row["id"] for row in rows}]

    def queue(
        self,
        version_id: VersionId,
        operation: OutboxOperation = OutboxOperation.INDEX,
        stale: Sequence[ChunkId] = (),
    ) -> int:
        """Queue a version; return the entry's id."""
        with self.engine.begin() as connection:
            entry = sa.insert(index_outbox).values(
                version_id=version_id,
                version_seq=self._seq(connection, version_id),
                operation=operation,
                stale_chunk_ids=list(stale),
            )
            return int(connection.execute(entry.returning(index_outbox.c.id)).scalar_one())

    def indexed(self, *texts: str, **facts: Any) -> VersionId:
        """Return a queued version."""
        version_id = self.version(*texts, **facts)
        self.queue(version_id)
        return version_id

    def remove(self, version_id: VersionId) -> None:
        """Delete a version from SQL."""
        with self.engine.begin() as connection:
            connection.execute(sa.delete(document_versions).where(document_versions.c.id == version_id))

    def entries(self) -> list[sa.Row[Any]]:
        """Return the outbox, oldest first."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.select(index_outbox).order_by(index_outbox.c.id)))

    def is_marked(self, version_id: VersionId) -> bool:
        """Return whether the version counts as indexed."""
        with self.engine.connect() as connection:
            marked = sa.select(document_versions.c.indexed_at).where(document_versions.c.id == version_id)
            return connection.execute(marked).scalar() is not None

    def make_all_due(self) -> None:
        """Let every lease and every wait be over."""
        with self.engine.begin() as connection:
            connection.execute(sa.update(index_outbox).values(next_try_at=sa.text("now() - interval '1 second'")))

    def _seq(self, connection: sa.Connection, version_id: UUID) -> int:
        seq = sa.select(document_versions.c.seq).where(document_versions.c.id == version_id)
        return int(connection.execute(seq).scalar() or 1)
