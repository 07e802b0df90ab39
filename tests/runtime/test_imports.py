"""What a cold start pays for: a function's import, measured in fresh processes by processor time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shared.runtime.routes import ROUTES

FUNCTIONS = sorted({route.function for route in ROUTES})
# Drivers, models and clients are imported by the part that needs them, when it is made.
FORBIDDEN = (
    "opensearchpy",
    "pg8000",
    "jwt",
    "cryptography",
    "boto3",
    "botocore.session",
    "alembic",
    "numpy",
    "onnxruntime",
    "lxml",
    "pypdfium2",
    "sqlalchemy",
    "requests",
    "urllib3",
    "pyroaring",
    "openapi_spec_validator",
)
BUDGET_MS = 400.0
# On a machine that is slow or shared all imports take longer alike: then the validation library alone, which is half
# of the budget, is the measure.
TIMES_THE_REFERENCE = 2.0
REFERENCE = "from pydantic import BaseModel"
TRIES = 7
_PROGRAM = """
import json, sys, time
began = time.process_time()
{statement}
took = (time.process_time() - began) * 1000
print(json.dumps([took, sorted(sys.modules)]))
"""


def imported(statement: str) -> tuple[float, list[str]]:
    """Return the milliseconds of processor time, and all modules that were imported."""
    program = _PROGRAM.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    took_ms, modules = json.loads(done.stdout)
    return took_ms, modules


def handler_of(function: str) -> str:
    return f"import functions.{function}.handler"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_imports_no_driver_no_model_no_client_and_no_other_function(function: str) -> None:
    _, modules = imported(handler_of(function))
    assert f"functions.{function}.handler" in modules
    others = tuple(f"functions.{name}" for name in FUNCTIONS if name != function)
    assert [name for name in (*FORBIDDEN, *others) if name in modules] == []


def test_the_search_function_is_imported_within_its_budget() -> None:
    pairs = [(imported(handler_of("search"))[0], imported(REFERENCE)[0]) for _ in range(TRIES)]
    best, reference = (min(column) for column in zip(*pairs, strict=True))
    assert best < max(BUDGET_MS, TIMES_THE_REFERENCE * reference), (
        f"{best:.0f} ms, the reference {reference:.0f}; look at: python -X importtime -c '{handler_of('search')}'"
    )
