"""Ranked search, and what the caller searches in."""

from __future__ import annotations

from typing import Any

from shared.catalog.requests import ScopeRead
from shared.runtime.handler import Answer, LambdaContext, SignedIn, respond
from shared.runtime.parameters import listed
from shared.search.request import parse_search


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(event, context, {"POST /search": _search, "GET /access/scope": _scope})


def _search(request: SignedIn) -> object:
    asked = parse_search(request.event.json(), request.services.settings.retrieval)
    return request.services.search.search(request.caller, asked, correlation_id=request.event.correlation_id)


def _scope(request: SignedIn) -> object:
    given = request.event.query_parameters(frozenset(ScopeRead.model_fields))
    asked = ScopeRead.model_validate(listed(given, "project_ids"))
    return request.services.scope_previews.preview(request.caller, asked, correlation_id=request.event.correlation_id)
