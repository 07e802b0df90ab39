"""`ki filter`."""

from __future__ import annotations

from typing import Any

import click

from local.cli.filters import filter_options, given_filters
from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.persona import persona_options
from local.cli.results import as_text
from local.sign_in import sign_in


@click.command("filter")
@persona_options
@filter_options
@click.option("--limit", type=int, default=20, show_default=True, help="How many results; at most 100.")
@click.option("--offset", type=int, default=0, help="How many results to pass over.")
@click.option("--cursor", default=None, help="Go on where an earlier answer ended.")
@json_option
@reporting
def command(
    *,
    email: str,
    groups: tuple[str, ...],
    limit: int,
    offset: int,
    cursor: str | None,
    as_json: bool,
    **filters: Any,
) -> ExitCode:
    """List documents by their facts, newest first, without a query."""
    where = {"cursor": cursor} if cursor else {"offset": offset}
    answer = sign_in(email, groups).post("/search/filter", {"limit": limit, **where, **given_filters(filters)})
    emit(answer, as_json=as_json, text=as_text(answer, offset=offset))
    return ExitCode.DONE if answer["results"] else ExitCode.NO
