"""How every command answers: one JSON document or text on stdout, errors on stderr, and the exit code."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn, ParamSpec

import click

from local.processes import StartError
from shared.errors import InvalidRequestError, KnowledgeIndexError, TransientError

P = ParamSpec("P")


class ExitCode(IntEnum):
    """What the shell gets."""

    DONE = 0
    NO = 1  # the answer is "no", or some inputs failed
    WRONG_USE = 2
    ENGINE_AWAY = 3


# Control characters but tab and line feed, and the marks that turn the direction of writing.
_COMMANDS_A_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


def emit(document: Any, *, as_json: bool, text: str | None = None) -> None:
    """Print the answer: the document as JSON, or `text` for people (the indented document without one)."""
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False, default=str))
    else:
        click.echo(
            harmless(text) if text is not None else json.dumps(document, ensure_ascii=False, indent=2, default=str)
        )


def note(message: str) -> None:
    """Tell what goes on, on stderr."""
    click.echo(harmless(message), err=True)


def harmless(text: str) -> str:
    """Return `text` without what a terminal would obey: names and texts are whatever their authors made them."""
    return _COMMANDS_A_TERMINAL.sub("\ufffd", text)


def reporting(command: Callable[P, ExitCode | None]) -> Callable[P, NoReturn]:
    """Return the command as click runs it: its result, or its error, becomes the exit code.

    With `--json` an error is a JSON document on stdout, too. Put it below the options, above the function.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        try:
            code = command(*args, **kwargs) or ExitCode.DONE
        except (KnowledgeIndexError, StartError) as error:
            code = exit_code_of(error)
            if kwargs.get("as_json"):
                emit({"error": {"type": type(error).__name__, "message": str(error)}}, as_json=True)
            note(f"Error: {error}")
        except Exception as error:
            if not _is_of_an_older_schema(error):
                raise
            message = "the database was made by another version of the product; run ki up to bring it up to date"
            code = ExitCode.NO
            if kwargs.get("as_json"):
                emit({"error": {"type": "SchemaError", "message": message}}, as_json=True)
            note(f"Error: {message}")
        sys.exit(code)

    return run


def _is_of_an_older_schema(error: Exception) -> bool:
    """Tell whether the database does not know a table, a column or a function that this version uses."""
    from shared.db.engine import sqlstate  # noqa: PLC0415  # a command without a database does without the driver

    return sqlstate(error) in {"42P01", "42703", "42883"}


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of an error."""
    if isinstance(error, StartError | TransientError):
        return ExitCode.ENGINE_AWAY
    return ExitCode.WRONG_USE if isinstance(error, InvalidRequestError) else ExitCode.NO
