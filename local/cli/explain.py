"""`ki explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.persona import persona_options
from local.issuer import ADMIN_GROUP
from local.product import running_services
from local.sign_in import sign_in
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.expansion import expand
from shared.access.explain import VersionExplanation, explain
from shared.access.predicate import Viewer
from shared.access.principals import from_claims
from shared.errors import NotVisibleError
from shared.runtime.bootstrap import Services
from shared.types import DocumentId


@click.command("explain")
@click.argument("document")
@persona_options
@json_option
@reporting
def command(*, document: str, email: str, groups: tuple[str, ...], as_json: bool) -> ExitCode:
    """Say why this person sees a document's versions, or why not. Exit code 1: they see none."""
    found = explanations(running_services(), email, sign_in(email, groups).groups, document)
    lines = [f"version {number}: {one.line}" for number, one in enumerate(found, start=1)]
    emit([{**asdict(one), "line": one.line} for one in found], as_json=as_json, text="\n".join(lines))
    return ExitCode.DONE if any(one.is_visible for one in found) else ExitCode.NO


def explanations(services: Services, email: str, groups: Sequence[str], document: str) -> list[VersionExplanation]:
    """Return what the rule says on each version of the document, for a person in these groups; audited."""
    try:
        document_id = DocumentId(UUID(document))
    except ValueError as error:
        raise NotVisibleError(f"there is no document {document!r}") from error
    claims = {"sub": sign_in(email).subject, "email": email, "email_verified": True, "groups": list(groups)}
    identity = services.settings.identity.model_copy(update={"admin_groups": (ADMIN_GROUP,)})
    caller = from_claims(claims, identity)
    with services.engine.begin() as connection:
        viewer = Viewer(expand(connection, caller.principals), services.settings.security.source_acl_mode)
        found = explain(connection, viewer, document_id)
        entry = AuditEntry(
            action="access.explain",
            subject="local",
            principals=viewer.principals,
            outcome=ALLOWED,
            detail={"document_id": document, "about": caller.subject},
        )
        connection.execute(insertion(entry))
    if not found:
        raise NotVisibleError(f"there is no document {document!r}")
    return found


def one_line(services: Services, email: str, groups: Sequence[str], document: str) -> str:
    """Return the reason in one line: that of a version they see, else that of the newest."""
    found = explanations(services, email, groups, document)
    seen = [one for one in found if one.is_visible]
    return (seen or found)[-1].line
