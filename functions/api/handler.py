"""What anyone may ask: that the API is up, and how it is called. No data."""

from __future__ import annotations

from typing import Any

from shared.runtime.handler import Answer, LambdaContext, Public, respond


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(event, context, {"GET /health": Public(_health), "GET /openapi.json": Public(_openapi)})


def _health(_request: object) -> object:
    return {"status": "ok"}


def _openapi(_request: object) -> object:
    # Its models are of no use to a health check.
    from shared.runtime.openapi import document  # noqa: PLC0415

    return document()
