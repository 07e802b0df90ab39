"""Say why a viewer sees a document's versions or not: the rule's own parts, with the row that decided each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from shared.access.predicate import (
    Standing,
    Viewer,
    active_observations,
    among_documents,
    base_versions,
    held,
    is_active,
    is_delegated,
    visible_versions,
)
from shared.db.tables.access import document_grants, project_grants, source_object_grants
from shared.db.tables.catalog import documents, projects
from shared.db.tables.sources import source_objects, sources
from shared.types import AclMode, DocumentId, Effect, Principal, SourceObjectId, VersionId, VersionSeq


class Place(StrEnum):
    """Where a row of the rule stands."""

    PROJECT = "project"
    DOCUMENT = "document"
    SOURCE = "source"
    DELEGATED = "delegated"
    """An active observation at a local folder without ACL: open to whom project or document allow."""


@dataclass(frozen=True, slots=True)
class DecidingRow:
    """One grant that the viewer holds, or one observation that is open without one."""

    place: Place
    name: str
    effect: Effect
    principal: Principal | None = None
    granted_by: str | None = None
    reason: str | None = None
    source_object_id: SourceObjectId | None = None

    def __str__(self) -> str:
        if self.principal is None:
            return f"{self.name} has no ACL of its own"
        because = f" ({self.reason})" if self.reason else ""
        return f"{self.place} grant for {self.principal} on {self.name}{because}"


@dataclass(frozen=True, slots=True)
class VersionExplanation:
    """The three conditions for one version, each with its rows, and the verdict of the rule itself."""

    version_id: VersionId
    seq: VersionSeq
    is_visible: bool
    is_administrator: bool
    allowed_by: tuple[DecidingRow, ...]
    open_by: tuple[DecidingRow, ...]
    denied_by: tuple[DecidingRow, ...]

    @property
    def line(self) -> str:
        """The verdict and its reason on one line."""
        if self.is_administrator:
            return "visible: administrator" if self.is_visible else "not visible: seen at no source any more"
        if self.denied_by:
            return f"not visible: denied by {self.denied_by[0]}"
        if not self.allowed_by:
            return "not visible: no grant allows it"
        if not self.open_by:
            return "not visible: open at no source"
        return f"visible: allowed by {self.allowed_by[0]}; {self.open_by[0]}"


def explain(connection: sa.Connection, viewer: Viewer, document_id: DocumentId) -> list[VersionExplanation]:
    """Return one explanation for each version of the document, in the order of `seq`; none for an unknown document.

    One statement. For administrators only: it names what the viewer must not see.
    """
    standing = Standing.of(viewer)
    among = among_documents([document_id])
    base = base_versions(among, "explained")
    visible = visible_versions(standing, among=among)
    deciding = sa.union_all(*_deciding_rows(standing, base)).subquery("deciding")
    statement = (
        sa.select(base.c.id, base.c.seq, visible.c.version_id.is_not(None).label("is_visible"), *list(deciding.c)[1:])
        .select_from(
            base.outerjoin(visible, visible.c.version_id == base.c.id).outerjoin(
                deciding, deciding.c.version_id == base.c.id
            )
        )
        .order_by(base.c.seq, deciding.c.place, deciding.c.name, deciding.c.principal)
    )
    found: dict[tuple[VersionId, VersionSeq, bool], list[DecidingRow]] = {}
    for row in connection.execute(statement):
        rows = found.setdefault((row.id, row.seq, row.is_visible), [])
        if row.place is not None:
            rows.append(_deciding(row))
    return [
        _explained(viewer, version_id, seq, rows, is_visible=is_visible)
        for (version_id, seq, is_visible), rows in found.items()
    ]


def _explained(
    viewer: Viewer, version_id: VersionId, seq: VersionSeq, rows: Sequence[DecidingRow], *, is_visible: bool
) -> VersionExplanation:
    allows = [row for row in rows if row.effect is Effect.ALLOW and row.principal is not None]
    from_source = viewer.mode is AclMode.SUFFICIENT
    return VersionExplanation(
        version_id=version_id,
        seq=seq,
        is_visible=is_visible,
        is_administrator=viewer.is_administrator,
        allowed_by=tuple(row for row in allows if from_source or row.place is not Place.SOURCE),
        open_by=tuple(
            row for row in rows if row.effect is Effect.ALLOW and row.place in {Place.SOURCE, Place.DELEGATED}
        ),
        denied_by=tuple(row for row in rows if row.effect is Effect.DENY),
    )


def _deciding(row: sa.Row[Any]) -> DecidingRow:
    return DecidingRow(
        place=Place(row.place),
        name=row.name,
        effect=Effect(row.effect),
        principal=row.principal,
        granted_by=row.granted_by,
        reason=row.reason,
        source_object_id=row.source_object_id,
    )


def _deciding_rows(standing: Standing, base: sa.CTE) -> tuple[sa.Select[Any], ...]:
    of_document = base.join(documents, documents.c.id == base.c.document_id)
    observed = active_observations(base, base.c.id)
    at_source = source_object_grants.c.source_object_id == source_objects.c.id
    nobody = sa.cast(sa.null(), sa.Text)
    path, object_id = source_objects.c.path, source_objects.c.id
    return (
        _granted(standing, base, Place.PROJECT, project_grants, projects.c.title).select_from(
            of_document.join(projects, projects.c.id == documents.c.project_id).join(
                project_grants, project_grants.c.project_id == projects.c.id
            )
        ),
        _granted(standing, base, Place.DOCUMENT, document_grants, documents.c.title).select_from(
            of_document.join(document_grants, document_grants.c.document_id == documents.c.id)
        ),
        _granted(
            standing,
            base,
            Place.SOURCE,
            source_object_grants,
            source_objects.c.path,
            source_object_id=source_objects.c.id,
        )
        .select_from(observed.join(source_object_grants, at_source))
        .where(is_active()),
        sa.select(
            *_columns(base, Place.DELEGATED, path, object_id),
            sa.literal(str(Effect.ALLOW)).label("effect"),
            nobody.label("principal"),
            nobody.label("granted_by"),
            nobody.label("reason"),
        )
        .select_from(observed.join(sources, sources.c.id == source_objects.c.source_id))
        .where(is_active(), is_delegated()),
    )


def _granted(
    standing: Standing, base: sa.CTE, place: Place, grants: sa.Table, name: Any, *, source_object_id: Any = None
) -> sa.Select[Any]:
    return sa.select(
        *_columns(base, place, name, source_object_id),
        grants.c.effect,
        grants.c.principal,
        grants.c.granted_by,
        grants.c.reason,
    ).where(sa.or_(held(standing, grants, Effect.ALLOW), held(standing, grants, Effect.DENY)))


def _columns(base: sa.CTE, place: Place, name: Any, source_object_id: Any) -> tuple[Any, ...]:
    nothing = sa.cast(sa.null(), source_objects.c.id.type)
    return (
        base.c.id.label("version_id"),
        sa.literal(str(place)).label("place"),
        name.label("name"),
        (nothing if source_object_id is None else source_object_id).label("source_object_id"),
    )
