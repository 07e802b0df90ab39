"""Which function answers which route: one list for the local server, the infrastructure and the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the HTTP API. `function` is the folder below `functions/` whose handler answers."""

    method: str
    path: str
    function: str

    @property
    def key(self) -> str:
        """The route key as API Gateway writes it."""
        return f"{self.method} {self.path}"


ROUTES: tuple[Route, ...] = (
    Route("POST", "/search", "search"),
    Route("POST", "/search/filter", "search_filter"),
    Route("GET", "/documents/{document_id}", "document"),
    Route("GET", "/documents/{document_id}/download", "document"),
    Route("GET", "/access/scope", "search"),
    Route("POST", "/access/explain", "access_explain"),
    Route("POST", "/access/who", "access_explain"),
    Route("GET", "/projects/{project_id}/grants", "access_admin"),
    Route("PUT", "/projects/{project_id}/grants", "access_admin"),
    Route("DELETE", "/projects/{project_id}/grants", "access_admin"),
    Route("GET", "/documents/{document_id}/grants", "access_admin"),
    Route("PUT", "/documents/{document_id}/grants", "access_admin"),
    Route("DELETE", "/documents/{document_id}/grants", "access_admin"),
    Route("GET", "/aliases", "access_admin"),
    Route("PUT", "/aliases", "access_admin"),
    Route("DELETE", "/aliases", "access_admin"),
    Route("PUT", "/sources/{source_id}/acl", "access_sync"),
    Route("PUT", "/sources/{source_id}/memberships", "access_sync"),
    Route("GET", "/health", "api"),
    Route("GET", "/openapi.json", "api"),
)
