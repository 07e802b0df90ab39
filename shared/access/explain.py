"""Say why a viewer sees a document's versions or not: the rule's own parts, with the row that decided each.

The verdict is the predicate's, and so is which observations may be cited; the rows are those the predicate's parts are
made of. Nothing here decides. For administrators only: it names what the viewer must not see.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from shared.access.chains import Chain, chains, shown
from shared.access.expansion import expand
from shared.access.predicate import (
    Standing,
    Viewer,
    active_observations,
    among_documents,
    base_versions,
    citable_observations,
    held,
    is_active,
    is_delegated,
    visible_versions,
)
from shared.db.tables.access import document_grants, project_grants, source_object_grants
from shared.db.tables.catalog import documents, projects
from shared.db.tables.sources import source_objects, sources, version_sources
from shared.types import (
    AclMode,
    AclState,
    DocumentId,
    Effect,
    Principal,
    SourceKind,
    SourceObjectId,
    VersionId,
    VersionSeq,
)


class Place(StrEnum):
    """Where a row of the rule stands."""

    PROJECT = "project"
    DOCUMENT = "document"
    SOURCE = "source"
    DELEGATED = "delegated"
    """An active observation at a local folder without ACL: open to whom project or document allow."""


@dataclass(frozen=True, slots=True)
class DecidingRow:
    """One grant that the viewer holds, or one observation that is open without one.

    `as_of` is the time of the object's ACL at its source; `granted_at` when an administrator wrote the grant.
    """

    place: Place
    name: str
    effect: Effect
    principal: Principal | None = None
    granted_by: str | None = None
    reason: str | None = None
    source_object_id: SourceObjectId | None = None
    target_id: UUID | None = None
    granted_at: datetime | None = None
    source: str | None = None
    as_of: datetime | None = None
    chain: Chain | None = None

    def __str__(self) -> str:
        if self.principal is None:
            return f"{self.name} has no ACL of its own"
        because = f" ({self.reason})" if self.reason else ""
        through = f", held by {self.chain}" if self.chain is not None and self.chain.links else ""
        return f"{self.place} grant for {shown(self.principal)} on {self.name}{because}{through}"


@dataclass(frozen=True, slots=True)
class Observation:
    """One place where the version was seen, with what the rule looks at there. A place that is gone has no path."""

    source_object_id: SourceObjectId
    path: str | None
    source: str
    source_kind: SourceKind
    acl_state: AclState
    as_of: datetime | None
    warning: str | None
    grants: int
    is_active: bool
    is_citable: bool

    def __str__(self) -> str:
        if not self.is_active:
            return f"a place at {self.source} is gone from there"
        if self.acl_state is AclState.UNKNOWN:
            local = self.source_kind is SourceKind.LOCAL_FS
            means = "the project or document decides" if local else "closed until its source reports one"
            return f"{self.path} at {self.source} has no ACL of its own: {means}"
        if not self.grants:
            return f"{self.path} at {self.source} has an ACL that names nobody" + self._warned
        return f"{self.path} at {self.source} has an ACL with {self.grants} entries" + self._warned

    @property
    def _warned(self) -> str:
        return f" ({self.warning})" if self.warning else ""


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
    observations: tuple[Observation, ...] = ()

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

    @property
    def reasons(self) -> list[str]:
        """All that speaks for it and against it, in plain words; the verdict is in `line`."""
        if self.is_administrator:
            return [f"seen: {one}" for one in self.observations]
        return [
            *(f"denied by {row}" for row in self.denied_by),
            *([f"allowed by {row}" for row in self.allowed_by] or ["no grant allows it"]),
            *([f"open: {row}" for row in self.open_by] or ["open at no source"]),
            *(f"seen: {one}" for one in self.observations),
        ]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that there is to say about one viewer and one document. Without versions the document is unknown."""

    viewer: Viewer
    versions: tuple[VersionExplanation, ...]

    @property
    def is_visible(self) -> bool:
        """Whether the viewer sees any version."""
        return any(version.is_visible for version in self.versions)

    @property
    def line(self) -> str:
        """The reason in one line: that of a version they see, else that of the newest."""
        seen = [version for version in self.versions if version.is_visible]
        return (seen or list(self.versions))[-1].line if self.versions else ""


def explain_whole(
    connection: sa.Connection,
    own: Collection[Principal],
    mode: AclMode,
    document_id: DocumentId,
    *,
    with_places: bool = True,
) -> Explanation:
    """Return why somebody with these unexpanded principals sees the document or not, with chains and observations.

    Give a connection with one snapshot (REPEATABLE READ): it takes five statements.
    """
    viewer = Viewer(expand(connection, own), mode)
    ways = chains(connection, own, viewer.principals)
    places = observations(connection, viewer, document_id) if with_places else {}
    versions = explain(connection, viewer, document_id, ways=ways)
    return Explanation(
        viewer, tuple(replace(version, observations=places.get(version.version_id, ())) for version in versions)
    )


def explain(
    connection: sa.Connection,
    viewer: Viewer,
    document_id: DocumentId,
    *,
    ways: Mapping[Principal, Chain] | None = None,
) -> list[VersionExplanation]:
    """Return one explanation for each version of the document, in the order of `seq`; none for an unknown document.

    One statement. `ways` (`shared.access.chains`) say how the viewer came to the principals of the rows.
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
            rows.append(_deciding(row, ways or {}))
    return [
        _explained(viewer, version_id, seq, rows, is_visible=is_visible)
        for (version_id, seq, is_visible), rows in found.items()
    ]


def observations(
    connection: sa.Connection, viewer: Viewer, document_id: DocumentId
) -> dict[VersionId, tuple[Observation, ...]]:
    """Return where each version of the document was seen, and which of it the viewer may be shown. One statement."""
    standing = Standing.of(viewer)
    among = among_documents([document_id])
    base = base_versions(among, "observed")
    citable = citable_observations(standing, visible_versions(standing, among=among))
    number = (
        sa.select(sa.func.count())
        .where(source_object_grants.c.source_object_id == source_objects.c.id)
        .correlate(source_objects)
        .scalar_subquery()
    )
    statement = (
        sa.select(
            base.c.id.label("version_id"),
            source_objects.c.id,
            sa.case((is_active(), source_objects.c.path)).label("path"),
            sources.c.name,
            sources.c.kind,
            source_objects.c.acl_state,
            _rights_as_of().label("as_of"),
            source_objects.c.acl_warning,
            number.label("grants"),
            is_active().label("is_active"),
            citable.c.source_object_id.is_not(None).label("is_citable"),
        )
        .select_from(
            base.join(version_sources, version_sources.c.version_id == base.c.id)
            .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
            .join(sources, sources.c.id == source_objects.c.source_id)
            .outerjoin(
                citable,
                sa.and_(citable.c.version_id == base.c.id, citable.c.source_object_id == source_objects.c.id),
            )
        )
        .order_by(base.c.seq, sources.c.name, source_objects.c.path)
    )
    found: dict[VersionId, list[Observation]] = {}
    for row in connection.execute(statement):
        found.setdefault(VersionId(row.version_id), []).append(
            Observation(
                source_object_id=SourceObjectId(row.id),
                path=row.path,
                source=row.name,
                source_kind=SourceKind(row.kind),
                acl_state=AclState(row.acl_state),
                as_of=row.as_of,
                warning=row.acl_warning,
                grants=row.grants,
                is_active=row.is_active,
                is_citable=row.is_citable,
            )
        )
    return {version_id: tuple(listed) for version_id, listed in found.items()}


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


def _deciding(row: sa.Row[Any], ways: Mapping[Principal, Chain]) -> DecidingRow:
    return DecidingRow(
        place=Place(row.place),
        name=row.name,
        effect=Effect(row.effect),
        principal=row.principal,
        granted_by=row.granted_by,
        reason=row.reason,
        source_object_id=row.source_object_id,
        target_id=row.target_id,
        granted_at=row.granted_at,
        source=row.source,
        as_of=row.as_of,
        chain=None if row.principal is None else ways.get(row.principal),
    )


def _deciding_rows(standing: Standing, base: sa.CTE) -> tuple[sa.Select[Any], ...]:
    of_document = base.join(documents, documents.c.id == base.c.document_id)
    observed = active_observations(base, base.c.id).join(sources, sources.c.id == source_objects.c.source_id)
    at_source = source_object_grants.c.source_object_id == source_objects.c.id
    return (
        _granted(standing, base, Place.PROJECT, project_grants, projects.c.title).select_from(
            of_document.join(projects, projects.c.id == documents.c.project_id).join(
                project_grants, project_grants.c.project_id == projects.c.id
            )
        ),
        _granted(standing, base, Place.DOCUMENT, document_grants, _title_of(base)).select_from(
            of_document.join(document_grants, document_grants.c.document_id == documents.c.id)
        ),
        _granted(standing, base, Place.SOURCE, source_object_grants, source_objects.c.path, is_observation=True)
        .select_from(observed.join(source_object_grants, at_source))
        .where(is_active()),
        sa.select(
            *_columns(base, Place.DELEGATED, source_objects.c.path, is_observation=True),
            sa.literal(str(Effect.ALLOW)).label("effect"),
            *(
                sa.cast(sa.null(), column.type).label(name)
                for name, column in _of_grant(source_object_grants, is_observation=True)
            ),
        )
        .select_from(observed)
        .where(is_active(), is_delegated()),
    )


def _title_of(base: sa.CTE) -> sa.ColumnElement[Any]:
    """Return the document's title, or its id where no version of it lies at any source any more."""
    anew = base.alias("seen_somewhere")
    seen = sa.exists().select_from(active_observations(anew, anew.c.id)).where(is_active()).correlate(None)
    return sa.case((seen, documents.c.title), else_=sa.cast(documents.c.id, sa.Text))


def _granted(
    standing: Standing, base: sa.CTE, place: Place, grants: sa.Table, name: Any, *, is_observation: bool = False
) -> sa.Select[Any]:
    return sa.select(
        *_columns(base, place, name, is_observation=is_observation),
        grants.c.effect,
        *(column.label(label) for label, column in _of_grant(grants, is_observation=is_observation)),
    ).where(sa.or_(held(standing, grants, Effect.ALLOW), held(standing, grants, Effect.DENY)))


def _of_grant(grants: sa.Table, *, is_observation: bool) -> list[tuple[str, Any]]:
    """Return what a grant row says of itself. Rows of a source are dated by their snapshot, not by their writing."""
    return [
        ("principal", grants.c.principal),
        ("granted_by", grants.c.granted_by),
        ("reason", grants.c.reason),
        ("target_id", grants.c[0]),
        ("granted_at", sa.cast(sa.null(), grants.c.created_at.type) if is_observation else grants.c.created_at),
    ]


def _columns(base: sa.CTE, place: Place, name: Any, *, is_observation: bool) -> tuple[Any, ...]:
    def at_source(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return column if is_observation else sa.cast(sa.null(), column.type)

    return (
        base.c.id.label("version_id"),
        sa.literal(str(place)).label("place"),
        name.label("name"),
        at_source(source_objects.c.id).label("source_object_id"),
        at_source(sources.c.name).label("source"),
        at_source(_rights_as_of()).label("as_of"),
    )


def _rights_as_of() -> sa.ColumnElement[Any]:
    """Return as of when an object's ACL is known: a file that names all objects says so of those it did not change."""
    mirrored = source_objects.c.acl_as_of
    return sa.case((mirrored.is_not(None), sa.func.greatest(mirrored, sources.c.acls_as_of, type_=mirrored.type)))
