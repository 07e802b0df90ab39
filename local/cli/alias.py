"""`ki alias`."""

from __future__ import annotations

from collections.abc import Callable

import click

from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.target import local_author
from local.product import running_services
from shared.access.administration import listed_aliases
from shared.access.grants import add_alias, remove_alias
from shared.access.principals import normalise_or_refuse
from shared.db.engine import run_retrying

_reason = click.option("--reason", required=True, help="Why; kept in the audit trail.")


@click.group("alias")
def command() -> None:
    """Let two principals stand for each other: what one of them may, the other may as well, and the other way round."""


@command.command("add")
@click.argument("principal")
@click.argument("alias")
@_reason
@json_option
@reporting
def add_command(*, principal: str, alias: str, reason: str, as_json: bool) -> ExitCode:
    """Let PRINCIPAL and ALIAS stand for each other, from the next search on."""
    return _change(add_alias, principal, alias, reason, "stand for each other", as_json=as_json)


@command.command("remove")
@click.argument("principal")
@click.argument("alias")
@_reason
@json_option
@reporting
def remove_command(*, principal: str, alias: str, reason: str, as_json: bool) -> ExitCode:
    """Let them no longer stand for each other, whichever way round it was written."""
    return _change(remove_alias, principal, alias, reason, "no longer stand for each other", as_json=as_json)


@command.command("list")
@click.argument("principal", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=200, show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0)
@json_option
@reporting
def list_command(*, principal: str | None, limit: int, offset: int, as_json: bool) -> ExitCode:
    """List aliases with who set them, when and why: all, or those of PRINCIPAL."""
    asked = None if principal is None else normalise_or_refuse(principal)
    with running_services().engine.connect() as connection:
        total, rows = listed_aliases(connection, asked, limit=limit, offset=offset)
    lines = [
        f"{row['principal']} and {row['alias']}, by {row['granted_by'] or 'nobody that is known'} "
        f"on {row['granted_at']:%Y-%m-%d %H:%M}: {row['reason']}"
        for row in rows
    ]
    emit({"aliases": rows, "total": total}, as_json=as_json, text="\n".join(lines) or "There are no aliases.")
    if offset + len(rows) < total:
        note(f"{total - offset - len(rows)} more: --offset {offset + len(rows)}")
    return ExitCode.DONE


def _change(
    write: Callable[..., bool], principal: str, alias: str, reason: str, said: str, *, as_json: bool
) -> ExitCode:
    changed = run_retrying(
        running_services().engine,
        lambda connection: write(connection, principal, alias, by=local_author(), reason=reason),
    )
    done = "changed" if changed else "unchanged"
    answer = {"principal": principal, "alias": alias, "outcome": done}
    emit(answer, as_json=as_json, text=f"{done}: {principal} and {alias} {said}")
    return ExitCode.DONE
