"""Write local grants and aliases: normalised on the way in, with who and why, each change with its audit row.

A repeated grant is one row and the first reason stays. Rows are written in the order of their keys, so that two
writers of the same target wait for each other instead of deadlocking. The audit row is written here, in the caller's
transaction, so that there is no way to change a grant or an alias without one. A deny is built and lifted for a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.principals import normalise_or_refuse
from shared.access.requests import GrantPlace
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

    def to_json(self) -> dict[str, str]:
        """Return the grant as answers and the audit trail spell it."""
        return {"principal": self.principal, "effect": self.effect.value}


@dataclass(frozen=True, slots=True)
class HeldGrant:
    """A grant in force, with who gave it, why and when."""

    grant: Grant
    granted_by: str | None
    reason: str | None
    granted_at: datetime


@dataclass(frozen=True, slots=True)
class GrantChange:
    """What a write changed."""

    added: tuple[Grant, ...]
    removed: tuple[Grant, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something, and why."""

    by: str
    reason: str | None
    principals: frozenset[Principal] = frozenset()
    correlation_id: str | None = None


def held_grants(connection: sa.Connection, kind: GrantPlace, target: UUID) -> list[HeldGrant]:
    """Return the whole list of a project or document in its order; raise `NotVisibleError` for an unknown one."""
    place = _PLACES[kind].at(target)
    table = place.grants
    columns = (table.c.principal, table.c.effect, table.c.granted_by, table.c.reason, table.c.created_at)
    _exists(connection, place)
    rows = connection.execute(
        sa.select(*columns).where(table.c[0] == target).order_by(table.c.principal, table.c.effect)
    )
    return [
        HeldGrant(Grant(Principal(row.principal), Effect(row.effect)), row.granted_by, row.reason, row.created_at)
        for row in rows
    ]


def grant_change(before: Collection[Grant], wanted: Collection[Grant]) -> GrantChange:
    """Return what has to change to make one list the other."""
    return GrantChange(tuple(sorted(set(wanted) - set(before))), tuple(sorted(set(before) - set(wanted))))


def replace_grants(
    connection: sa.Connection,
    kind: GrantPlace,
    target: UUID,
    grants: Collection[Grant],
    author: Author,
    *,
    check: Callable[[Collection[Grant]], None] | None = None,
) -> GrantChange:
    """Make `grants` the whole list of the target. `check` may refuse, by raising, the list that is in force."""
    place = _PLACES[kind].at(target)
    before = _locked(connection, place)
    if check is not None:
        check(before)
    return _write(connection, place, before, grant_change(before, grants), author)


def add_grant(connection: sa.Connection, kind: GrantPlace, target: UUID, grant: Grant, author: Author) -> GrantChange:
    """Add one grant at the target; nothing changes if it is there."""
    place = _PLACES[kind].at(target)
    before = _locked(connection, place)
    return _write(connection, place, before, grant_change(before, before | {grant}), author)


def remove_grant(
    connection: sa.Connection, kind: GrantPlace, target: UUID, grant: Grant, author: Author
) -> GrantChange:
    """Take one grant away; nothing changes if it is not there."""
    place = _PLACES[kind].at(target)
    before = _locked(connection, place)
    return _write(connection, place, before, grant_change(before, before - {grant}), author)


def set_project_grants(
    connection: sa.Connection, project_id: ProjectId, grants: Iterable[tuple[str, Effect]], *, by: str, reason: str
) -> GrantChange:
    """Make `grants` the whole list of the project."""
    return replace_grants(connection, GrantPlace.PROJECT, project_id, _all(grants), Author(by, reason))


def set_document_grants(
    connection: sa.Connection, document_id: DocumentId, grants: Iterable[tuple[str, Effect]], *, by: str, reason: str
) -> GrantChange:
    """Make `grants` the whole list of the document."""
    return replace_grants(connection, GrantPlace.DOCUMENT, document_id, _all(grants), Author(by, reason))


def add_project_grant(
    connection: sa.Connection, project_id: ProjectId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Add one grant on the project; nothing changes if it is there."""
    return add_grant(connection, GrantPlace.PROJECT, project_id, Grant.of(principal, effect), Author(by, reason))


def add_document_grant(
    connection: sa.Connection, document_id: DocumentId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Add one grant on the document; nothing changes if it is there."""
    return add_grant(connection, GrantPlace.DOCUMENT, document_id, Grant.of(principal, effect), Author(by, reason))


def remove_project_grant(
    connection: sa.Connection, project_id: ProjectId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Take one grant off the project; nothing changes if it is not there."""
    return remove_grant(connection, GrantPlace.PROJECT, project_id, Grant.of(principal, effect), Author(by, reason))


def remove_document_grant(
    connection: sa.Connection, document_id: DocumentId, principal: str, effect: Effect, *, by: str, reason: str
) -> GrantChange:
    """Take one grant off the document; nothing changes if it is not there."""
    return remove_grant(connection, GrantPlace.DOCUMENT, document_id, Grant.of(principal, effect), Author(by, reason))


@dataclass(frozen=True, slots=True)
class AliasChange:
    """Which principals began and ceased to stand for the one that was asked about."""

    added: tuple[Principal, ...]
    removed: tuple[Principal, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.added or self.removed)


Wanted = Callable[[set[Principal]], set[Principal]]
"""Says which aliases there shall be, given those there are."""


def alias_change(connection: sa.Connection, principal: Principal, wanted: Wanted, _author: Author) -> AliasChange:
    """Return what `replace_aliases` would change."""
    return _alias_difference(principal, _aliases_of(connection, principal), wanted)


def replace_aliases(connection: sa.Connection, principal: Principal, wanted: Wanted, author: Author) -> AliasChange:
    """Make these all aliases of the principal. An alias to itself is refused."""
    # Writers of aliases wait for each other, readers do not.
    connection.execute(sa.text("lock table principal_aliases in share row exclusive mode"))
    before = _aliases_of(connection, principal)
    return _write_aliases(connection, principal, before, _alias_difference(principal, before, wanted), author)


def add_alias(connection: sa.Connection, principal: str, alias: str, *, by: str, reason: str) -> bool:
    """Let two principals stand for each other; tell whether anything changed. An alias to itself is refused."""
    one, other = normalise_or_refuse(principal), normalise_or_refuse(alias)
    return replace_aliases(connection, one, lambda before: before | {other}, Author(by, reason)).changed


def remove_alias(connection: sa.Connection, principal: str, alias: str, *, by: str, reason: str) -> bool:
    """Remove an alias, whichever way round it was written; tell whether anything changed."""
    one, other = normalise_or_refuse(principal), normalise_or_refuse(alias)
    return replace_aliases(connection, one, lambda before: before - {other}, Author(by, reason)).changed


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a grant is written: the kind of its target, the grant table, the table of its target, the target."""

    kind: GrantPlace
    grants: sa.Table
    parent: sa.Table
    target: UUID

    def at(self, target: UUID) -> _Place:
        return _Place(self.kind, self.grants, self.parent, target)


_NOWHERE = UUID(int=0)
_LOCKS = 0x6B690019  # any seed that no other advisory lock takes
_PLACES = {
    GrantPlace.PROJECT: _Place(GrantPlace.PROJECT, project_grants, projects, _NOWHERE),
    GrantPlace.DOCUMENT: _Place(GrantPlace.DOCUMENT, document_grants, documents, _NOWHERE),
}


def _all(grants: Iterable[tuple[str, Effect]]) -> list[Grant]:
    return [Grant.of(principal, effect) for principal, effect in grants]


def _write(
    connection: sa.Connection, place: _Place, before: set[Grant], change: GrantChange, author: Author
) -> GrantChange:
    if not change.changed:
        return change
    denies = [grant for grant in (*change.added, *change.removed) if grant.effect is Effect.DENY]
    if denies and not (author.reason or "").strip():
        raise InvalidRequestError(f"say why: a deny for {denies[0].principal} is built or lifted", field="reason")
    _delete(connection, place, change.removed)
    _insert(connection, place, change.added, author)
    after = before.union(change.added).difference(change.removed)
    detail = {
        "place": place.kind.value,
        "target": str(place.target),
        "before": [grant.to_json() for grant in sorted(before)],
        "after": [grant.to_json() for grant in sorted(after)],
        "added": [grant.to_json() for grant in change.added],
        "removed": [grant.to_json() for grant in change.removed],
    }
    _record(connection, "access.grants", detail, author)
    return change


def _insert(connection: sa.Connection, place: _Place, grants: Collection[Grant], author: Author) -> None:
    if grants:
        row = {place.grants.c[0].name: place.target, "granted_by": author.by, "reason": author.reason}
        listed = [{**row, "principal": grant.principal, "effect": grant.effect} for grant in grants]
        connection.execute(pg.insert(place.grants).values(listed))


def _delete(connection: sa.Connection, place: _Place, grants: Collection[Grant]) -> None:
    if grants:
        table = place.grants
        listed = [(grant.principal, grant.effect) for grant in grants]
        key = sa.tuple_(table.c.principal, table.c.effect)
        connection.execute(sa.delete(table).where(table.c[0] == place.target, key.in_(listed)))


def _locked(connection: sa.Connection, place: _Place) -> set[Grant]:
    """Return the list in force, and let other writers of the target wait: they must not see half of another's list."""
    _exists(connection, place)
    # Not a lock on the target's row: that takes the right to change it, and who writes grants has none over documents.
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(str(place.target), _LOCKS))))
    table = place.grants
    rows = connection.execute(sa.select(table.c.principal, table.c.effect).where(table.c[0] == place.target))
    return {Grant(Principal(row.principal), Effect(row.effect)) for row in rows}


def _exists(connection: sa.Connection, place: _Place) -> None:
    if connection.execute(sa.select(place.parent.c.id).where(place.parent.c.id == place.target)).first() is None:
        raise NotVisibleError(f"there is no such {place.kind}")


def _alias_difference(principal: Principal, before: set[Principal], wanted: Wanted) -> AliasChange:
    after = wanted(before)
    if principal in after:
        raise InvalidRequestError(f"{principal} cannot be an alias of itself", field="alias")
    return AliasChange(tuple(sorted(after - before)), tuple(sorted(before - after)))


def _aliases_of(connection: sa.Connection, principal: Principal) -> set[Principal]:
    columns = principal_aliases.c
    rows = connection.execute(
        sa.union(
            sa.select(columns.alias.label("other")).where(columns.principal == principal),
            sa.select(columns.principal).where(columns.alias == principal),
        )
    )
    return {Principal(row.other) for row in rows}


def _write_aliases(
    connection: sa.Connection, principal: Principal, before: set[Principal], change: AliasChange, author: Author
) -> AliasChange:
    if not change.changed:
        return change
    if not (author.reason or "").strip():
        raise InvalidRequestError(f"say why: the aliases of {principal} change", field="reason")
    columns = principal_aliases.c
    if change.removed:
        either_way = sa.or_(
            sa.and_(columns.principal == principal, columns.alias.in_(change.removed)),
            sa.and_(columns.alias == principal, columns.principal.in_(change.removed)),
        )
        connection.execute(sa.delete(principal_aliases).where(either_way))
    if change.added:
        row: dict[str, Any] = {"principal": principal, "granted_by": author.by, "reason": author.reason}
        connection.execute(pg.insert(principal_aliases).values([{**row, "alias": alias} for alias in change.added]))
    detail = {
        "principal": principal,
        "before": sorted(before),
        "after": sorted(before.union(change.added).difference(change.removed)),
        "added": list(change.added),
        "removed": list(change.removed),
    }
    _record(connection, "access.aliases", detail, author)
    return change


def _record(connection: sa.Connection, action: str, detail: dict[str, Any], author: Author) -> None:
    entry = AuditEntry(
        action=action,
        subject=author.by,
        principals=author.principals,
        outcome=ALLOWED,
        detail={**detail, "reason": author.reason},
        correlation_id=author.correlation_id,
    )
    connection.execute(insertion(entry))
