"""What administrators order about access: lists of grants and aliases, shown, compared and changed.

Each change is one transaction with its audit row (`shared.access.grants` writes it), in which the caller's own rights
are looked at once more. A dry run answers the difference and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from shared.access.administrators import require_administrator
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.grants import (
    AliasChange,
    Author,
    Grant,
    GrantChange,
    HeldGrant,
    alias_change,
    grant_change,
    held_grants,
    remove_grant,
    replace_aliases,
    replace_grants,
)
from shared.access.requests import AliasList, AliasRead, AliasRemoval, GrantList, GrantPlace, GrantRemoval
from shared.db.engine import reading, run_retrying
from shared.db.tables.access import principal_aliases
from shared.errors import ConflictError, NotVisibleError
from shared.types import Principal


class AccessAdministration:
    """Shows and changes grants and aliases for administrators. Safe to share between threads.

    Every method raises `NotVisibleError` for anybody else and for an unknown project or document.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def admit(self, caller: Caller) -> None:
        """Raise `NotVisibleError` in the words of an absent route unless the caller is an administrator now."""
        with reading(self._engine) as connection:
            require_administrator(connection, caller)

    def grants(
        self, caller: Caller, kind: GrantPlace, target: str, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Return the whole list with who, when and why, and its tag."""
        asked = _identifier(target, kind)

        def work(connection: sa.Connection) -> dict[str, Any]:
            principals = require_administrator(connection, caller)
            held = held_grants(connection, kind, asked)
            detail = {"place": kind.value, "target": str(asked), "grants": len(held)}
            connection.execute(insertion(_read(caller, principals, "access.grants.read", detail, correlation_id)))
            return {"grants": [_held(one) for one in held], "tag": _tag(one.grant for one in held)}

        return run_retrying(self._engine, work)

    def replace_grants(
        self, caller: Caller, kind: GrantPlace, target: str, wanted: GrantList, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Make this the whole list, and return what was added and removed.

        Raises `InvalidRequestError` for a deny that is built or lifted without a reason, `ConflictError` when the list
        is not the one with the tag `if_tag` any more.
        """
        asked = _identifier(target, kind)
        grants = {Grant(Principal(one.principal), one.effect) for one in wanted.grants}

        def work(connection: sa.Connection) -> dict[str, Any]:
            author = _author(connection, caller, wanted.reason, correlation_id)
            if wanted.dry_run:
                before = {one.grant for one in held_grants(connection, kind, asked)}
                change = grant_change(before, grants)
            else:
                check = _unless(wanted.if_tag)
                change = replace_grants(connection, kind, asked, grants, author, check=check)
            return _changed(change, dry_run=wanted.dry_run)

        return run_retrying(self._engine, work)

    def remove_grant(
        self, caller: Caller, kind: GrantPlace, target: str, wanted: GrantRemoval, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Take one grant away, and return what was removed. Errors as of `replace_grants`."""
        asked = _identifier(target, kind)
        grant = Grant(Principal(wanted.principal), wanted.effect)

        def work(connection: sa.Connection) -> dict[str, Any]:
            author = _author(connection, caller, wanted.reason, correlation_id)
            if wanted.dry_run:
                before = {one.grant for one in held_grants(connection, kind, asked)}
                change = grant_change(before, before - {grant})
            else:
                change = remove_grant(connection, kind, asked, grant, author)
            return _changed(change, dry_run=wanted.dry_run)

        return run_retrying(self._engine, work)

    def aliases(self, caller: Caller, request: AliasRead, *, correlation_id: str | None = None) -> dict[str, Any]:
        """Return a page of the aliases in their order, with who, when and why."""

        def work(connection: sa.Connection) -> dict[str, Any]:
            principals = require_administrator(connection, caller)
            total, listed = listed_aliases(connection, request.principal, limit=request.entries, offset=request.offset)
            detail = {"about": request.principal, "aliases": len(listed)}
            connection.execute(insertion(_read(caller, principals, "access.aliases.read", detail, correlation_id)))
            end = request.offset + len(listed)
            return {
                "aliases": listed,
                "page": {
                    "offset": request.offset,
                    "limit": request.entries,
                    "returned": len(listed),
                    "has_more": end < total,
                    "next_offset": end if end < total else None,
                    "total": total,
                },
            }

        return run_retrying(self._engine, work)

    def replace_aliases(
        self, caller: Caller, wanted: AliasList, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Make these all aliases of one principal, and return what was added and removed."""
        principal, aliases = Principal(wanted.principal), {Principal(one) for one in wanted.aliases}
        return self._alias_change(
            caller, principal, lambda _: aliases, wanted.reason, correlation_id, dry_run=wanted.dry_run
        )

    def remove_alias(
        self, caller: Caller, wanted: AliasRemoval, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Remove one alias, whichever way round it was written, and return what was removed."""
        principal, alias = Principal(wanted.principal), Principal(wanted.alias)
        return self._alias_change(
            caller, principal, lambda before: before - {alias}, wanted.reason, correlation_id, dry_run=wanted.dry_run
        )

    def _alias_change(
        self,
        caller: Caller,
        principal: Principal,
        wanted: Callable[[set[Principal]], set[Principal]],
        reason: str,
        correlation_id: str | None,
        *,
        dry_run: bool,
    ) -> dict[str, Any]:
        def work(connection: sa.Connection) -> dict[str, Any]:
            author = _author(connection, caller, reason, correlation_id)
            change = alias_change if dry_run else replace_aliases
            return _changed(change(connection, principal, wanted, author), dry_run=dry_run)

        return run_retrying(self._engine, work)


def listed_aliases(
    connection: sa.Connection, principal: str | None, *, limit: int, offset: int = 0
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many aliases there are, of this principal or altogether, and a page of them."""
    columns = principal_aliases.c
    asked: sa.ColumnElement[bool] = (
        sa.true() if principal is None else sa.or_(columns.principal == principal, columns.alias == principal)
    )
    total = connection.execute(sa.select(sa.func.count()).select_from(principal_aliases).where(asked)).scalar_one()
    rows = connection.execute(
        sa.select(principal_aliases).where(asked).order_by(columns.principal, columns.alias).limit(limit).offset(offset)
    )
    return total, [
        {
            "principal": row.principal,
            "alias": row.alias,
            "granted_by": row.granted_by,
            "reason": row.reason,
            "granted_at": row.created_at,
        }
        for row in rows
    ]


def _author(connection: sa.Connection, caller: Caller, reason: str | None, correlation_id: str | None) -> Author:
    principals = require_administrator(connection, caller)
    return Author(caller.subject, reason, principals, correlation_id)


def _unless(tag: str | None) -> Callable[[Collection[Grant]], None] | None:
    """Return what refuses another list than the one with this tag: a wall that was built meanwhile must not fall."""
    if tag is None:
        return None

    def check(before: Collection[Grant]) -> None:
        if _tag(before) != tag:
            raise ConflictError("the list has changed in the meantime; read it anew")

    return check


def _tag(grants: Any) -> str:
    plain = sorted(f"{grant.principal} {grant.effect}" for grant in grants)
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:20]


def _identifier(raw: str, kind: GrantPlace) -> UUID:
    try:
        return UUID(raw)
    except ValueError as error:
        raise NotVisibleError(f"there is no such {kind}") from error


def _held(one: HeldGrant) -> dict[str, Any]:
    return {
        **one.grant.to_json(),
        "granted_by": one.granted_by,
        "reason": one.reason,
        "granted_at": one.granted_at,
    }


def _changed(change: GrantChange | AliasChange, *, dry_run: bool) -> dict[str, Any]:
    def plain(listed: Collection[Grant] | Collection[Principal]) -> list[Any]:
        return [one.to_json() if isinstance(one, Grant) else one for one in listed]

    return {
        "changed": change.changed and not dry_run,
        "added": plain(change.added),
        "removed": plain(change.removed),
        "dry_run": dry_run,
    }


def _read(
    caller: Caller,
    principals: frozenset[Principal],
    action: str,
    detail: Mapping[str, Any],
    correlation_id: str | None,
) -> AuditEntry:
    return AuditEntry(
        action=action,
        subject=caller.subject,
        principals=principals,
        outcome=ALLOWED,
        detail=detail,
        correlation_id=correlation_id,
    )
