"""The repair of the index: what it lacks or has too many is queued, and tombstones without a purpose are removed."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from shared.index.client import IndexClient
from shared.index.mapping import fitting_alias
from shared.index.reconcile import purge, sweep
from shared.settings import Settings

# A write that was sent before is answered, or given up, within a day.
_SETTLED_AFTER_S: Final = 86_400.0


class IndexRepair:
    """Compares the whole index with SQL: for a schedule, not for a request."""

    def __init__(self, engine: sa.Engine, client: IndexClient, settings: Settings, *, embedding_signature: str) -> None:
        self._engine = engine
        self._client = client
        self._alias = fitting_alias(settings.retrieval, embedding_signature=embedding_signature)

    def run(self) -> int:
        """Queue every version that is not in the index as SQL has it; return how many."""
        with self._engine.begin() as connection:
            queued = sweep(connection, self._client, self._alias)
        with self._engine.begin() as connection:
            purge(connection, self._client, self._alias, older_than_s=_SETTLED_AFTER_S)
        return queued
