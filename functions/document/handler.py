"""One document: its text, and its original bytes."""

from __future__ import annotations

from typing import Any

from shared.catalog.requests import DocumentRead, DownloadRead
from shared.runtime.downloads import download_answer
from shared.runtime.handler import Answer, LambdaContext, SignedIn, respond


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(
        event,
        context,
        {"GET /documents/{document_id}": _read, "GET /documents/{document_id}/download": _download},
    )


def _read(request: SignedIn) -> object:
    asked = DocumentRead.model_validate(request.event.query_parameters(frozenset(DocumentRead.model_fields)))
    return request.services.catalog.read(
        request.caller, request.event.path["document_id"], asked, correlation_id=request.event.correlation_id
    )


def _download(request: SignedIn) -> object:
    asked = DownloadRead.model_validate(request.event.query_parameters(frozenset(DownloadRead.model_fields)))
    return download_answer(
        request.services.catalog.download(
            request.caller, request.event.path["document_id"], asked, correlation_id=request.event.correlation_id
        )
    )
