"""`ki grants`."""

from __future__ import annotations

from dataclasses import asdict

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.target import target_of
from local.product import running_services
from shared.access.chains import shown
from shared.access.grants import HeldGrant, held_grants


@click.command("grants")
@click.argument("target", metavar="PROJECT|DOCUMENT")
@json_option
@reporting
def command(*, target: str, as_json: bool) -> ExitCode:
    """List the grants and walls of a project (key or id) or a document (id): who set them, when and why."""
    with running_services().engine.begin() as connection:
        held = held_grants(connection, *target_of(connection, target))
    rows = [{**one.grant.to_json(), **{k: v for k, v in asdict(one).items() if k != "grant"}} for one in held]
    emit(rows, as_json=as_json, text="\n".join(map(_line, held)) or f"There are no grants on {target}.")
    return ExitCode.DONE


def _line(one: HeldGrant) -> str:
    why = f": {one.reason}" if one.reason else ""
    by = one.granted_by or "nobody that is known"
    return f"{one.grant.effect:<5} {shown(one.grant.principal):<36} by {by} on {one.granted_at:%Y-%m-%d %H:%M}{why}"
