"""What the index must still learn, written in the transaction that makes it true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.prepared import hot
from shared.db.tables.base import Uuid
from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest.recordset import recordset
from shared.types import ChunkId, OutboxOperation, VersionId


def queue(connection: sa.Connection, stale: Mapping[VersionId, Sequence[ChunkId]]) -> None:
    """Queue these versions for the index, each with the chunk ids that no longer exist.

    Until the rows are written the versions count as not indexed.
    """
    if not stale:
        return
    body = [{"version_id": str(version), "gone": [str(one) for one in sorted(gone)]} for version, gone in stale.items()]
    connection.execute(_queue(), {"stale": body})


@cache
def _queue() -> sa.Insert:
    """Mark versions as not indexed and queue them, in one statement; one that does not exist is left out."""
    stale = recordset("stale", [sa.column("version_id", Uuid), sa.column("gone", pg.JSONB)])
    marked = (
        sa.update(document_versions)
        .where(document_versions.c.id == stale.c.version_id)
        .values(indexed_at=None)
        .returning(document_versions.c.id, document_versions.c.seq, stale.c.gone)
        .cte("marked")
    )
    gone = (
        sa.func.jsonb_array_elements_text(marked.c.gone)
        .table_valued(sa.column("id", sa.Text), name="one")
        .render_derived()
    )
    ids = sa.select(sa.func.array_agg(sa.cast(gone.c.id, Uuid))).select_from(gone).scalar_subquery()
    nothing = sa.cast(pg.array([]), pg.ARRAY(Uuid))
    return sa.insert(index_outbox).from_select(
        ["version_id", "version_seq", "operation", "stale_chunk_ids"],
        sa.select(
            marked.c.id,
            marked.c.seq,
            sa.literal(OutboxOperation.INDEX.value),
            sa.func.coalesce(ids, nothing),
        ).order_by(marked.c.id),
    )


def queue_seen_only_at(connection: sa.Connection, object_ids: sa.Select[tuple[UUID]]) -> int:
    """Queue the versions that lie nowhere but at these objects; return how many.

    The index drops or takes back their rows, whichever SQL says when they are written.
    """
    here, elsewhere, places = (
        version_sources.alias("here"),
        version_sources.alias("elsewhere"),
        source_objects.alias("places"),
    )
    among = object_ids.cte("among")
    others = (
        sa.select(sa.literal_column("1"))
        .select_from(elsewhere.join(places, places.c.id == elsewhere.c.source_object_id))
        .where(
            elsewhere.c.version_id == here.c.version_id,
            places.c.deleted_at.is_(None),
            places.c.id.not_in(sa.select(among.c.id)),
        )
        .exists()
    )
    wanted = sa.select(here.c.version_id).where(here.c.source_object_id.in_(sa.select(among.c.id)), ~others)
    # In order, like everybody who queues, so that two never wait for each other.
    locked = (
        sa.select(document_versions.c.id)
        .where(document_versions.c.id.in_(wanted))
        .order_by(document_versions.c.id)
        .with_for_update(key_share=True)
        .cte("locked")
    )
    marked = (
        sa.update(document_versions)
        .where(document_versions.c.id.in_(sa.select(locked.c.id)))
        .values(indexed_at=None)
        .returning(document_versions.c.id, document_versions.c.seq)
        .cte("marked")
    )
    rows = sa.select(marked.c.id, marked.c.seq, sa.literal(OutboxOperation.INDEX.value)).order_by(marked.c.id)
    insert = sa.insert(index_outbox).from_select(["version_id", "version_seq", "operation"], rows)
    return int(connection.execute(insert).rowcount)


def queue_if_waiting(connection: sa.Connection, version_id: VersionId) -> None:
    """Queue the version unless it is in the index or queued already."""
    connection.execute(_queue_if_waiting(), {"waiting_id": version_id})


@cache
def _queue_if_waiting() -> sa.Insert:
    queued = sa.exists().where(index_outbox.c.version_id == document_versions.c.id, index_outbox.c.done_at.is_(None))
    waiting = sa.select(document_versions.c.id, document_versions.c.seq, sa.literal(OutboxOperation.INDEX.value)).where(
        document_versions.c.id == sa.bindparam("waiting_id"), document_versions.c.indexed_at.is_(None), ~queued
    )
    return hot(sa.insert(index_outbox).from_select(["version_id", "version_seq", "operation"], waiting))


def open_count(connection: sa.Connection) -> int:
    """Return how many entries are still to be written to the index."""
    open_entries = sa.select(sa.func.count()).select_from(index_outbox).where(index_outbox.c.done_at.is_(None))
    return int(connection.execute(open_entries).scalar_one())
