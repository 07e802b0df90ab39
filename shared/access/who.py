"""Say who can see a document: everybody whom some grant names or reaches, each with the rule's own verdict.

Listed are the principals that the document's grants name, at its project, at itself and at its objects; whoever holds
one of them by aliases and memberships; and what makes administrators. Members whom only the sign-in service knows are
not known here: their group stands for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from shared.access.explain import Explanation, explain_whole
from shared.access.predicate import active_observations, among_documents, base_versions, is_active
from shared.access.principals import ADMINISTRATORS, AUTHENTICATED
from shared.db.tables.access import (
    document_grants,
    principal_aliases,
    project_grants,
    source_group_members,
    source_object_grants,
)
from shared.db.tables.base import TextArray
from shared.db.tables.catalog import documents
from shared.db.tables.sources import source_objects
from shared.types import AclMode, DocumentId, Principal

_aliases, _members = principal_aliases.c, source_group_members.c
_USER, _USERNAME = "user:", "username:"


@dataclass(frozen=True, slots=True)
class Beholder:
    """One principal in question. `members`: how many a source reports for it, directly; of users always 0."""

    principal: Principal
    members: int
    explanation: Explanation


class Beholders(NamedTuple):
    """One page, and how many there are altogether: none for an unknown document, else at least administrators."""

    total: int
    listed: list[Beholder]


def who_sees(
    connection: sa.Connection,
    document_id: DocumentId,
    *,
    mode: AclMode,
    admin_groups: Collection[Principal],
    limit: int,
    offset: int,
) -> Beholders:
    """Return a page of those who may see the document, or are kept out of it, in the order of their principals.

    Each is judged as somebody signed in who holds this principal and what follows from it, and nothing else. Give a
    connection with one snapshot (REPEATABLE READ).
    """
    if connection.execute(sa.select(documents.c.id).where(documents.c.id == document_id)).first() is None:
        return Beholders(0, [])
    given = sa.bindparam(None, sorted({*ADMINISTRATORS, *admin_groups}), type_=TextArray)
    people = _in_question(document_id, given)
    total = connection.execute(sa.select(sa.func.count()).select_from(people)).scalar_one()
    page = sa.select(people.c.principal).order_by(people.c.principal).limit(limit).offset(offset)
    principals = [Principal(row.principal) for row in connection.execute(page)]
    members = _members_of(connection, principals)
    listed = []
    for principal in principals:
        own = as_signed_in(principal, admin_groups)
        found = explain_whole(connection, own, mode, document_id, with_places=False)
        listed.append(Beholder(principal, members.get(principal, 0), found))
    return Beholders(total, listed)


def as_signed_in(principal: Principal, admin_groups: Collection[Principal]) -> frozenset[Principal]:
    """Return what the token of somebody with this principal gives: an address is both `user:` and `username:`."""
    own = {principal, AUTHENTICATED}
    if principal.startswith(_USER) and "@" in principal:
        own.add(Principal(_USERNAME + principal.removeprefix(_USER)))
    if principal in admin_groups:
        own |= {Principal("role:admin")}
    return frozenset(own)


def _members_of(connection: sa.Connection, principals: Collection[Principal]) -> dict[Principal, int]:
    """Return how many direct members each of these groups has, over all sources; in one pass over the memberships."""
    asked = sa.bindparam(None, list(principals), type_=TextArray)
    rows = connection.execute(
        sa.select(_members.group_principal, sa.func.count(sa.distinct(_members.member_principal)).label("members"))
        .where(_members.group_principal == sa.any_(asked))
        .group_by(_members.group_principal)
    )
    return {Principal(row.group_principal): row.members for row in rows}


def _in_question(document_id: DocumentId, given: sa.ColumnElement[Any]) -> sa.CTE:
    """Return a CTE with `principal`: the expansion backwards, from what grants name to who holds it."""
    named = _named(document_id, given)
    known = _other_ends(named, "known_by_alias")
    reached = sa.select(known.c.principal).cte("reached", recursive=True)
    reached = reached.union(
        sa.select(_members.member_principal).join(reached, _members.group_principal == reached.c.principal)
    )
    everybody = _other_ends(reached, "everybody")
    # Whoever has an address as `username:` has it as `user:`, too: one person, one entry.
    name = everybody.c.principal
    one = sa.case(
        (name.like(f"{_USERNAME}%@%"), _USER + sa.func.substr(name, len(_USERNAME) + 1)),
        else_=name,
    )
    return sa.select(one.label("principal")).distinct().cte("in_question")


def _named(document_id: DocumentId, given: sa.ColumnElement[Any]) -> sa.CTE:
    of_document = documents.c.id == document_id
    base = base_versions(among_documents([document_id]), "asked_about")
    at_sources = (
        sa.select(source_object_grants.c.principal)
        .select_from(
            active_observations(base, base.c.id).join(
                source_object_grants, source_object_grants.c.source_object_id == source_objects.c.id
            )
        )
        .where(is_active())
    )
    return sa.union(
        sa.select(sa.func.unnest(given).label("principal")),
        sa.select(project_grants.c.principal)
        .join(documents, documents.c.project_id == project_grants.c.project_id)
        .where(of_document),
        sa.select(document_grants.c.principal).where(document_grants.c.document_id == document_id),
        at_sources,
    ).cte("named")


def _other_ends(principals: sa.CTE, name: str) -> sa.CTE:
    """Return these and what an alias ties to them. `user:x` finds aliases of `username:x`, so both ends count."""
    given = sa.select(principals.c.principal)
    tied = sa.union(
        sa.select(_aliases.principal.label("principal")).where(_aliases.alias.in_(given)),
        sa.select(_aliases.alias).where(_aliases.principal.in_(given)),
    ).cte(f"{name}_tied")
    twin = sa.case(
        (tied.c.principal.startswith(_USER), _USERNAME + sa.func.substr(tied.c.principal, len(_USER) + 1)),
        (tied.c.principal.startswith(_USERNAME), _USER + sa.func.substr(tied.c.principal, len(_USERNAME) + 1)),
        else_=tied.c.principal,
    )
    return sa.union(given, sa.select(tied.c.principal), sa.select(twin)).cte(name)
