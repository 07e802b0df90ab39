"""Errors as problems, and values as JSON."""

from __future__ import annotations

import base64
import inspect
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from pg8000.exceptions import DatabaseError
from pydantic import BaseModel, Field

from shared import errors
from shared.errors import InvalidRequestError, KnowledgeIndexError
from shared.runtime.http import Bytes, answer, problem_answer, problem_of, to_json

SECRET = "zzgeheim"


def every_error() -> list[KnowledgeIndexError]:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, KnowledgeIndexError)]
    return [kind("message") for kind in classes]


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_every_error_of_the_product_has_its_status(error: KnowledgeIndexError) -> None:
    expected = {
        errors.InvalidRequestError: 400,
        errors.UnauthenticatedError: 401,
        errors.NotVisibleError: 404,
        errors.ConflictError: 409,
        errors.TooLargeError: 413,
        errors.ThrottledError: 429,
        errors.TransientError: 503,
        KnowledgeIndexError: 500,
    }
    assert problem_of(error).status == next(expected[kind] for kind in type(error).__mro__ if kind in expected)


def test_a_fault_of_ours_says_nothing_about_itself() -> None:
    for error in (
        ValueError(SECRET),
        KeyError(SECRET),
        errors.MisconfiguredError(SECRET),
        errors.PermanentError(SECRET),
    ):
        given = problem_answer(problem_of(error), correlation_id="c-1")
        assert given["statusCode"] == 500
        assert SECRET not in json.dumps(given)
        assert json.loads(given["body"]) == {
            "type": "urn:knowledge-index:problem:internal-error",
            "title": "Internal Server Error",
            "status": 500,
            "correlation_id": "c-1",
        }


def database_error(code: str, kind: type[sa.exc.DBAPIError] = sa.exc.ProgrammingError) -> Exception:
    return kind(f"SELECT {SECRET}", {}, DatabaseError({"C": code, "M": SECRET}))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (database_error("08006"), 503),
        (database_error("53300"), 503),
        (database_error("57014"), 503),
        (database_error("57P01"), 503),
        (database_error("40001"), 503),
        (database_error("55P03"), 503),
        (database_error("42P01"), 500),
        (database_error("22P02"), 500),
        (database_error("23505"), 500),
        (sa.exc.TimeoutError(SECRET), 503),
        (sa.exc.InterfaceError(SECRET, {}, Exception(SECRET)), 503),
        (sa.exc.OperationalError(SECRET, {}, Exception(SECRET), connection_invalidated=True), 503),
        (sa.exc.InvalidRequestError(SECRET), 500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_database_passes_or_is_ours(error: Exception, status: int) -> None:
    given = problem_answer(problem_of(error), correlation_id="c-1")
    assert given["statusCode"] == status
    assert ("retry-after" in given["headers"]) is (status == 503)
    assert SECRET not in json.dumps(given)


class Asked(BaseModel):
    limit: int = Field(ge=1)


def test_a_wrong_field_is_named_and_its_value_is_not_repeated() -> None:
    with pytest.raises(ValueError) as refused:
        Asked.model_validate({"limit": SECRET})
    problem = problem_of(refused.value)
    assert (problem.status, problem.field) == (HTTPStatus.BAD_REQUEST, "limit")
    assert SECRET not in str(problem.detail)
    assert problem_of(InvalidRequestError("no", field="x")).field == "x"


@dataclass(frozen=True)
class Value:
    day: date
    at: datetime


def test_values_become_json() -> None:
    body = {
        "id": UUID(int=1),
        "value": Value(date(2024, 1, 31), datetime(2024, 1, 31, tzinfo=UTC)),
        "model": Asked(limit=1),
        "text": "Kündigung \ud800",
        "status": HTTPStatus.OK,
    }
    assert json.loads(to_json(body)) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "value": {"day": "2024-01-31", "at": "2024-01-31T00:00:00+00:00"},
        "model": {"limit": 1},
        "text": "Kündigung ?",
        "status": 200,
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {"a": {1, 2}}])
def test_what_is_no_json_is_an_error_and_never_a_broken_answer(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        to_json(value)


def test_answers_are_for_one_person_and_for_now() -> None:
    given = answer({"a": 1}, correlation_id="c-1")
    assert given["headers"]["cache-control"] == "no-store"
    assert given["headers"]["x-content-type-options"] == "nosniff"
    assert given["headers"]["x-correlation-id"] == "c-1"
    packed = answer(Bytes(b"\x00\xff", {"content-type": "image/png"}), correlation_id="c-1")
    assert packed["isBase64Encoded"] is True
    assert base64.b64decode(packed["body"]) == b"\x00\xff"
    assert packed["headers"]["content-type"] == "image/png"
