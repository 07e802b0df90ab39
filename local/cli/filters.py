"""The metadata filters as options, one for each filter of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FILTERS = {
    "project_id": "Only this project.",
    "matter_id": "Only this matter.",
    "doc_type": "Only this document type and what lies below it.",
    "version_status": "draft, final, executed or unknown.",
    "language": "de, en or und.",
    "date_from": "First day, such as 2024-01-31.",
    "date_to": "Last day, included.",
    "clause_type": "Only clauses of this type.",
    "chunk_kind": "chunk, profile or clause.",
}


def filter_options(command: F) -> F:
    """Return the command with an option for each metadata filter; the values arrive under the filters' names."""
    for name, text in reversed(_FILTERS.items()):
        command = click.option("--" + name.replace("_", "-"), name, default=None, help=text)(command)
    return command


def given_filters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body's `filters` object, or nothing when no filter was given."""
    given = {name: value for name, value in values.items() if name in _FILTERS and value is not None}
    return {"filters": given} if given else {}
