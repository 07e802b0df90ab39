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


# Each code with its status, and whether it is logged as a fault.
SQLSTATES = {
    "08000": (503, False),
    "08001": (503, False),
    "08003": (503, False),
    "08006": (503, False),
    "08P01": (503, False),
    "22P02": (500, True),
    "23505": (500, True),
    "23514": (500, True),
    "25006": (503, True),
    "25P02": (500, True),
    "28000": (503, True),
    "28P01": (503, True),
    "3D000": (503, True),
    "40000": (500, True),
    "40001": (503, False),
    "40002": (500, True),
    "40003": (503, False),
    "40P01": (503, False),
    "42501": (503, True),
    "42601": (500, True),
    "42703": (503, True),
    "42883": (500, True),
    "42P01": (503, True),
    "53000": (503, False),
    "53100": (503, False),
    "53200": (503, False),
    "53300": (503, False),
    "55006": (500, True),
    "55P03": (503, False),
    "57014": (503, False),
    "57P01": (503, False),
    "57P02": (503, False),
    "57P03": (503, False),
    "57P05": (503, False),
    "58000": (503, False),
    "58030": (503, False),
    "XX000": (500, True),
    "XX001": (500, True),
}


@pytest.mark.parametrize("code", SQLSTATES)
def test_a_code_of_the_database_passes_or_is_a_fault(code: str) -> None:
    _is_answered(database_error(code), *SQLSTATES[code])


@pytest.mark.parametrize(
    ("error", "status", "is_fault"),
    [
        (sa.exc.TimeoutError(SECRET), 503, False),
        (sa.exc.InterfaceError(SECRET, {}, Exception(SECRET)), 503, False),
        (sa.exc.OperationalError(SECRET, {}, Exception(SECRET), connection_invalidated=True), 503, False),
        (sa.exc.OperationalError(SECRET, {}, Exception(SECRET)), 500, True),
        (sa.exc.InvalidRequestError(SECRET), 500, True),
        (DatabaseError({"C": "42P01", "M": SECRET}), 500, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_database_without_a_code_passes_or_is_ours(
    error: Exception, status: int, *, is_fault: bool
) -> None:
    _is_answered(error, status, is_fault=is_fault)


def test_an_unfit_database_is_a_fault_however_the_engine_names_it() -> None:
    for code, is_fault in (("25006", True), ("57P01", False)):
        away = errors.EngineUnavailableError()
        away.__cause__ = DatabaseError({"C": code, "M": SECRET})
        _is_answered(away, 503, is_fault=is_fault)


def _is_answered(error: Exception, status: int, is_fault: bool) -> None:  # as the table has it
    problem = problem_of(error)
    assert problem.is_fault is is_fault
    given = problem_answer(problem, correlation_id="c-1")
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
