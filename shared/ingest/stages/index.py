"""Index: see to it that a version that is not in the index is queued for it.

The chunk stage queues what it changes in its own transaction; this stage is the net below it, and the point at which
an object is handed over: the runner drains the queue through the index writer.
"""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from shared.db.engine import run_retrying
from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.ingest import outbox
from shared.ingest.contract import Services, StageInput, StageResult
from shared.types import VersionId


def index(call: StageInput, services: Services) -> StageResult:
    """Queue the version unless it is indexed or queued already."""
    version_id = VersionId(UUID(call.payload.need("version_id")))

    def work(connection: sa.Connection) -> StageResult:
        if waits_unqueued(connection, version_id):
            outbox.queue(connection, {version_id: []})
        return StageResult({})

    return run_retrying(services.engine, work)


def waits_unqueued(connection: sa.Connection, version_id: VersionId) -> bool:
    """Return whether the version is not in the index and nothing is queued that would bring it there."""
    queued = sa.exists().where(index_outbox.c.version_id == version_id, index_outbox.c.done_at.is_(None))
    waiting = sa.select(sa.true()).where(
        document_versions.c.id == version_id, document_versions.c.indexed_at.is_(None), ~queued
    )
    return connection.execute(waiting).scalar() is not None
