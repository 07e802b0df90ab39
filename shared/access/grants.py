"""Write local grants and aliases: normalised on the way in, with who and why.

A repeated grant is one row and the first reason stays. Rows are written in the order of their keys, so that two
writers of the same target wait for each other instead of deadlocking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.principals import normalise_or_refuse
from shared.db.tables.access import document_grants, principal_aliases, project_grants
from shared.db.tables.catalog import documents, projects
from shared.errors import InvalidRequestError, NotVisibleError
from shared.types import DocumentId, Effect, Principal, ProjectId


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One principal and what it is granted."""

    principal: Principal
    effect: Effect

    @classmethod
    def of(cls, principal: str, effect: Effect) -> Grant:
        """Return the grant in normal form; raise `InvalidRequestError` if the principal names nobody."""
        return cls(normalise_or_refuse(principal), effect)


@dataclass(frozen=True, slots=True)
class GrantChange:
    """What a write changed."""

    added: tuple[Grant, ...]
    removed: tuple[Grant, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.added or self.removed)


def set_project_grants(
    connection: sa.Connection, project_id: ProjectId, grants: Iterable[tuple[str, Effect]], *, by: str, reason: str
) -> GrantChange:
    """Make `grants` the whole list of the project."""
    return _replace(connection, _Place(project_grants, projects, project_id), grants, by=by, reason=reason)


def set_document_grants(
    connection: sa.Connection, document_id: DocumentId, grants: Iterable[tuple[str, Effect]], *, by: str, reason: str
) -> GrantChange:
    """Make `grants` the whole list of the document."""
    return _replace(connection, _Place(document_grants, documents, document_id), grants, by=by, reason=reason)


def add_project_grant(
    connection: sa.Connection, project_id: ProjectId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Add one grant on the project; nothing changes if it is there."""
    place = _Place(project_grants, projects, project_id)
    return _add(connection, place, Grant.of(principal, effect), by=by, reason=reason)


def add_document_grant(
    connection: sa.Connection, document_id: DocumentId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Add one grant on the document; nothing changes if it is there."""
    place = _Place(document_grants, documents, document_id)
    return _add(connection, place, Grant.of(principal, effect), by=by, reason=reason)


def remove_project_grant(
    connection: sa.Connection, project_id: ProjectId, principal: str, effect: Effect
) -> GrantChange:
    """Take one grant off the project; nothing changes if it is not there."""
    return _remove(connection, _Place(project_grants, projects, project_id), Grant.of(principal, effect))


def remove_document_grant(
    connection: sa.Connection, document_id: DocumentId, principal: str, effect: Effect
) -> GrantChange:
    """Take one grant off the document; nothing changes if it is not there."""
    return _remove(connection, _Place(document_grants, documents, document_id), Grant.of(principal, effect))


def add_alias(connection: sa.Connection, principal: str, alias: str, *, by: str, reason: str) -> bool:
    """Let two principals stand for each other; tell whether anything changed. An alias to itself is refused."""
    one, other = normalise_or_refuse(principal), normalise_or_refuse(alias)
    if one == other:
        raise InvalidRequestError(f"{one} cannot be an alias of itself", field="alias")
    row = {"principal": one, "alias": other, "granted_by": by, "reason": reason}
    written = connection.execute(
        pg.insert(principal_aliases).values(row).on_conflict_do_nothing().returning(principal_aliases.c.alias)
    )
    return written.first() is not None


def remove_alias(connection: sa.Connection, principal: str, alias: str) -> bool:
    """Remove an alias, whichever way round it was written; tell whether anything changed."""
    one, other = normalise_or_refuse(principal), normalise_or_refuse(alias)
    columns = principal_aliases.c
    written = connection.execute(
        sa.delete(principal_aliases).where(
            sa.or_(
                sa.and_(columns.principal == one, columns.alias == other),
                sa.and_(columns.principal == other, columns.alias == one),
            )
        )
    )
    return written.rowcount > 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a grant is written: the grant table, the table of its target, the target."""

    grants: sa.Table
    parent: sa.Table
    target: UUID


def _replace(
    connection: sa.Connection, place: _Place, grants: Iterable[tuple[str, Effect]], *, by: str, reason: str
) -> GrantChange:
    wanted = {Grant.of(principal, effect) for principal, effect in grants}
    _lock(connection, place)
    table = place.grants
    rows = connection.execute(sa.select(table.c.principal, table.c.effect).where(table.c[0] == place.target))
    present = {Grant(Principal(row.principal), Effect(row.effect)) for row in rows}
    removed = _delete(connection, place, present - wanted)
    return GrantChange(_insert(connection, place, wanted - present, by=by, reason=reason), removed)


def _add(connection: sa.Connection, place: _Place, grant: Grant, *, by: str, reason: str) -> GrantChange:
    _lock(connection, place)
    return GrantChange(_insert(connection, place, {grant}, by=by, reason=reason), ())


def _remove(connection: sa.Connection, place: _Place, grant: Grant) -> GrantChange:
    _lock(connection, place)
    return GrantChange((), _delete(connection, place, {grant}))


def _insert(connection: sa.Connection, place: _Place, grants: set[Grant], *, by: str, reason: str) -> tuple[Grant, ...]:
    """Return what was not there yet."""
    if not grants:
        return ()
    table = place.grants
    rows = [
        {
            table.c[0].name: place.target,
            "principal": grant.principal,
            "effect": grant.effect,
            "granted_by": by,
            "reason": reason,
        }
        for grant in sorted(grants)
    ]
    statement = pg.insert(table).values(rows).on_conflict_do_nothing()
    return _granted(connection.execute(statement.returning(table.c.principal, table.c.effect)))


def _delete(connection: sa.Connection, place: _Place, grants: set[Grant]) -> tuple[Grant, ...]:
    """Return what was there."""
    if not grants:
        return ()
    table = place.grants
    key = (table.c.principal, table.c.effect)
    listed = [(grant.principal, grant.effect) for grant in sorted(grants)]
    statement = sa.delete(table).where(table.c[0] == place.target, sa.tuple_(*key).in_(listed))
    return _granted(connection.execute(statement.returning(*key)))


def _granted(rows: Iterable[sa.Row[Any]]) -> tuple[Grant, ...]:
    return tuple(sorted(Grant(Principal(row.principal), Effect(row.effect)) for row in rows))


def _lock(connection: sa.Connection, place: _Place) -> None:
    """Make writers of one target wait for each other; their statements must not see half of another's list."""
    parent = place.parent
    found = connection.execute(
        sa.select(parent.c.id).where(parent.c.id == place.target).with_for_update(key_share=True)
    )
    if found.first() is None:
        raise NotVisibleError
