"""What administrators order about access: grants on projects and documents, and aliases."""

from __future__ import annotations

from typing import Any

from shared.access.requests import AliasList, AliasRead, AliasRemoval, GrantList, GrantPlace, GrantRemoval
from shared.runtime.handler import Answer, LambdaContext, SignedIn, needs_administrator, respond


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway."""
    return respond(
        event,
        context,
        {
            "GET /projects/{project_id}/grants": needs_administrator(_list_grants),
            "PUT /projects/{project_id}/grants": needs_administrator(_replace_grants),
            "DELETE /projects/{project_id}/grants": needs_administrator(_remove_grant),
            "GET /documents/{document_id}/grants": needs_administrator(_list_grants),
            "PUT /documents/{document_id}/grants": needs_administrator(_replace_grants),
            "DELETE /documents/{document_id}/grants": needs_administrator(_remove_grant),
            "GET /aliases": needs_administrator(_list_aliases),
            "PUT /aliases": needs_administrator(_replace_aliases),
            "DELETE /aliases": needs_administrator(_remove_alias),
        },
    )


def _list_grants(request: SignedIn) -> object:
    request.event.query_parameters()
    return request.services.access_administration.grants(
        request.caller, *_target(request), correlation_id=request.event.correlation_id
    )


def _replace_grants(request: SignedIn) -> object:
    wanted = GrantList.model_validate(request.event.json())
    return request.services.access_administration.replace_grants(
        request.caller, *_target(request), wanted, correlation_id=request.event.correlation_id
    )


def _remove_grant(request: SignedIn) -> object:
    wanted = GrantRemoval.model_validate(request.event.json())
    return request.services.access_administration.remove_grant(
        request.caller, *_target(request), wanted, correlation_id=request.event.correlation_id
    )


def _list_aliases(request: SignedIn) -> object:
    asked = AliasRead.model_validate(request.event.query_parameters(frozenset(AliasRead.model_fields)))
    return request.services.access_administration.aliases(
        request.caller, asked, correlation_id=request.event.correlation_id
    )


def _replace_aliases(request: SignedIn) -> object:
    wanted = AliasList.model_validate(request.event.json())
    return request.services.access_administration.replace_aliases(
        request.caller, wanted, correlation_id=request.event.correlation_id
    )


def _remove_alias(request: SignedIn) -> object:
    wanted = AliasRemoval.model_validate(request.event.json())
    return request.services.access_administration.remove_alias(
        request.caller, wanted, correlation_id=request.event.correlation_id
    )


def _target(request: SignedIn) -> tuple[GrantPlace, str]:
    """Return what the path names."""
    if "project_id" in request.event.path:
        return GrantPlace.PROJECT, request.event.path["project_id"]
    return GrantPlace.DOCUMENT, request.event.path["document_id"]
