"""What the service adds to a search: the whole call against a replay of the very bytes it sent to the engine.

The embedding is stubbed with vectors made beforehand. Both arms use the same client, connection and warm caches; the
raw arm sends the captured `_msearch` body and takes the answer unread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from bench.paired import Comparison, compared, timed_pairs
from shared.access.caller import Caller
from shared.access.grants import set_project_grants
from shared.db.tables.catalog import projects
from shared.db.tables.content import chunks
from shared.providers.embedding.protocol import Vector
from shared.runtime.bootstrap import Services, build
from shared.search.request import parse_search
from shared.types import Effect, Principal, ProjectId

_TEAM = "group:bench"
CALLER = Caller("bench", frozenset({Principal("user:bench"), Principal(_TEAM)}))


@dataclass(frozen=True, slots=True)
class SearchBench:
    """The comparison, and what it ran on."""

    chunks: int
    queries: int
    scope_size: int
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An embedding provider that only knows vectors made beforehand."""

    model_id: str
    dimensions: int
    signature: str
    vectors: Mapping[str, Vector]

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return [self.vectors[text] for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise AssertionError(f"a search embeds no passage, but {len(texts)} came")


def bench_search(services: Services, queries: Sequence[str], *, rounds: int) -> SearchBench:
    """Return the comparison over `queries`, each `rounds` times in both arms, as a caller with a warm scope."""
    _open_projects(services.engine)
    measured = _with_prepared_vectors(services, queries)
    alias = measured.settings.retrieval.index_name
    requests = [parse_search({"query": query}, measured.settings.retrieval) for query in queries]
    sent: list[bytes] = []
    index = measured.checked_index
    index.on_request = sent.append
    for request in requests:
        measured.search.search(CALLER, request)
    index.on_request = None
    if len(sent) != len(requests):
        raise AssertionError(f"{len(requests)} searches sent {len(sent)} requests to the index")
    path, _ = index.multi_search_request(alias, [{}])

    def ours(item: int) -> None:
        measured.search.search(CALLER, requests[item])

    def raw(item: int) -> None:
        status, _ = index.raw("POST", path, sent[item])
        if status != 200:  # noqa: PLR2004
            raise AssertionError(f"the replay was answered with {status}")

    timed_pairs(len(requests), ours, raw, rounds=2)  # warm
    comparison = compared(timed_pairs(len(requests), ours, raw, rounds=rounds))
    with measured.engine.connect() as connection:
        rows = connection.execute(sa.select(sa.func.count()).select_from(chunks)).scalar_one()
        scope = measured.access.compile_scope(connection, CALLER)
    return SearchBench(rows, len(queries), scope.size, comparison)


def _with_prepared_vectors(services: Services, queries: Sequence[str]) -> Services:
    model = services.embedding
    wanted = [parse_search({"query": query}, services.settings.retrieval).query for query in queries]
    vectors = dict(zip(wanted, model.embed_queries(wanted), strict=True))
    stub = _Prepared(model.model_id, model.dimensions, model.signature, vectors)
    return build(services.settings, embedding=stub)


def _open_projects(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        ids: list[UUID] = list(connection.execute(sa.select(projects.c.id)).scalars())
        for project_id in ids:
            grants = [(_TEAM, Effect.ALLOW)]
            set_project_grants(connection, ProjectId(project_id), grants, by="user:bench", reason="benchmark")
