"""A document shows what was read from its latest final version, in its row and in its profile."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from shared.ingest import chunk_store, outbox
from shared.ingest.contract import Services
from shared.ingest.facts import Facts
from shared.ingest.families import latest_final
from shared.ingest.stages import version_rows
from shared.ingest.stages.profile import MatterNames, profile_row, text_of_bytes
from shared.text.converted import ConvertedText
from shared.types import ChunkId, ChunkKind, DocumentId, VersionId


def refresh_document(
    connection: sa.Connection,
    services: Services,
    document_id: DocumentId,
    matter: MatterNames,
    *,
    changed: Iterable[VersionId] = (),
    unchunked: VersionId | None = None,
) -> None:
    """Bring the document's row and its profile up to its versions, and queue the versions whose index rows change.

    Those are the `changed` ones, the version that the profile leaves, and the one at which it is now. `unchunked` is a
    version whose chunks are still to be written: it is queued with them. The caller holds the lock on the document's
    place.
    """
    chain = version_rows.load_chain(connection, document_id)
    chosen = latest_final([one.link for one in chain])
    latest = next(one for one in chain if one.version_id == chosen)
    version_rows.show(connection, document_id, chosen, latest.facts)
    rows = []
    if services.settings.retrieval.profile_embeddings:
        text = text_of_bytes(connection, services, latest.sha256)
        rows = profile_of(chosen, latest.facts, matter, text)
    stale = {version: list[ChunkId]() for version in changed}
    stale |= chunk_store.replace(connection, [one.version_id for one in chain], ChunkKind.PROFILE, rows)
    stale.pop(unchunked, None)  # type: ignore[arg-type] # None is no version
    outbox.queue(connection, stale)


def profile_of(
    version_id: VersionId, facts: Facts, matter: MatterNames, text: ConvertedText | None
) -> list[chunk_store.Row]:
    """Return the profile as rows: none while the version has no text."""
    return [] if text is None else [profile_row(version_id, facts, matter, text.text)]
