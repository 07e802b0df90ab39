"""What a curious caller sends to each route, with every id of the firm; a route without probes fails the leak suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.functions.api import Api, Reply
from tests.functions.firm import WALLS, Firm

QUERIES = (
    "Kündigungsfrist",
    "Az. 7 O 90210/23",
    "3 O 111/22",
    *(canary for wall in WALLS for canary in wall.canaries),
)

Probe = Callable[[Api, Firm, str | None], Iterator[Reply]]


def search(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for query in QUERIES:
        yield api.post("/search", token, {"query": query, "limit": 100})
    for body in _filtered(firm):
        yield api.post("/search", token, {"query": "Kündigungsfrist", **body})


def search_filter(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    yield api.post("/search/filter", token, {"limit": 100})
    yield api.post("/search/filter", token, {"limit": 1})
    for body in _filtered(firm):
        yield api.post("/search/filter", token, body)


def read(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for path, document in firm.documents.items():
        yield api.get(f"/documents/{document}", token)
        for version in firm.versions.values():
            yield api.get(f"/documents/{document}", token, version_id=str(version))
        yield api.get(f"/documents/{firm.versions[path]}", token)


def download(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for path, document in firm.documents.items():
        place = f"/documents/{document}/download"
        yield api.get(place, token)
        yield api.get(place, token, version_id=str(firm.versions[path]))
        for seen_at in firm.objects.values():
            yield api.get(place, token, source_object_id=str(seen_at))


def scope(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    yield api.get("/access/scope", token)
    yield api.get("/access/scope", token, limit="1", offset="1")
    for project in firm.projects.values():
        yield api.get("/access/scope", token, project_ids=str(project))


def acls(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for source in firm.sources.values():
        for path in (*firm.objects, "nowhere"):
            body = {"as_of": "2026-01-01T00:00:00Z", "complete": True, "objects": [{"path": path, "entries": []}]}
            yield api.send("PUT", f"/sources/{source}/acl", token=token, body=body)


def memberships(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for source in firm.sources.values():
        body = {"as_of": "2026-01-01T00:00:00Z", "complete": True, "groups": []}
        yield api.send("PUT", f"/sources/{source}/memberships", token=token, body=body)


def health(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    yield api.get("/health", token)


def openapi(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    yield api.get("/openapi.json", token)


PROBES: dict[str, Probe] = {
    "POST /search": search,
    "POST /search/filter": search_filter,
    "GET /documents/{document_id}": read,
    "GET /documents/{document_id}/download": download,
    "GET /access/scope": scope,
    "PUT /sources/{source_id}/acl": acls,
    "PUT /sources/{source_id}/memberships": memberships,
    "GET /health": health,
    "GET /openapi.json": openapi,
}
PUBLIC = frozenset({"GET /health", "GET /openapi.json"})


def _filtered(firm: Firm) -> Iterator[dict[str, Any]]:
    for project in firm.projects.values():
        yield {"project_ids": [str(project)]}
        yield {"filters": {"project_id": str(project)}}
    for matter in firm.matters.values():
        yield {"filters": {"matter_id": str(matter)}}
    for status in ("draft", "final", "unknown"):
        yield {"filters": {"version_status": status}}
