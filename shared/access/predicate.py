"""THE rule: which versions a viewer may see, and which of their observations may be shown.

A version is visible when it is allowed, open at a source, and not denied (docs/access-model.md). This module is the
only place that says so; scopes, verification, reading, counting and explaining join its results.

    allowed   mode `sufficient`: an allow on the project, the document, or the source object of an active observation;
              mode `intersect`: an allow on the project or the document
    open      an active observation whose object allows the viewer, or one at `local_fs` whose object has no ACL
    denied    a deny on the project, the document, or the source object of any active observation

Written as `EXISTS (...) OR EXISTS (...)` this takes 5 s for a million versions, so it is written as sets:
`sufficient` is (allowed at a source) + (allowed locally and delegated), minus what is denied. Each set starts at the
grants when everything is asked for and at the versions when few are: one text with one slot, `among`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.principals import is_administrator
from shared.db.tables.access import document_grants, project_grants, source_object_grants
from shared.db.tables.base import TextArray, Uuid
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.sources import source_objects, sources, version_sources
from shared.types import AclMode, AclState, DocumentId, Effect, Principal, SourceKind, VersionId, VersionSeq

Among = sa.ColumnElement[bool]
"""A condition on `document_versions` that says which versions are in question; nothing about who asks."""

EVERYTHING: Final[Among] = sa.true()


@dataclass(frozen=True, slots=True)
class Viewer:
    """Expanded principals, and the mode that is in force."""

    principals: frozenset[Principal]
    mode: AclMode

    @property
    def is_administrator(self) -> bool:
        """Whether the rule is skipped; an active observation is needed all the same."""
        return is_administrator(self.principals)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a statement refers to its viewer: `names` is an expression for the array of expanded principals.

    For statements that are built once and run for many viewers; everyone else hands in a `Viewer`.
    """

    names: sa.ColumnElement[Any]
    mode: AclMode
    is_administrator: bool

    @classmethod
    def of(cls, viewer: Viewer | Standing) -> Standing:
        """Return the standing of one viewer, with its principals as a parameter."""
        if isinstance(viewer, Standing):
            return viewer
        # Anonymous: two viewers in one statement must never share a value.
        names = sa.bindparam(None, sorted(viewer.principals), type_=TextArray)
        return cls(names, viewer.mode, viewer.is_administrator)


def among_seqs(seqs: Collection[VersionSeq] | Collection[int] | sa.BindParameter[Any]) -> Among:
    """Return: the versions with these dense numbers.

    A statement that is built once takes a parameter: `sa.bindparam("seqs", type_=pg.ARRAY(sa.Integer))`.
    """
    given = seqs if isinstance(seqs, sa.BindParameter) else sa.bindparam(None, list(seqs), type_=pg.ARRAY(sa.Integer))
    return document_versions.c.seq == sa.any_(given)


def among_versions(ids: Collection[VersionId]) -> Among:
    """Return: the versions with these ids."""
    return document_versions.c.id == sa.any_(_ids(ids))


def among_documents(ids: Collection[DocumentId]) -> Among:
    """Return: all versions of these documents."""
    return document_versions.c.document_id == sa.any_(_ids(ids))


def visible_versions(viewer: Viewer | Standing, *, among: Among, name: str = "visible") -> sa.CTE:
    """Return a CTE with the columns `version_id`, `seq`, `document_id`: what the viewer may see of `among`.

    Give a `name` when one statement needs two of them.
    """
    base = base_versions(among, f"{name}_base")
    seqs = visible_seqs(Standing.of(viewer), base).cte(f"{name}_seqs")
    return (
        sa.select(base.c.id.label("version_id"), base.c.seq, base.c.document_id)
        .where(base.c.seq.in_(sa.select(seqs.c.seq)))
        .cte(name)
    )


def citable_observations(viewer: Viewer | Standing, visible: sa.CTE, *, name: str = "citable") -> sa.CTE:
    """Return a CTE with the columns `version_id`, `source_object_id`: what of `visible` may be shown and where.

    `visible` comes from `visible_versions` of the same viewer. An observation may be shown when its object allows
    the viewer and does not deny, or has no ACL at `local_fs` and the project or document allows. Administrators may
    see every active one. A visible version has at least one.
    """
    standing = Standing.of(viewer)
    seen = active_observations(visible, visible.c.version_id)
    columns = (visible.c.version_id, source_objects.c.id.label("source_object_id"))
    if standing.is_administrator:
        return sa.select(*columns).select_from(seen).where(is_active()).distinct().cte(name)
    openly = (
        sa.select(*columns)
        .select_from(seen)
        # No look for denies: one on any active observation has already closed the version.
        .where(is_active(), granted_at_source(standing, Effect.ALLOW))
    )
    allowed = sa.union_all(*locally_granted(standing, visible, visible.c.version_id, Effect.ALLOW)).subquery()
    delegated = (
        sa.select(*columns)
        .select_from(seen)
        .where(is_active(), is_delegated(), visible.c.version_id.in_(sa.select(allowed.c[0])))
    )
    return sa.union(openly, delegated).cte(name)


def base_versions(among: Among, name: str) -> sa.CTE:
    """Return a CTE with `id`, `seq`, `document_id` of the versions in question."""
    columns = document_versions.c
    base = sa.select(columns.id, columns.seq, columns.document_id).where(among).cte(name)
    # Everything: dissolved into each set, so that a set can start at the grants. Few: fetched once, each set starts
    # here. The other way round either is slow.
    return base.prefix_with("NOT MATERIALIZED" if among is EVERYTHING else "MATERIALIZED")


def visible_seqs(standing: Standing, base: sa.CTE) -> sa.Select[tuple[int]] | sa.CompoundSelect[tuple[int]]:
    """Return a query for the `seq` of each visible version of `base`; a number may come twice."""
    observed = active_observations(base, base.c.id)
    if standing.is_administrator:
        return sa.select(base.c.seq).select_from(observed).where(is_active())
    local = sa.union_all(*locally_granted(standing, base, base.c.id, Effect.ALLOW, base.c.seq)).cte(
        f"{base.name}_local"
    )
    start = base if standing.mode is AclMode.SUFFICIENT else local
    at_source = (
        sa.select(start.c.seq)
        .select_from(active_observations(start, start.c.id))
        .where(is_active(), granted_at_source(standing, Effect.ALLOW))
    )
    delegated = (
        sa.select(local.c.seq).select_from(active_observations(local, local.c.id)).where(is_active(), is_delegated())
    )
    denied = (
        *locally_granted(standing, base, base.c.seq, Effect.DENY),
        sa.select(base.c.seq).select_from(observed).where(is_active(), granted_at_source(standing, Effect.DENY)),
    )
    return sa.except_(sa.union_all(at_source, delegated), sa.union_all(*denied))


def locally_granted(
    standing: Standing, versions: sa.CTE, column: Any, effect: Effect, *more: Any
) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Return two queries: versions with such a grant on their project, and with one on their document."""
    on_project = (
        sa.select(column, *more)
        .join(documents, documents.c.id == versions.c.document_id)
        .where(documents.c.project_id.in_(_targets(standing, project_grants, effect)))
    )
    on_document = sa.select(column, *more).where(
        versions.c.document_id.in_(_targets(standing, document_grants, effect))
    )
    return on_project, on_document


def granted_at_source(standing: Standing, effect: Effect) -> sa.ColumnElement[bool]:
    """Return: the source object carries such a grant for the viewer."""
    return source_objects.c.id.in_(_targets(standing, source_object_grants, effect))


def held(standing: Standing, grants: sa.Table, effect: Effect) -> sa.ColumnElement[bool]:
    """Return: the grant has this effect and names a principal of the viewer."""
    return sa.and_(grants.c.principal == sa.any_(standing.names), grants.c.effect == sa.literal_column(f"'{effect}'"))


def _targets(standing: Standing, grants: sa.Table, effect: Effect) -> sa.Select[Any]:
    # A caller's groups often hold several grants on one target: IN, unlike a join, counts them once.
    return sa.select(grants.c[0]).where(held(standing, grants, effect))


def active_observations(versions: sa.CTE, version_id: Any) -> sa.Join:
    """Return `versions` joined with the source objects they were seen at; `is_active` picks those that count."""
    return versions.join(version_sources, version_sources.c.version_id == version_id).join(
        source_objects, source_objects.c.id == version_sources.c.source_object_id
    )


def is_active() -> sa.ColumnElement[bool]:
    """Return: the source object is not tombstoned."""
    return source_objects.c.deleted_at.is_(None)


def is_delegated() -> sa.ColumnElement[bool]:
    """Return: the object lies at `local_fs` and was never given an ACL of its own, so the project decides."""
    local = sa.select(sources.c.id).where(sources.c.kind == sa.literal_column(f"'{SourceKind.LOCAL_FS}'"))
    return sa.and_(
        source_objects.c.acl_state == sa.literal_column(f"'{AclState.UNKNOWN}'"),
        source_objects.c.source_id.in_(local),
    )


def _ids(ids: Collection[UUID]) -> sa.BindParameter[Any]:
    return sa.bindparam(None, list(ids), type_=pg.ARRAY(Uuid))
