"""Expand principals: aliases, then memberships, then aliases again; adding, never removing.

An alias works in both directions, one hop a pass; `user:x` and `username:x` count as each other when it is looked up.
Memberships are followed through groups to the end; cycles end by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from shared.db.tables.access import principal_aliases, source_group_members
from shared.db.tables.base import TextArray
from shared.types import Principal

_aliases, _members = principal_aliases.c, source_group_members.c


def expand(connection: sa.Connection, principals: Iterable[Principal]) -> frozenset[Principal]:
    """Return the expanded principals, in one statement. A search gets them with its scope instead."""
    given = sa.bindparam(None, sorted(principals), type_=TextArray)
    rows = connection.execute(sa.select(expanded(given).c.principal))
    return frozenset(Principal(row.principal) for row in rows)


def expanded(given: sa.ColumnElement[Any]) -> sa.CTE:
    """Return a CTE with one column, `principal`: those of the array `given` and all that they stand for."""
    raw = sa.select(sa.func.unnest(given).label("principal")).cte("raw_principals")
    known = _with_aliases(raw, "known_principals")
    holders = sa.select(known.c.principal).cte("held_principals", recursive=True)
    held = holders.union(
        sa.select(_members.group_principal).join(holders, _members.member_principal == holders.c.principal)
    )
    return _with_aliases(held, "expanded_principals")


def _with_aliases(principals: sa.CTE, name: str) -> sa.CTE:
    given = principals.c.principal
    sought = sa.union(sa.select(given.label("principal")), sa.select(_twin(given))).cte(f"{name}_sought")
    return sa.union(
        sa.select(given.label("principal")),
        sa.select(_aliases.alias).where(_aliases.principal.in_(sa.select(sought.c.principal))),
        sa.select(_aliases.principal).where(_aliases.alias.in_(sa.select(sought.c.principal))),
    ).cte(name)


def _twin(principal: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return sa.case(
        (principal.startswith("user:", autoescape=True), "username:" + sa.func.substr(principal, len("user:") + 1)),
        (principal.startswith("username:", autoescape=True), "user:" + sa.func.substr(principal, len("username:") + 1)),
        else_=principal,
    )
