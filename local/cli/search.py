"""`ki search`."""

from __future__ import annotations

from typing import Any

import click

from local.cli.filters import filter_options, given_filters
from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.persona import persona_options
from local.cli.results import as_text
from local.sign_in import sign_in


@click.command("search")
@click.argument("query")
@persona_options
@filter_options
@click.option("--limit", type=int, default=8, show_default=True, help="How many results; at most 100.")
@click.option("--offset", type=int, default=0, help="How many results to pass over.")
@json_option
@reporting
def command(
    *, query: str, email: str, groups: tuple[str, ...], limit: int, offset: int, as_json: bool, **filters: Any
) -> ExitCode:
    """Find passages by meaning, by word or by a pasted file number, as one person sees them."""
    body = {"query": query, "limit": limit, "offset": offset, **given_filters(filters)}
    answer = sign_in(email, groups).post("/search", body)
    emit(answer, as_json=as_json, text=as_text(answer, offset=offset))
    return ExitCode.DONE if answer["results"] else ExitCode.NO
