"""`ki who`."""

from __future__ import annotations

from typing import Any

import click

from local.cli.explain import document_named, explanation
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.target import local_author
from local.issuer import ADMIN_GROUP
from local.people import everybody
from local.product import running_services
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.chains import shown
from shared.access.inquiries import one_snapshot
from shared.access.principals import normalise_all
from shared.access.who import Beholders, who_sees
from shared.errors import NotVisibleError
from shared.runtime.bootstrap import Services


@click.command("who")
@click.argument("document")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Principals at most.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many principals.")
@json_option
@reporting
def command(*, document: str, limit: int, offset: int, as_json: bool) -> ExitCode:
    """Say who sees a document, and why: the people of the local directory, and all whom some grant names or reaches."""
    services = running_services()
    found = _beholders(services, document, limit=limit, offset=offset)
    people = _people(services, document)
    if not people:
        note("The local directory is empty; ki demo fills it with the invented firm.")
    principals = [
        {
            "principal": one.principal,
            "members": one.members,
            "visible": one.explanation.is_visible,
            "versions": sum(version.is_visible for version in one.explanation.versions),
            "reason": one.explanation.line,
        }
        for one in found.listed
    ]
    lines = [
        *(_line(row["email"], row) for row in people),
        *(_line(shown(one.principal), row) for one, row in zip(found.listed, principals, strict=True)),
    ]
    answer = {"people": people, "principals": principals, "total": found.total}
    emit(answer, as_json=as_json, text="\n".join(lines))
    if offset + len(principals) < found.total:
        note(f"{found.total - offset - len(principals)} more principals: --offset {offset + len(principals)}")
    return ExitCode.DONE


def _people(services: Services, document: str) -> list[dict[str, Any]]:
    """Return everybody in the local directory, which knows who is in the groups of tokens."""
    rows = []
    for email, membership in everybody().items():
        found = explanation(services, email, membership.token_groups, document)
        versions = sum(version.is_visible for version in found.versions)
        rows.append({"email": email, "visible": found.is_visible, "versions": versions, "reason": found.line})
    return rows


def _beholders(services: Services, document: str, *, limit: int, offset: int) -> Beholders:
    with one_snapshot(services.engine) as connection:
        found = who_sees(
            connection,
            document_named(document),
            mode=services.settings.security.source_acl_mode,
            admin_groups=normalise_all([f"group:{ADMIN_GROUP}"]),
            limit=limit,
            offset=offset,
        )
        detail = {"document_id": document, "offset": offset, "principals": len(found.listed)}
        entry = AuditEntry(action="access.who", subject=local_author(), principals=(), outcome=ALLOWED, detail=detail)
        connection.execute(insertion(entry))
    if not found.total:
        raise NotVisibleError(f"there is no document {document!r}")
    return found


def _line(name: str, row: dict[str, Any]) -> str:
    return f"{'sees' if row['visible'] else '-':<5} {name:<32} {row['reason']}"
