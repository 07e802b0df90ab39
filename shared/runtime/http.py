"""Answers: JSON, and every error as problem+json (RFC 9457) by one table.

A body never carries SQL, an index body, a path or the message of a foreign error.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import date, datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ValidationError

from shared import errors

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2

# The first class of an error's ancestors that stands here decides. What does not stand here is a fault of ours: 500.
STATUS_OF: Final[Mapping[type[BaseException], HTTPStatus]] = {
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.UnauthenticatedError: HTTPStatus.UNAUTHORIZED,
    errors.NotVisibleError: HTTPStatus.NOT_FOUND,
    errors.ConflictError: HTTPStatus.CONFLICT,
    errors.TooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.TransientError: HTTPStatus.SERVICE_UNAVAILABLE,
}
TYPE_OF: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "invalid-request",
    HTTPStatus.UNAUTHORIZED: "unauthenticated",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.CONFLICT: "conflict",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
    HTTPStatus.TOO_MANY_REQUESTS: "throttled",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal-error",
}
# Classes of SQLSTATE under which the same request may succeed later: connection, resources, operator intervention,
# rollback of a transaction, a lock that was not to be had.
_PASSING_SQLSTATES = ("08", "53", "57", "40", "55P03")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A body that is not JSON, with the headers that say what it is."""

    content: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """What an error becomes on the wire."""

    status: HTTPStatus
    detail: str | None = None
    field: str | None = None

    def document(self, correlation_id: str) -> dict[str, Any]:
        """Return the problem document."""
        members = {
            "type": f"urn:knowledge-index:problem:{TYPE_OF[self.status]}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "field": self.field,
            "correlation_id": correlation_id,
        }
        return {name: value for name, value in members.items() if value is not None}

    def headers(self) -> dict[str, str]:
        """Return the headers that HTTP asks for with this status."""
        match self.status:
            case HTTPStatus.UNAUTHORIZED:
                return {"www-authenticate": 'Bearer realm="knowledge-index"'}
            case HTTPStatus.SERVICE_UNAVAILABLE | HTTPStatus.TOO_MANY_REQUESTS:
                return {"retry-after": str(RETRY_AFTER_S)}
            case _:
                return {}


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error becomes; 500 without detail for what is not in the table."""
    if isinstance(error, ValidationError):
        return _invalid(error)
    for ancestor in type(error).__mro__:
        status = STATUS_OF.get(ancestor)
        if status is not None:
            assert isinstance(error, errors.KnowledgeIndexError)
            return Problem(status, error.message, getattr(error, "field", None))
    if _is_passing_database_error(error):
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, errors.EngineUnavailableError().message)
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR)


def problem_answer(problem: Problem, *, correlation_id: str) -> dict[str, Any]:
    """Return a problem as a function's answer to API Gateway."""
    return answer(
        problem.document(correlation_id),
        status=problem.status,
        correlation_id=correlation_id,
        headers={"content-type": PROBLEM, **problem.headers()},
    )


def answer(
    body: object, *, correlation_id: str, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a body, `Bytes` or what becomes JSON, as a function's answer to API Gateway (payload format 2.0)."""
    if isinstance(body, Bytes):
        headers = {**body.headers, **(headers or {})}
    return {
        "statusCode": int(status),
        "headers": {
            "content-type": JSON,
            # What a person may see is for that person, and only for now.
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "x-correlation-id": correlation_id,
            **(headers or {}),
        },
        "body": base64.b64encode(body.content).decode("ascii") if isinstance(body, Bytes) else to_json(body),
        "isBase64Encoded": isinstance(body, Bytes),
    }


def to_json(body: object) -> str:
    """Return JSON for values as services hand them out: ids, days, closed sets, dataclasses, models."""
    text = json.dumps(body, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate cannot be sent; texts have none, and a fault elsewhere must not become a broken answer.
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def _invalid(error: ValidationError) -> Problem:
    """Name the first wrong field. Its value is not repeated: it may be anything."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or None
    return Problem(HTTPStatus.BAD_REQUEST, str(first["msg"]).removeprefix("Value error, "), field)


def _is_passing_database_error(error: Exception) -> bool:
    from sqlalchemy import exc  # noqa: PLC0415  # only here, where something has gone wrong already

    if isinstance(error, exc.TimeoutError):  # every connection is in use
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    if error.connection_invalidated or isinstance(error, exc.InterfaceError):
        return True
    from shared.db.engine import sqlstate  # noqa: PLC0415

    return (sqlstate(error) or "").startswith(_PASSING_SQLSTATES)
