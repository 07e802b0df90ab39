"""The OpenAPI 3.1 document, made of the request models and the route table so that it cannot fall behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from shared.access.requests import (
    AliasList,
    AliasRead,
    AliasRemoval,
    ExplainRequest,
    GrantList,
    GrantRemoval,
    WhoRequest,
)
from shared.access.snapshots import AclSnapshot, MembershipSnapshot
from shared.catalog.requests import DocumentRead, DownloadRead, ScopeRead
from shared.runtime.answer_schemas import ANSWERS
from shared.runtime.http import PROBLEM, RETRY_AFTER_S
from shared.runtime.routes import ROUTES, Route
from shared.search.request import FilterRequest, SearchRequest

VERSION: Final = "0.1.0"
_COMPONENT: Final = "#/components/schemas/{model}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")

_SIGNED_IN_PROBLEMS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.SERVICE_UNAVAILABLE)
_OF_A_DOCUMENT = (*_SIGNED_IN_PROBLEMS, HTTPStatus.NOT_FOUND)
_OF_A_DOCUMENT_WITH_BODY = (*_OF_A_DOCUMENT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
_OF_A_SOURCE = (*_OF_A_DOCUMENT, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Operation:
    """What the document says of a route beyond its method and path. `answer` names a schema of `ANSWERS`."""

    operation_id: str
    summary: str
    answer: str
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    problems: tuple[HTTPStatus, ...] = _SIGNED_IN_PROBLEMS
    is_public: bool = False
    may_answer_bytes: bool = False


OPERATIONS: Final[Mapping[str, Operation]] = {
    "POST /search": Operation(
        "search",
        "Find passages by meaning, words and file numbers, as the caller sees them.",
        "Results",
        body=SearchRequest,
        problems=(*_SIGNED_IN_PROBLEMS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
    "POST /search/filter": Operation(
        "filter",
        "List documents by metadata alone, newest first.",
        "Results",
        body=FilterRequest,
        problems=(*_SIGNED_IN_PROBLEMS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
    "GET /documents/{document_id}": Operation(
        "readDocument",
        "Read a document's text by pages or characters, with its sources and versions.",
        "Document",
        query=DocumentRead,
        problems=_OF_A_DOCUMENT,
    ),
    "GET /documents/{document_id}/download": Operation(
        "downloadDocument",
        "Get a document's original bytes, or a link to them that lives for two minutes.",
        "Link",
        query=DownloadRead,
        problems=(*_OF_A_DOCUMENT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        may_answer_bytes=True,
    ),
    "GET /access/scope": Operation(
        "readScope", "See what one searches in: fingerprint, counts and ids.", "Scope", query=ScopeRead
    ),
    "POST /access/explain": Operation(
        "explainAccess",
        "Learn why somebody sees a document or not, version by version. For administrators.",
        "Explanation",
        body=ExplainRequest,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "POST /access/who": Operation(
        "whoSees",
        "Learn who sees a document, and who is kept out. For administrators.",
        "Beholders",
        body=WhoRequest,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "GET /projects/{project_id}/grants": Operation(
        "listProjectGrants",
        "List a project's grants with who, when and why. For administrators.",
        "Grants",
        problems=_OF_A_DOCUMENT,
    ),
    "PUT /projects/{project_id}/grants": Operation(
        "replaceProjectGrants",
        "Make this the whole list of a project's grants, or see what that would change. For administrators.",
        "GrantChange",
        body=GrantList,
        problems=_OF_A_SOURCE,
    ),
    "DELETE /projects/{project_id}/grants": Operation(
        "removeProjectGrant",
        "Take one grant off a project. For administrators.",
        "GrantChange",
        body=GrantRemoval,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "GET /documents/{document_id}/grants": Operation(
        "listDocumentGrants",
        "List a document's grants with who, when and why. For administrators.",
        "Grants",
        problems=_OF_A_DOCUMENT,
    ),
    "PUT /documents/{document_id}/grants": Operation(
        "replaceDocumentGrants",
        "Make this the whole list of a document's grants, or see what that would change. For administrators.",
        "GrantChange",
        body=GrantList,
        problems=_OF_A_SOURCE,
    ),
    "DELETE /documents/{document_id}/grants": Operation(
        "removeDocumentGrant",
        "Take one grant off a document. For administrators.",
        "GrantChange",
        body=GrantRemoval,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "GET /aliases": Operation(
        "listAliases",
        "List aliases with who, when and why. For administrators.",
        "Aliases",
        query=AliasRead,
        problems=_OF_A_DOCUMENT,
    ),
    "PUT /aliases": Operation(
        "replaceAliases",
        "Make these all aliases of a principal, or see what that would change. For administrators.",
        "AliasChange",
        body=AliasList,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "DELETE /aliases": Operation(
        "removeAlias",
        "Let two principals no longer stand for each other. For administrators.",
        "AliasChange",
        body=AliasRemoval,
        problems=_OF_A_DOCUMENT_WITH_BODY,
    ),
    "PUT /sources/{source_id}/acl": Operation(
        "replaceAcls",
        "Bring the ACLs of objects of a source, each of them whole. For tokens with the role sync.",
        "SyncReport",
        body=AclSnapshot,
        problems=_OF_A_SOURCE,
    ),
    "PUT /sources/{source_id}/memberships": Operation(
        "replaceMemberships",
        "Bring all groups of a source with all their members. For tokens with the role sync.",
        "SyncReport",
        body=MembershipSnapshot,
        problems=_OF_A_SOURCE,
    ),
    "GET /health": Operation("health", "Tell that the API is up.", "Health", problems=(), is_public=True),
    "GET /openapi.json": Operation("openapi", "This document.", "Anything", problems=(), is_public=True),
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document of every route. Raises `KeyError` for a route without an operation."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, OPERATIONS[route.key])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Knowledge Index",
            "version": VERSION,
            "description": "Permission-aware hybrid search for legal documents.",
        },
        "paths": paths,
        "components": {
            "schemas": {**_request_schemas(), **ANSWERS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "responses": {
            "200": _success(operation),
            **{str(status.value): _problem(status) for status in operation.problems},
        },
    }
    parameters = [
        *(_path_parameter(name) for name in _PARAMETER.findall(route.path)),
        *(_query_parameters(operation.query) if operation.query else ()),
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        schema = {"$ref": _COMPONENT.format(model=operation.body.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.is_public:
        described["security"] = []
    return described


def _success(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {
        "application/json": {"schema": {"$ref": _COMPONENT.format(model=operation.answer)}},
    }
    if operation.may_answer_bytes:
        content["*/*"] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": "Done.", "content": content}


def _problem(status: HTTPStatus) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": status.phrase,
        "content": {PROBLEM: {"schema": {"$ref": _COMPONENT.format(model="Problem")}}},
    }
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        described["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "const": RETRY_AFTER_S}}
        }
    if status is HTTPStatus.UNAUTHORIZED:
        described["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return described


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}


def _query_parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    properties = model.model_json_schema()["properties"]
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": _without_null(schema),
            # Repeated or joined by commas: both arrive as one list.
            **({"style": "form", "explode": False} if _without_null(schema).get("type") == "array" else {}),
        }
        for name, schema in properties.items()
    ]


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is there: a query parameter is absent, never null."""
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "title"}}
    if kept.get("default", ...) is None:
        del kept["default"]
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return {**kept, **(choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})}


def _request_schemas() -> dict[str, Any]:
    bodies = [operation.body for operation in OPERATIONS.values() if operation.body is not None]
    _, schemas = models_json_schema([(body, "validation") for body in bodies], ref_template=_COMPONENT)
    return dict(schemas["$defs"])
