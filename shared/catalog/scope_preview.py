"""What am I searching in: the compiled scope's fingerprint, its counts, and the ids of its projects and documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.predicate import among_seqs, visible_versions
from shared.access.scope import CompiledAccessScope
from shared.access.service import AccessService
from shared.catalog.requests import ScopeRead
from shared.db.engine import reading, recording
from shared.db.tables.base import TextArray
from shared.db.tables.catalog import documents
from shared.types import ProjectId


@dataclass(frozen=True, slots=True)
class _Ids:
    """One kind of ids: a part of them in order, and how many there are."""

    total: int
    listed: list[str]

    def answer(self) -> dict[str, Any]:
        return {"total": self.total, "ids": self.listed}


class ScopePreviews:
    """Shows callers their own scope. Safe to share between threads."""

    def __init__(self, engine: sa.Engine, access: AccessService) -> None:
        self._engine = engine
        self._access = access

    def preview(self, caller: Caller, request: ScopeRead, *, correlation_id: str | None = None) -> dict[str, Any]:
        """Return the body of GET /access/scope. Nothing in it tells an invisible project from an absent one."""
        narrowing = None if request.project_ids is None else [ProjectId(id_) for id_ in request.project_ids]
        with reading(self._engine) as connection:
            scope = self._access.compile_scope(connection, caller, project_ids=narrowing)
            row = connection.execute(_statement(scope, request)).one()
        with recording(self._engine) as connection:
            connection.execute(insertion(_entry(caller, scope, correlation_id)))
        self._access.keep(scope)
        projects, found = _Ids(row.projects, row.project_ids), _Ids(row.documents, row.document_ids)
        end = request.offset + request.ids
        has_more = end < max(projects.total, found.total)
        return {
            "fingerprint": scope.shown_fingerprint,
            "mode": scope.mode,
            "administrator": scope.administrator,
            "principals": sorted(scope.principals),
            "versions": {"total": row.versions},
            "projects": projects.answer(),
            "documents": found.answer(),
            "page": {
                "offset": request.offset,
                "limit": request.ids,
                "returned": max(len(projects.listed), len(found.listed)),
                "has_more": has_more,
                "next_offset": end if has_more else None,
            },
        }


def _statement(scope: CompiledAccessScope, request: ScopeRead) -> sa.Select[Any]:
    """Ask the rule once more for the versions of the scope: what was revoked since is neither counted nor listed."""
    visible = visible_versions(scope.viewer, among=among_seqs(list(scope.visible)))
    seen = (
        sa.select(documents.c.id, documents.c.project_id)
        .where(documents.c.id.in_(sa.select(visible.c.document_id)))
        .cte("seen")
    )
    in_projects = (
        sa.select(seen.c.project_id.label("id")).where(seen.c.project_id.is_not(None)).distinct().cte("places")
    )
    return sa.select(
        sa.select(sa.func.count()).select_from(visible).scalar_subquery().label("versions"),
        sa.select(sa.func.count()).select_from(seen).scalar_subquery().label("documents"),
        sa.select(sa.func.count()).select_from(in_projects).scalar_subquery().label("projects"),
        _listed(seen.c.id, request).label("document_ids"),
        _listed(in_projects.c.id, request).label("project_ids"),
    )


def _listed(column: sa.ColumnElement[Any], request: ScopeRead) -> sa.ScalarSelect[Any]:
    part = sa.select(sa.cast(column, sa.Text).label("id")).order_by(column).limit(request.ids).offset(request.offset)
    ordered = sa.func.array(part.scalar_subquery(), type_=TextArray)
    return sa.select(ordered).scalar_subquery()


def _entry(caller: Caller, scope: CompiledAccessScope, correlation_id: str | None) -> AuditEntry:
    return AuditEntry(
        action="access.scope",
        subject=caller.subject,
        principals=scope.principals,
        outcome=ALLOWED,
        scope_fingerprint=scope.shown_fingerprint,
        correlation_id=correlation_id,
    )
