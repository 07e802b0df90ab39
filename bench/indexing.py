"""What the index writer adds to indexing: draining the outbox against raw `_bulk` of the very same rows.

The embedding is stubbed and remembered, so that neither arm pays for vectors. Every round indexes the whole set into a
new index, ours and raw in turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.index.client import IndexClient, Refresh, Write
from shared.index.ensure import ensure_index
from shared.index.writer import IndexWriter
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.runtime.bootstrap import Services
from shared.settings import Settings
from shared.types import OutboxOperation

_OURS, _RAW = "ki-bench-ours", "ki-bench-raw"


@dataclass(frozen=True, slots=True)
class IndexingBench:
    """Seconds for the whole set, medians over the rounds, and their ratio."""

    versions: int
    rows: int
    rounds: int
    ours_s: float
    raw_s: float
    ratio: float


class _Recording(IndexClient):
    """The index client, keeping the writes that pass through."""

    recorded: list[Write]

    @classmethod
    def around(cls, client: IndexClient) -> _Recording:
        recording = cls.__new__(cls)
        recording.__dict__.update(client.__dict__)
        recording.recorded = []
        return recording

    def bulk(self, alias: str, writes: Sequence[Write], *, refresh: Refresh = "false") -> list[Any]:
        self.recorded.extend(writes)
        return super().bulk(alias, writes, refresh=refresh)


def bench_indexing(services: Services, *, rounds: int) -> IndexingBench:
    """Return the comparison on all versions of the database, whose embedding must be a stub with a memory.

    The index that searches use is not touched.
    """
    vectors = services.embedding
    recorded = _Recording.around(services.index)
    _drained(services, recorded, vectors)  # makes the vectors, and shows which rows there are
    writes = list(recorded.recorded)
    ours, raw = [], []
    for number in range(rounds):
        for arm in ("ours", "raw") if number % 2 == 0 else ("raw", "ours"):
            if arm == "ours":
                ours.append(_drained(services, services.index, vectors))
            else:
                raw.append(_bulked(services, writes, vectors.signature))
    _drop(services.index, _OURS)
    _drop(services.index, _RAW)
    with services.engine.connect() as connection:
        versions = connection.execute(sa.select(sa.func.count()).select_from(document_versions)).scalar_one()
    return IndexingBench(versions, len(writes), rounds, median(ours), median(raw), median(ours) / median(raw))


def _drained(services: Services, client: IndexClient, vectors: EmbeddingProvider) -> float:
    settings = _with_index(services.settings, _OURS)
    _drop(client, _OURS)
    ensure_index(client, settings.retrieval, embedding_signature=vectors.signature)
    with services.engine.begin() as connection:
        everything = sa.select(
            document_versions.c.id, document_versions.c.seq, sa.literal(OutboxOperation.INDEX.value)
        ).order_by(document_versions.c.seq)
        names = ["version_id", "version_seq", "operation"]
        connection.execute(sa.insert(index_outbox).from_select(names, everything))
    writer = IndexWriter(services.engine, client, vectors, settings)
    started = time.perf_counter()
    while True:
        report = writer.drain(500)
        if report.error or report.versions_failed:
            raise AssertionError(f"the drain failed: {report}")
        if report.versions_indexed == 0:
            break
    client.refresh(_OURS)
    return time.perf_counter() - started


def _bulked(services: Services, writes: Sequence[Write], signature: str) -> float:
    settings = _with_index(services.settings, _RAW)
    _drop(services.index, _RAW)
    ensure_index(services.index, settings.retrieval, embedding_signature=signature)
    started = time.perf_counter()
    outcomes = services.index.bulk(_RAW, writes)
    services.index.refresh(_RAW)
    took = time.perf_counter() - started
    if len(outcomes) != len(writes):
        raise AssertionError(f"{len(outcomes)} of {len(writes)} rows were answered")
    return took


def _with_index(settings: Settings, name: str) -> Settings:
    return settings.model_copy(update={"retrieval": settings.retrieval.model_copy(update={"index_name": name})})


def _drop(client: IndexClient, alias: str) -> None:
    client.request("DELETE", f"/{alias}-*?ignore_unavailable=true&allow_no_indices=true")
