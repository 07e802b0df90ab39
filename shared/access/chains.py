"""How a viewer came to each principal it holds: the aliases and the groups that lead there from its own.

`expand` says what is held; this says by which rows. It follows the same three passes (aliases, memberships to the end,
aliases again) over the rows between the principals that `expand` returned, and decides nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from shared.db.tables.access import principal_aliases, source_group_members
from shared.db.tables.base import TextArray
from shared.db.tables.sources import sources
from shared.types import Principal

_GROUP = "group:"
_MIRRORED = "group:src."


class Via(StrEnum):
    """What makes the holder of one principal hold the next."""

    ALIAS = "alias"
    MEMBERSHIP = "membership"


@dataclass(frozen=True, slots=True)
class Link:
    """One step. A membership has its source and that source's rights-as-of; an alias who set it, and why."""

    via: Via
    principal: Principal
    source: str | None = None
    as_of: datetime | None = None
    granted_by: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.via is Via.ALIAS:
            return f"also known as {self.principal}"
        return f"in {shown(self.principal)} of {self.source}"


@dataclass(frozen=True, slots=True)
class Chain:
    """From a principal of the viewer's own, step by step, to the one that is held; no steps if it is its own."""

    start: Principal
    links: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return ", ".join([shown(self.start), *map(str, self.links)])


def shown(principal: Principal) -> str:
    """Return the principal as people know it: a mirrored group without the id of its source."""
    if not principal.startswith(_MIRRORED):
        return principal
    return _GROUP + principal.removeprefix(_MIRRORED).partition(".")[2]


def chains(
    connection: sa.Connection, own: Collection[Principal], expanded: Collection[Principal]
) -> dict[Principal, Chain]:
    """Return a shortest chain to each of the expanded principals, in two statements.

    Use one snapshot (REPEATABLE READ) for this and for what it is to explain.
    """
    aliases = _hops(_aliases(connection, expanded))
    found = {principal: Chain(principal) for principal in sorted(own)}
    _follow_aliases(found, aliases)
    _follow_memberships(found, _hops(_memberships(connection, expanded)))
    _follow_aliases(found, aliases)
    return {principal: chain for principal, chain in found.items() if principal in expanded}


_Hops = Mapping[Principal, Sequence[Link]]


def _follow_aliases(found: dict[Principal, Chain], hops: _Hops) -> None:
    """Go one hop from all that is held so far, not from what this pass finds."""
    for principal, chain in list(found.items()):
        for sought in {principal: None, twin(principal): None}:
            for link in hops.get(sought, ()):
                found.setdefault(link.principal, Chain(chain.start, (*chain.links, link)))


def _follow_memberships(found: dict[Principal, Chain], hops: _Hops) -> None:
    """Go through groups to the end, nearest first; what was reached already ends a cycle."""
    waiting = deque(found)
    while waiting:
        chain = found[principal := waiting.popleft()]
        for link in hops.get(principal, ()):
            if link.principal not in found:
                found[link.principal] = Chain(chain.start, (*chain.links, link))
                waiting.append(link.principal)


def _hops(steps: Iterable[tuple[Principal, Link]]) -> dict[Principal, list[Link]]:
    hops: dict[Principal, list[Link]] = {}
    for origin, link in steps:
        hops.setdefault(origin, []).append(link)
    return hops


def _aliases(connection: sa.Connection, held: Collection[Principal]) -> list[tuple[Principal, Link]]:
    """Return each alias that touches one of these, in both directions."""
    columns = principal_aliases.c
    sought = _array({*held, *map(twin, held)})
    rows = connection.execute(
        sa.select(columns.principal, columns.alias, columns.granted_by, columns.reason)
        .where(sa.or_(columns.principal == sa.any_(sought), columns.alias == sa.any_(sought)))
        .order_by(columns.principal, columns.alias)
    )
    return [
        (Principal(here), Link(Via.ALIAS, Principal(there), granted_by=row.granted_by, reason=row.reason))
        for row in rows
        for here, there in ((row.principal, row.alias), (row.alias, row.principal))
    ]


def _memberships(connection: sa.Connection, held: Collection[Principal]) -> list[tuple[Principal, Link]]:
    columns = source_group_members.c
    principals = _array(held)
    rows = connection.execute(
        sa.select(columns.member_principal, columns.group_principal, sources.c.name, sources.c.memberships_as_of)
        .join(sources, sources.c.id == columns.source_id)
        .where(columns.member_principal == sa.any_(principals), columns.group_principal == sa.any_(principals))
        .order_by(columns.member_principal, columns.group_principal, sources.c.name)
    )
    return [
        (
            Principal(row.member_principal),
            Link(Via.MEMBERSHIP, Principal(row.group_principal), source=row.name, as_of=row.memberships_as_of),
        )
        for row in rows
    ]


def twin(principal: Principal) -> Principal:
    """Return the principal that an alias counts as the same: `user:x` for `username:x`, and the other way round."""
    kind, _, value = principal.partition(":")
    return Principal({"user": f"username:{value}", "username": f"user:{value}"}.get(kind, principal))


def _array(principals: Collection[Principal]) -> sa.BindParameter[Any]:
    return sa.bindparam(None, sorted(principals), type_=TextArray)
