"""`ki explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.persona import persona_options
from local.cli.target import local_author
from local.issuer import ADMIN_GROUP
from local.product import running_services
from local.sign_in import sign_in
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.explain import Explanation, explain_whole
from shared.access.inquiries import one_snapshot
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
    found = explanation(running_services(), email, sign_in(email, groups).groups, document)
    lines = [
        line
        for number, one in enumerate(found.versions, start=1)
        for line in (f"version {number}: {one.line}", *(f"  {reason}" for reason in one.reasons))
    ]
    answer = [{**asdict(one), "line": one.line, "reasons": one.reasons} for one in found.versions]
    emit(answer, as_json=as_json, text="\n".join(lines))
    return ExitCode.DONE if found.is_visible else ExitCode.NO


def explanation(services: Services, email: str, groups: Sequence[str], document: str) -> Explanation:
    """Return what the rule says on each version of the document, for a person in these groups; audited."""
    document_id = document_named(document)
    claims = {"sub": sign_in(email).subject, "email": email, "email_verified": True, "groups": list(groups)}
    identity = services.settings.identity.model_copy(update={"admin_groups": (ADMIN_GROUP,)})
    caller = from_claims(claims, identity)
    with one_snapshot(services.engine) as connection:
        found = explain_whole(connection, caller.principals, services.settings.security.source_acl_mode, document_id)
        entry = AuditEntry(
            action="access.explain",
            subject=local_author(),
            principals=(),
            outcome=ALLOWED,
            detail={"document_id": document, "about": sorted(caller.principals)},
        )
        connection.execute(insertion(entry))
    if not found.versions:
        raise NotVisibleError(f"there is no document {document!r}")
    return found


def document_named(document: str) -> DocumentId:
    """Return the id; raise `NotVisibleError` for what is none."""
    try:
        return DocumentId(UUID(document))
    except ValueError as error:
        raise NotVisibleError(f"there is no document {document!r}") from error


def one_line(services: Services, email: str, groups: Sequence[str], document: str) -> str:
    """Return the reason in one line: that of a version they see, else that of the newest."""
    return explanation(services, email, groups, document).line
