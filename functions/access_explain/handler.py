"""What administrators ask about others' access: why somebody sees a document or not, and who does."""

from __future__ import annotations

from typing import Any

from shared.access.requests import ExplainRequest, WhoRequest
from shared.runtime.handler import Answer, LambdaContext, SignedIn, needs_administrator, respond


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(
        event,
        context,
        {
            "POST /access/explain": needs_administrator(_explain),
            "POST /access/who": needs_administrator(_who),
        },
    )


def _explain(request: SignedIn) -> object:
    asked = ExplainRequest.model_validate(request.event.json())
    return request.services.access_inquiries.explain(request.caller, asked, correlation_id=request.event.correlation_id)


def _who(request: SignedIn) -> object:
    asked = WhoRequest.model_validate(request.event.json())
    return request.services.access_inquiries.who(request.caller, asked, correlation_id=request.event.correlation_id)
