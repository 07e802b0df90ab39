"""Index: see to it that a version that is not in the index is queued for it.

The stages before queue what they change in their own transactions; this stage is the net below them, and the point at
which an object is handed over: the runner drains the queue through the index writer.
"""

from __future__ import annotations

from uuid import UUID

from shared.db.engine import recording
from shared.ingest import outbox
from shared.ingest.contract import Services, StageInput, StageResult
from shared.types import VersionId


def index(call: StageInput, services: Services) -> StageResult:
    """Queue the version unless it is indexed or queued already."""
    with recording(services.engine) as connection:
        outbox.queue_if_waiting(connection, VersionId(UUID(call.payload.need("version_id"))))
    return StageResult({})
