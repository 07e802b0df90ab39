"""Mirror what a source reports: one object's ACL, or one source's memberships; each a whole snapshot.

A snapshot replaces the one before in one transaction of the caller's. An identical one writes nothing. An empty one
is honoured: nobody but administrators, no members. What cannot be read or is too large is stored as known and empty
with a warning; it never leaves the previous one in force.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.grants import Grant
from shared.access.inheritance import inherit_acl
from shared.access.principals import normalise, qualify
from shared.db.tables.access import source_group_members, source_object_grants
from shared.db.tables.base import TextArray, Uuid
from shared.db.tables.sources import source_objects, sources
from shared.errors import NotVisibleError
from shared.types import AclState, Effect, Principal, SourceId, SourceObjectId

MAX_ENTRIES: Final = 10_000
_WARNINGS_SHOWN = 20
_KEY: Final = ("source_object_id", "principal", "effect")


@dataclass(frozen=True, slots=True)
class UnreadableAcl:
    """The source has an ACL for the object, but it could not be read; `reason` becomes the warning."""

    reason: str


@dataclass(frozen=True, slots=True)
class MirrorOutcome:
    """What a snapshot changed. `warnings` name what was left out, and why."""

    added: int
    removed: int
    changed: bool
    warnings: tuple[str, ...] = ()


def replace_object_acl(
    connection: sa.Connection,
    source_object_id: SourceObjectId,
    entries: Collection[tuple[str, Effect]] | UnreadableAcl,
    *,
    as_of: datetime,
) -> MirrorOutcome:
    """Make `entries` (principal as the source writes it, effect) the object's whole ACL, known from now on.

    Raises `NotVisibleError` for an unknown object.
    """
    return replace_object_acls(connection, {source_object_id: entries}, as_of=as_of)[source_object_id]


def replace_object_acls(
    connection: sa.Connection,
    acls: Mapping[SourceObjectId, Collection[tuple[str, Effect]] | UnreadableAcl],
    *,
    as_of: datetime,
) -> dict[SourceObjectId, MirrorOutcome]:
    """Make these the objects' whole ACLs, in a number of statements that does not grow with theirs.

    Raises `NotVisibleError` if one of them is unknown.
    """
    columns, ids = source_objects.c, _ids(acls)
    held = connection.execute(
        sa.select(columns.id, columns.source_id, columns.acl_state, columns.acl_warning)
        .where(columns.id == sa.any_(ids))
        .order_by(columns.id)
        .with_for_update()
    ).all()
    if len(held) < len(acls):
        raise NotVisibleError
    present = _present(connection, ids)
    outcomes: dict[SourceObjectId, MirrorOutcome] = {}
    warnings: dict[SourceObjectId, str] = {}
    added: list[tuple[SourceObjectId, Grant]] = []
    removed: list[tuple[SourceObjectId, Grant]] = []
    for row in held:
        object_id = SourceObjectId(row.id)
        wanted, notes = _read_acl(SourceId(row.source_id), acls[object_id])
        new, gone = sorted(wanted - present[object_id]), sorted(present[object_id] - wanted)
        warning = "; ".join(notes)
        same_state = row.acl_state == AclState.KNOWN and (row.acl_warning or "") == warning
        changed = bool(new or gone or not same_state)
        outcomes[object_id] = MirrorOutcome(len(new), len(gone), changed=changed, warnings=notes)
        if changed:
            warnings[object_id] = warning
            added += [(object_id, grant) for grant in new]
            removed += [(object_id, grant) for grant in gone]
    if warnings:
        # The state first: grants on an object whose ACL is unknown are refused.
        connection.execute(_known_update(warnings, as_of))
        _write(connection, added, removed)
        for object_id in _holding_others(connection, warnings):
            inherit_acl(connection, object_id)
    return outcomes


def replace_memberships(
    connection: sa.Connection, source_id: SourceId, edges: Iterable[tuple[str, str]], *, as_of: datetime
) -> MirrorOutcome:
    """Make `edges` (group, member; as the source writes them) all memberships of the source.

    A member is a user or a group; anything else, and what names nobody, is left out with a warning. Raises
    `NotVisibleError` for an unknown source.
    """
    locked = sa.select(sources.c.id).where(sources.c.id == source_id).with_for_update(key_share=True)
    if connection.execute(locked).first() is None:
        raise NotVisibleError
    wanted, notes = _read_edges(source_id, edges)
    added, removed = connection.execute(_membership_change(source_id, wanted)).one()
    changed = bool(added or removed)
    if changed:
        connection.execute(sa.update(sources).where(sources.c.id == source_id).values(memberships_as_of=as_of))
    return MirrorOutcome(added, removed, changed=changed, warnings=notes)


def _read_acl(
    source_id: SourceId, entries: Collection[tuple[str, Effect]] | UnreadableAcl
) -> tuple[set[Grant], tuple[str, ...]]:
    """Return the grants in normal form and the warnings; no grants at all when the ACL cannot be trusted whole."""
    if isinstance(entries, UnreadableAcl):
        return set(), (f"ACL unreadable: {entries.reason}",)
    if len(entries) > MAX_ENTRIES:
        return set(), (f"ACL too large: {len(entries)} entries, at most {MAX_ENTRIES}",)
    grants: set[Grant] = set()
    left_out: list[str] = []
    for raw, effect in entries:
        principal = normalise(raw)
        if principal is not None:
            grants.add(Grant(qualify(source_id, principal), effect))
        elif effect is Effect.DENY and raw.strip():
            # Leaving out a deny that names someone would open the object.
            return set(), (f"ACL unreadable: the deny for {raw!r} names no known kind of principal",)
        elif raw.strip():
            left_out.append(f"left out the allow for {raw!r}")
    return grants, _shown(left_out)


def _read_edges(
    source_id: SourceId, edges: Iterable[tuple[str, str]]
) -> tuple[list[tuple[Principal, Principal]], tuple[str, ...]]:
    wanted: set[tuple[Principal, Principal]] = set()
    left_out: list[str] = []
    for raw_group, raw_member in edges:
        group, member = normalise(raw_group), normalise(raw_member)
        is_group = group is not None and group.startswith("group:")
        is_member = member is not None and member.startswith(("user:", "username:", "group:"))
        if group is None or member is None or not is_group or not is_member:
            left_out.append(f"left out the member {raw_member!r} of {raw_group!r}")
            continue
        wanted.add((qualify(source_id, group), qualify(source_id, member)))
    return sorted(wanted), _shown(left_out)


def _shown(notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - _WARNINGS_SHOWN
    return tuple(notes[:_WARNINGS_SHOWN]) + ((f"and {more} more",) if more > 0 else ())


def _present(connection: sa.Connection, ids: sa.BindParameter[Any]) -> dict[SourceObjectId, set[Grant]]:
    grants = source_object_grants.c
    present: dict[SourceObjectId, set[Grant]] = defaultdict(set)
    rows = connection.execute(
        sa.select(grants.source_object_id, grants.principal, grants.effect).where(
            grants.source_object_id == sa.any_(ids)
        )
    )
    for row in rows:
        present[SourceObjectId(row.source_object_id)].add(Grant(Principal(row.principal), Effect(row.effect)))
    return present


def _known_update(warnings: Mapping[SourceObjectId, str], as_of: datetime) -> sa.Update:
    """Return the statement that makes these ACLs known, each with its warning ("" is none)."""
    listed = sa.func.unnest(_ids(warnings), _texts(warnings.values()))
    known = listed.table_valued(sa.column("id", Uuid), "warning").render_derived().alias("known")
    return (
        sa.update(source_objects)
        .where(source_objects.c.id == known.c.id)
        .values(acl_state=AclState.KNOWN, acl_as_of=as_of, acl_warning=sa.func.nullif(known.c.warning, ""))
    )


def _holding_others(connection: sa.Connection, ids: Iterable[SourceObjectId]) -> list[SourceObjectId]:
    """Return those of the objects that other objects were taken out of."""
    parent_id = source_objects.c.parent_id
    rows = connection.execute(sa.select(parent_id).where(parent_id == sa.any_(_ids(ids))).distinct())
    return sorted(SourceObjectId(row.parent_id) for row in rows)


def _write(
    connection: sa.Connection,
    added: Sequence[tuple[SourceObjectId, Grant]],
    removed: Sequence[tuple[SourceObjectId, Grant]],
) -> None:
    table = source_object_grants
    if removed:
        gone = _listed(removed, "gone")
        connection.execute(sa.delete(table).where(*(table.c[name] == gone.c[name] for name in _KEY)))
    if added:
        new = _listed(added, "new")
        connection.execute(sa.insert(table).from_select(_KEY, sa.select(*(new.c[name] for name in _KEY))))


def _listed(grants: Sequence[tuple[SourceObjectId, Grant]], name: str) -> sa.TableValuedAlias:
    listed = sa.func.unnest(
        _ids(object_id for object_id, _ in grants),
        _texts(grant.principal for _, grant in grants),
        _texts(grant.effect for _, grant in grants),
    )
    return listed.table_valued(sa.column(_KEY[0], Uuid), *_KEY[1:]).render_derived().alias(name)


def _membership_change(source_id: SourceId, wanted: list[tuple[Principal, Principal]]) -> sa.Select[int, int]:
    """Return one statement that writes only the difference and counts it: (added, removed)."""
    table = source_group_members
    edges = sa.func.unnest(_texts(edge[0] for edge in wanted), _texts(edge[1] for edge in wanted))
    listed = edges.table_valued("group_principal", "member_principal").render_derived().alias("listed")
    want = sa.select(listed.c.group_principal, listed.c.member_principal).cte("want").prefix_with("MATERIALIZED")
    same = sa.and_(
        table.c.source_id == source_id,
        table.c.group_principal == want.c.group_principal,
        table.c.member_principal == want.c.member_principal,
    )
    removed = (
        sa.delete(table)
        .where(table.c.source_id == source_id, ~sa.exists().where(same).correlate(table))
        .returning(table.c.group_principal)
        .cte("removed")
    )
    missing = (
        sa.select(sa.literal(source_id), want.c.group_principal, want.c.member_principal)
        .where(~sa.exists().where(same).correlate(want))
        .order_by(want.c.group_principal, want.c.member_principal)
    )
    added = (
        pg.insert(table)
        .from_select(["source_id", "group_principal", "member_principal"], missing)
        .returning(table.c.group_principal)
        .cte("added")
    )
    counts = (sa.select(sa.func.count()).select_from(part).scalar_subquery() for part in (added, removed))
    return sa.select(*counts)


def _texts(values: Iterable[str]) -> sa.BindParameter[Any]:
    listed: Any = [str(value) for value in values]
    return sa.bindparam(None, listed, type_=TextArray)


def _ids(values: Iterable[SourceObjectId]) -> sa.BindParameter[Any]:
    return sa.bindparam(None, list(values), type_=pg.ARRAY(Uuid))
