"""Answers: JSON, and every error as problem+json (RFC 9457) by one table.

A body never carries SQL, an index body, a path or the message of a foreign error.
"""

from __future__ import annotations

import base64
import json
import sys
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
# Classes and codes of SQLSTATE under which the same request may succeed later by itself.
PASSING_SQLSTATES: Final = (
    "08",  # connection
    "53",  # resources: disk, memory, connections
    "57",  # operator intervention: shut down, starting up, cancelled
    "58",  # the system under the server: input and output
    "40001",  # serialization
    "40003",  # whether the statement was completed is not known
    "40P01",  # deadlock
    "55P03",  # a lock that was not to be had
)
# Codes under which somebody has to see to the database: nothing is wrong with the request, and nothing leaves until it
# can be recorded. Logged as faults.
UNFIT_SQLSTATES: Final = (
    "25006",  # read-only: a standby, or a server that was demoted
    "28",  # it does not let us in
    "3D000",  # there is no such database
    "42501",  # it does not let us read or write a table
    "42703",  # no such column: its schema is another release's
    "42P01",  # no such table
)


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
    is_fault: bool = False
    """Whether somebody has to see to it: logged with all but its message."""

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
    """Return the problem that an error becomes; 500 without detail for what is not in the tables."""
    if isinstance(error, ValidationError):
        return _invalid(error)
    for ancestor in type(error).__mro__:
        status = STATUS_OF.get(ancestor)
        if status is not None:
            assert isinstance(error, errors.KnowledgeIndexError)
            is_fault = status is HTTPStatus.SERVICE_UNAVAILABLE and _is_unfit(sqlstate_behind(error))
            return Problem(status, error.message, getattr(error, "field", None), is_fault=is_fault)
    return _database_problem(error) or Problem(HTTPStatus.INTERNAL_SERVER_ERROR, is_fault=True)


def sqlstate_behind(error: BaseException) -> str | None:
    """Return PostgreSQL's code for the error or for the first of its causes that has one."""
    # Where no driver was loaded, no error is one of PostgreSQL.
    if "pg8000" not in sys.modules or "sqlalchemy" not in sys.modules:
        return None
    from shared.db.engine import sqlstate  # noqa: PLC0415

    current: BaseException | None = error
    seen = set[int]()
    while current is not None and id(current) not in seen:
        if (code := sqlstate(current)) is not None:
            return code
        seen.add(id(current))
        current = current.__cause__
    return None


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


def _database_problem(error: Exception) -> Problem | None:
    """Return the problem of a database that is away, busy or unfit; None for what is wrong with our statement."""
    from sqlalchemy import exc  # noqa: PLC0415  # only here, where something has gone wrong already

    # TimeoutError: every connection is in use.
    if not isinstance(error, exc.DBAPIError | exc.TimeoutError):
        return None
    code = sqlstate_behind(error)
    is_unfit = _is_unfit(code)
    is_away = (
        isinstance(error, exc.TimeoutError | exc.InterfaceError)
        or (isinstance(error, exc.DBAPIError) and error.connection_invalidated)
        or (code or "").startswith(PASSING_SQLSTATES)
    )
    if not (is_unfit or is_away):
        return None
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, errors.EngineUnavailableError().message, is_fault=is_unfit)


def _is_unfit(code: str | None) -> bool:
    return code is not None and code.startswith(UNFIT_SQLSTATES)
