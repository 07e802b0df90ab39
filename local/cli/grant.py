"""`ki grant`."""

from __future__ import annotations

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.target import local_author, target_of
from local.product import running_services
from shared.access.grants import Author, Grant, add_grant, remove_grant
from shared.db.engine import run_retrying
from shared.types import Effect


@click.command("grant")
@click.argument("target", metavar="PROJECT|DOCUMENT")
@click.argument("principal")
@click.option("--deny", is_flag=True, help="Build a wall: deny instead of allow.")
@click.option("--lift", is_flag=True, help="Take the grant away instead of giving it.")
@click.option("--reason", required=True, help="Why; kept with the grant and in the audit trail.")
@json_option
@reporting
def command(*, target: str, principal: str, deny: bool, lift: bool, reason: str, as_json: bool) -> ExitCode:
    """Allow a principal, such as group:team-nord or user:anna@kanzlei.example, on a project or a document.

    A project is named by its key or id, a document by its id. Takes effect at the next search. Deny wins over every
    allow.
    """
    grant = Grant.of(principal, Effect.DENY if deny else Effect.ALLOW)
    write = remove_grant if lift else add_grant
    author = Author(local_author(), reason)
    change = run_retrying(
        running_services().engine,
        lambda connection: write(connection, *target_of(connection, target), grant, author),
    )
    done = "changed" if change.changed else "unchanged"
    answer = {"target": target, **grant.to_json(), "lifted": lift, "outcome": done}
    emit(
        answer,
        as_json=as_json,
        text=f"{done}: {grant.effect} {grant.principal} on {target}{' lifted' if lift else ''}",
    )
    return ExitCode.DONE
