"""What a curious caller sends to each route, with every id of the firm; a route without probes fails the leak suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from shared.runtime.routes import ROUTES
from tests.functions.api import Api, Reply
from tests.functions.firm import WALLS, Firm

QUERIES = (
    "Kündigungsfrist",
    "Az. 7 O 90210/23",
    "3 O 111/22",
    *(canary for wall in WALLS for canary in wall.canaries),
)

NOBODYS = UUID(int=1)

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


def explained(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for document in firm.documents.values():
        for who in ({"subject": "anna@kanzlei.example", "groups": ["nord-team"]}, {"principals": ["role:admin"]}):
            yield api.post("/access/explain", token, {"document_id": str(document), **who})
    yield api.post("/access/explain", token, {"document_id": str(NOBODYS), "subject": "anna@kanzlei.example"})


def beheld(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    for document in firm.documents.values():
        yield api.post("/access/who", token, {"document_id": str(document), "limit": 3})
    yield api.post("/access/who", token, {"document_id": str(NOBODYS)})


def granted(kind: str) -> dict[str, Probe]:
    """Reads, and changes that an administrator only tries."""

    def places(firm: Firm) -> list[str]:
        targets = firm.projects if kind == "project" else firm.documents
        return [f"/{kind}s/{target}/grants" for target in (*targets.values(), NOBODYS)]

    def listed(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
        for place in places(firm):
            yield api.get(place, token)

    def replaced(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
        for place in places(firm):
            body = {"grants": [{"principal": "group:nobody"}], "dry_run": True}
            yield api.send("PUT", place, token=token, body=body)

    def removed(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
        for place in places(firm):
            body = {"principal": "group:nord-team", "effect": "allow", "dry_run": True}
            yield api.send("DELETE", place, token=token, body=body)

    route = f"/{kind}s/{{{kind}_id}}/grants"
    return {f"GET {route}": listed, f"PUT {route}": replaced, f"DELETE {route}": removed}


def aliases(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    yield api.get("/aliases", token)
    yield api.get("/aliases", token, principal="user:paula@kanzlei.example", limit="1")


def alias_lists(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    body = {"principal": "user:dora@kanzlei.example", "aliases": ["role:admin"], "reason": "x", "dry_run": True}
    yield api.send("PUT", "/aliases", token=token, body=body)


def alias_removals(api: Api, firm: Firm, token: str | None) -> Iterator[Reply]:
    body = {"principal": "user:dora@kanzlei.example", "alias": "role:admin", "reason": "x", "dry_run": True}
    yield api.send("DELETE", "/aliases", token=token, body=body)


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
    "POST /access/explain": explained,
    "POST /access/who": beheld,
    **granted("project"),
    **granted("document"),
    "GET /aliases": aliases,
    "PUT /aliases": alias_lists,
    "DELETE /aliases": alias_removals,
    "PUT /sources/{source_id}/acl": acls,
    "PUT /sources/{source_id}/memberships": memberships,
    "GET /health": health,
    "GET /openapi.json": openapi,
}
PUBLIC = frozenset({"GET /health", "GET /openapi.json"})
ADMINISTRATION = frozenset(route.key for route in ROUTES if route.function in {"access_explain", "access_admin"})
SYNCHRONISATION = frozenset(route.key for route in ROUTES if route.function == "access_sync")


def _filtered(firm: Firm) -> Iterator[dict[str, Any]]:
    for project in firm.projects.values():
        yield {"project_ids": [str(project)]}
        yield {"filters": {"project_id": str(project)}}
    for matter in firm.matters.values():
        yield {"filters": {"matter_id": str(matter)}}
    for status in ("draft", "final", "unknown"):
        yield {"filters": {"version_status": status}}
