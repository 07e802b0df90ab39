"""The rule a second time, in plain Python over the rows of the tables: what every evaluator of the product must equal.

Slow and literal on purpose. It shares no code with the product beyond the closed sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from shared.types import AclMode


@dataclass(frozen=True)
class Facts:
    """All that the rule depends on, as the database holds it at one moment."""

    project_of: dict[UUID, UUID | None]
    document_of: dict[UUID, UUID]
    seq_of: dict[UUID, int]
    observations: set[tuple[UUID, UUID]]
    active: set[UUID]
    without_acl: set[UUID]
    local: set[UUID]
    grants: set[tuple[UUID, str, str]]
    memberships: set[tuple[str, str]]
    aliases: set[tuple[str, str]]


_QUERY = """
select json_build_object(
  'documents', (select coalesce(json_agg(json_build_array(id, project_id)), '[]') from documents),
  'versions', (select coalesce(json_agg(json_build_array(id, document_id, seq)), '[]') from document_versions),
  'observations', (select coalesce(json_agg(json_build_array(version_id, source_object_id)), '[]') from version_sources),
  'objects', (select coalesce(json_agg(json_build_array(o.id, o.deleted_at is null, o.acl_state, s.kind)), '[]')
              from source_objects o join sources s on s.id = o.source_id),
  'grants', (select coalesce(json_agg(json_build_array(target, principal, effect)), '[]') from (
      select project_id as target, principal, effect from project_grants union all
      select document_id, principal, effect from document_grants union all
      select source_object_id, principal, effect from source_object_grants) g),
  'memberships', (select coalesce(json_agg(json_build_array(group_principal, member_principal)), '[]')
                  from source_group_members),
  'aliases', (select coalesce(json_agg(json_build_array(principal, alias)), '[]') from principal_aliases))
"""


def load(connection: sa.Connection) -> Facts:
    """Read the world as this connection sees it, in one statement."""
    rows = connection.execute(sa.text(_QUERY)).scalar_one()
    objects = [(UUID(o), active, state, kind) for o, active, state, kind in rows["objects"]]
    return Facts(
        project_of={UUID(d): UUID(p) if p else None for d, p in rows["documents"]},
        document_of={UUID(v): UUID(d) for v, d, _ in rows["versions"]},
        seq_of={UUID(v): seq for v, _, seq in rows["versions"]},
        observations={(UUID(v), UUID(o)) for v, o in rows["observations"]},
        active={o for o, active, _, _ in objects if active},
        without_acl={o for o, _, state, _ in objects if state == "unknown"},
        local={o for o, _, _, kind in objects if kind == "local_fs"},
        grants={(UUID(t), p, e) for t, p, e in rows["grants"]},
        memberships={(g, m) for g, m in rows["memberships"]},
        aliases={(p, a) for p, a in rows["aliases"]},
    )


def expand(facts: Facts, principals: Iterable[str]) -> set[str]:
    """Aliases, then memberships to the end, then aliases again."""
    held = _with_aliases(facts, set(principals))
    while True:
        more = {group for group, member in facts.memberships if member in held} - held
        if not more:
            return _with_aliases(facts, held)
        held |= more


def visible(facts: Facts, principals: Iterable[str], mode: AclMode) -> set[UUID]:
    """The versions that a caller with these unexpanded principals may see."""
    held = expand(facts, principals)
    return {version for version in facts.document_of if _is_visible(facts, held, mode, version)}


def citable(facts: Facts, principals: Iterable[str], mode: AclMode) -> set[tuple[UUID, UUID]]:
    """The observations of visible versions that the caller may be shown."""
    held = expand(facts, principals)
    return {
        (version, seen_at)
        for version, seen_at in facts.observations
        if _is_visible(facts, held, mode, version) and _is_citable(facts, held, version, seen_at)
    }


def _is_visible(facts: Facts, held: set[str], mode: AclMode, version: UUID) -> bool:
    seen_at = [o for v, o in facts.observations if v == version and o in facts.active]
    if not held or not seen_at:
        return False
    if held & {"role:admin", "system:admin"}:
        return True
    places = _places(facts, version)
    allowed_locally = any(_has(facts, place, held, "allow") for place in places)
    allowed_at_source = any(_has(facts, o, held, "allow") for o in seen_at)
    allowed = allowed_locally or (mode is AclMode.SUFFICIENT and allowed_at_source)
    is_open = allowed_at_source or any(o in facts.local and o in facts.without_acl for o in seen_at)
    denied = any(_has(facts, place, held, "deny") for place in [*places, *seen_at])
    return allowed and is_open and not denied


def _is_citable(facts: Facts, held: set[str], version: UUID, seen_at: UUID) -> bool:
    if seen_at not in facts.active:
        return False
    if held & {"role:admin", "system:admin"}:
        return True
    if _has(facts, seen_at, held, "allow") and not _has(facts, seen_at, held, "deny"):
        return True
    delegated = seen_at in facts.local and seen_at in facts.without_acl
    return delegated and any(_has(facts, place, held, "allow") for place in _places(facts, version))


def _places(facts: Facts, version: UUID) -> list[UUID]:
    document = facts.document_of[version]
    project = facts.project_of[document]
    return [document] if project is None else [document, project]


def _has(facts: Facts, place: UUID, held: set[str], effect: str) -> bool:
    return any((place, principal, effect) in facts.grants for principal in held)


def _with_aliases(facts: Facts, held: set[str]) -> set[str]:
    sought = held | {_twin(principal) for principal in held}
    forward = {alias for principal, alias in facts.aliases if principal in sought}
    backward = {principal for principal, alias in facts.aliases if alias in sought}
    return held | forward | backward


def _twin(principal: str) -> str:
    kind, _, value = principal.partition(":")
    return {"user": f"username:{value}", "username": f"user:{value}"}.get(kind, principal)
