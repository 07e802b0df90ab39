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
TRIES = 7
_PROGRAM = """
import json, sys, time
import site
began = time.process_time()
import functions.{function}.handler
took = (time.process_time() - began) * 1000
print(json.dumps([took, sorted(sys.modules)]))
"""


def imported(function: str) -> tuple[float, list[str]]:
    """Return the milliseconds of processor time, and all modules that were imported."""
    program = _PROGRAM.format(function=function)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    took_ms, modules = json.loads(done.stdout)
    return took_ms, modules


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_imports_no_driver_no_model_and_no_client(function: str) -> None:
    _, modules = imported(function)
    assert f"functions.{function}.handler" in modules
    assert [name for name in FORBIDDEN if name in modules] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_imports_another(function: str) -> None:
    _, modules = imported(function)
    others = [name for name in FUNCTIONS if name != function and f"functions.{name}" in modules]
    assert others == []


def test_the_search_function_is_imported_within_its_budget() -> None:
    best = min(imported("search")[0] for _ in range(TRIES))
    assert best < BUDGET_MS, f"{best:.0f} ms; look at: python -X importtime -c 'import functions.search.handler'"
