"""`ki grant`."""

from __future__ import annotations

import getpass
from uuid import UUID

import click
import sqlalchemy as sa

from local.cli.output import ExitCode, emit, json_option, reporting
from local.product import running_services
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.grants import add_project_grant, remove_project_grant
from shared.db.tables.catalog import projects
from shared.errors import NotVisibleError
from shared.types import Effect, ProjectId


@click.command("grant")
@click.argument("project")
@click.argument("principal")
@click.option("--deny", is_flag=True, help="Build a wall: deny instead of allow.")
@click.option("--lift", is_flag=True, help="Take the grant away instead of giving it.")
@click.option("--reason", required=True, help="Why; kept with the grant and in the audit trail.")
@json_option
@reporting
def command(*, project: str, principal: str, deny: bool, lift: bool, reason: str, as_json: bool) -> ExitCode:
    """Allow a principal, such as group:team-nord or user:anna@kanzlei.example, on the project with this key.

    Takes effect at the next search. Deny wins over every allow.
    """
    effect = Effect.DENY if deny else Effect.ALLOW
    setter = f"local:{getpass.getuser()}"
    with running_services().engine.begin() as connection:
        project_id = _project(connection, project)
        if lift:
            change = remove_project_grant(connection, project_id, principal, effect)
        else:
            change = add_project_grant(connection, project_id, principal, effect, by=setter, reason=reason)
        detail = {"project_id": str(project_id), "principal": principal, "effect": effect.value, "reason": reason}
        action = "grant_lifted" if lift else "grant_given"
        connection.execute(
            insertion(AuditEntry(action=action, subject=setter, principals=(), outcome=ALLOWED, detail=detail))
        )
    done = "changed" if change.changed else "unchanged"
    answer = {"project": project, "principal": principal, "effect": effect.value, "lifted": lift, "outcome": done}
    emit(answer, as_json=as_json, text=f"{done}: {effect.value} {principal} on {project}{' lifted' if lift else ''}")
    return ExitCode.DONE


def _project(connection: sa.Connection, key: str) -> ProjectId:
    found: UUID | None = connection.execute(sa.select(projects.c.id).where(projects.c.key == key)).scalar_one_or_none()
    if found is None:
        raise NotVisibleError(f"there is no project with the key {key!r}; ki ingest --project {key} makes it")
    return ProjectId(found)
