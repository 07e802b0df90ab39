"""What the service adds to a search: the whole call against a replay of the very bytes it sent to the engine.

The embedding is stubbed. Both arms use the same client, connection and warm caches; the raw arm sends the captured
`_msearch` body and takes the answer unread. The handler is compared with the service in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from bench.paired import Comparison, compared, timed_pairs
from shared.access.caller import Caller
from shared.access.grants import set_project_grants
from shared.db.engine import reading
from shared.db.tables.catalog import projects
from shared.db.tables.content import chunks
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services
from shared.runtime.memory import settle
from shared.search.request import SearchRequest, parse_search
from shared.types import Effect, ProjectId

TEAM = "bench"
"""The group of the caller that measures; the corpus is opened to it."""

_OK = 200


@dataclass(frozen=True, slots=True)
class SearchBench:
    """The comparison, and what it ran on."""

    chunks: int
    queries: int
    limit: int
    scope_size: int
    comparison: Comparison


def bench_search(
    services: Services, caller: Caller, queries: Sequence[str], *, rounds: int, limit: int | None = None
) -> SearchBench:
    """Return service against raw replay over `queries`, each `rounds` times in both arms, with a warm scope.

    Without `limit`, the default one. The caller must be in the group `TEAM`.
    """
    _open_projects(services.engine)
    requests = _requests(services, queries, limit)
    raw = _replay(services, caller, requests)

    def ours(item: int) -> None:
        services.search.search(caller, requests[item])

    timed_pairs(len(requests), ours, raw, rounds=2)  # warm
    settle()  # as a process does that has answered its first request
    comparison = compared(timed_pairs(len(requests), ours, raw, rounds=rounds))
    with services.engine.connect() as connection:
        rows = connection.execute(sa.select(sa.func.count()).select_from(chunks)).scalar_one()
    with reading(services.engine) as connection:
        scope = services.access.compile_scope(connection, caller)
    return SearchBench(rows, len(queries), requests[0].limit, scope.size, comparison)


def bench_handler(services: Services, token: str, queries: Sequence[str], *, rounds: int) -> Comparison:
    """Return the function `search`, called as API Gateway calls it, against the service alone."""
    from functions.search.handler import handler  # noqa: PLC0415  # only here

    requests = _requests(services, queries, None)
    events = [_event(query, token) for query in queries]
    caller = services.verifier.caller(f"Bearer {token}")
    _open_projects(services.engine)

    def through_handler(item: int) -> None:
        status = handler(events[item], _Invocation())["statusCode"]
        if status != _OK:
            raise AssertionError(f"the handler answered {status}")

    def service(item: int) -> None:
        services.search.search(caller, requests[item])

    before = bootstrap.forget()
    bootstrap.install(services)
    try:
        # The handler's log lines and metrics are written, as in production, but not shown.
        with redirect_stdout(StringIO()):
            timed_pairs(len(requests), through_handler, service, rounds=2)
            return compared(timed_pairs(len(requests), through_handler, service, rounds=rounds))
    finally:
        bootstrap.forget()
        if before is not None:
            bootstrap.install(before)


class _Invocation:
    aws_request_id = "bench"


def _event(query: str, token: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return {"routeKey": "POST /search", "headers": headers, "body": json.dumps({"query": query})}


def _open_projects(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        ids: list[UUID] = list(connection.execute(sa.select(projects.c.id)).scalars())
        for project_id in ids:
            grants = [(f"group:{TEAM}", Effect.ALLOW)]
            set_project_grants(connection, ProjectId(project_id), grants, by="user:bench", reason="benchmark")


def _requests(services: Services, queries: Sequence[str], limit: int | None) -> list[SearchRequest]:
    more = {} if limit is None else {"limit": limit}
    return [parse_search({"query": query, **more}, services.settings.retrieval) for query in queries]


def _replay(services: Services, caller: Caller, requests: Sequence[SearchRequest]) -> Callable[[int], None]:
    """Return what sends again what the search for one request has sent."""
    index = services.checked_index
    sent: list[bytes] = []
    index.on_request = sent.append
    try:
        for request in requests:
            services.search.search(caller, request)
    finally:
        index.on_request = None
    if len(sent) != len(requests):
        raise AssertionError(f"{len(requests)} searches sent {len(sent)} requests to the index")
    path, _ = index.multi_search_request(services.settings.retrieval.index_name, [{}])

    def raw(item: int) -> None:
        status, _ = index.raw("POST", path, sent[item])
        if status != _OK:
            raise AssertionError(f"the replay was answered with {status}")

    return raw
