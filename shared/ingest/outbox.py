"""What the index must still learn, written in the transaction that makes it true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.types import ChunkId, OutboxOperation, VersionId


def queue(connection: sa.Connection, stale: Mapping[VersionId, Sequence[ChunkId]]) -> None:
    """Queue these versions for the index, each with the chunk ids that no longer exist.

    Until the rows are written the versions count as not indexed.
    """
    versions = sorted(stale)
    if not versions:
        return
    marked = connection.execute(
        sa.update(document_versions)
        .where(document_versions.c.id.in_(versions))
        .values(indexed_at=None)
        .returning(document_versions.c.id, document_versions.c.seq)
    )
    seqs = {VersionId(UUID(str(found))): seq for found, seq in marked}
    rows = [
        {
            "version_id": version,
            "version_seq": seqs[version],
            "operation": OutboxOperation.INDEX,
            "stale_chunk_ids": sorted(stale[version]),
        }
        for version in versions
        if version in seqs
    ]
    connection.execute(sa.insert(index_outbox), rows)


def open_count(connection: sa.Connection) -> int:
    """Return how many entries are still to be written to the index."""
    open_entries = sa.select(sa.func.count()).select_from(index_outbox).where(index_outbox.c.done_at.is_(None))
    return int(connection.execute(open_entries).scalar_one())
