"""Lists by metadata alone."""

from __future__ import annotations

from typing import Any

from shared.runtime.handler import Answer, LambdaContext, SignedIn, respond
from shared.search.request import parse_filter


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(event, context, {"POST /search/filter": _filter})


def _filter(request: SignedIn) -> object:
    asked = parse_filter(request.event.json())
    return request.services.search.filter(request.caller, asked, correlation_id=request.event.correlation_id)
