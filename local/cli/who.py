"""`ki who`."""

from __future__ import annotations

import click

from local.cli.explain import explanations
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.people import everybody
from local.product import running_services


@click.command("who")
@click.argument("document")
@json_option
@reporting
def command(*, document: str, as_json: bool) -> ExitCode:
    """Say for everybody in the local directory whether they see a document, and why."""
    services = running_services()
    people = everybody()
    if not people:
        note("The local directory is empty; ki demo fills it with the invented firm.")
    rows = []
    for email, membership in people.items():
        found = explanations(services, email, membership.token_groups, document)
        seen = [one for one in found if one.is_visible]
        rows.append({"email": email, "visible": bool(seen), "versions": len(seen), "reason": (seen or found)[-1].line})
    lines = [f"{'sees' if row['visible'] else '-':<5} {row['email']:<28} {row['reason']}" for row in rows]
    emit(rows, as_json=as_json, text="\n".join(lines))
    return ExitCode.DONE
