"""Google Drive and Workspace: permissions of files, groups of the directory, and the users of the house's domains.

Facts from Google's pages "REST Resource: permissions" of the Drive API (type, role, `allowFileDiscovery`, `deleted`,
`expirationTime`, `view`), "REST Resource: members" and "REST Resource: users" of the Directory API.

Drive grants and never denies. A share with a domain is one with a group whose members the directory lists: it is never
everybody who can sign in here. Another house's domain opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.access.mapping.entries import Entries, LinkRule, allow, noted, unknown
from shared.access.snapshots import AclEntry, GroupMembers

_SYSTEM: Final = "google_drive"
_ROLES: Final = frozenset({"owner", "organizer", "fileOrganizer", "writer", "commenter", "reader"})


@dataclass(frozen=True, slots=True)
class House:
    """The house's own domains, its rule for links, and when the next snapshot is due.

    A permission that ends before then gives nothing: nobody would take it back in time.
    """

    domains: frozenset[str]
    next_snapshot_at: datetime
    links: LinkRule = LinkRule.NOTHING


def entries(house: House, permissions: Iterable[Mapping[str, Any]]) -> Entries:
    """Return the ACL that a file's permissions make."""
    return tuple(entry for permission in permissions for entry in _entries(house, permission))


def domain_groups(house: House, users: Iterable[Mapping[str, Any]]) -> list[GroupMembers]:
    """Return one group for each domain of the house, with the users of the directory that are in it and active."""
    active = [
        str(user["primaryEmail"]).strip().lower()
        for user in users
        if user.get("suspended") is False and not user.get("archived") and not user.get("deletionTime")
    ]
    return [
        GroupMembers(
            group=_domain_group(domain),
            members=tuple(f"user:{address}" for address in active if address.rpartition("@")[2] == domain),
        )
        for domain in _domains(house)
    ]


def groups(house: House, listed: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[GroupMembers]:
    """Return the directory's groups, by their address, with their members (users, groups, or a whole customer)."""
    return [
        GroupMembers(group=_group(address), members=tuple(name for one in members for name in _members(house, one)))
        for address, members in listed.items()
    ]


def _entries(house: House, permission: Mapping[str, Any]) -> list[AclEntry]:
    nothing = _nothing(house, permission)
    if nothing is not None:
        return [nothing]
    kind, address = permission.get("type"), str(permission.get("emailAddress") or "").strip()
    if kind in {"user", "group"} and address:
        return [allow(f"user:{address}" if kind == "user" else _group(address))]
    if kind == "domain":
        return _of_domain(house, str(permission.get("domain") or "").strip().lower(), permission)
    if kind == "anyone":
        return _by_link(house, _domains(house), "anyone with the link")
    return [unknown(_SYSTEM, f"Drive permission of type {kind}")]


def _nothing(house: House, permission: Mapping[str, Any]) -> AclEntry | None:
    """Return the note for a permission that opens nothing, whoever has it."""
    if permission.get("role") not in _ROLES:
        return unknown(_SYSTEM, f"Drive role {permission.get('role')}")
    if permission.get("deleted"):
        return noted(f"a deleted {permission.get('type')}")
    if permission.get("view") is not None:
        # Of a published copy or of the metadata only: neither is the file.
        return noted(f"a permission for the view {permission['view']}")
    if permission.get("expirationTime") is not None and not _lasts(house, permission["expirationTime"]):
        return noted(f"a permission that ends at {permission['expirationTime']}")
    return None


def _of_domain(house: House, domain: str, permission: Mapping[str, Any]) -> list[AclEntry]:
    if domain not in _domains(house):
        return [noted(f"everyone at {domain or 'a domain'}, which is not the house's")]
    if permission.get("allowFileDiscovery") is True:
        return [allow(_domain_group(domain))]
    # Without discovery it is a link for the domain: only who has it finds the file.
    return _by_link(house, [domain], f"anyone at {domain} with the link")


def _by_link(house: House, domains: Iterable[str], what: str) -> list[AclEntry]:
    if house.links is LinkRule.MEMBERS:
        return [allow(_domain_group(domain)) for domain in domains]
    return [noted(what)]


def _members(house: House, member: Mapping[str, Any]) -> list[str]:
    kind, address = member.get("type"), str(member.get("email") or "").strip()
    if kind == "CUSTOMER":
        return [_domain_group(domain) for domain in _domains(house)]
    if kind == "GROUP" and address:
        return [_group(address)]
    if kind == "USER" and address and member.get("status", "ACTIVE") == "ACTIVE":
        return [f"user:{address}"]
    return []


def _lasts(house: House, until: object) -> bool:
    try:
        return datetime.fromisoformat(str(until)) > house.next_snapshot_at
    except (ValueError, TypeError):
        # No time, or one that says nothing about where.
        return False


def _domains(house: House) -> list[str]:
    return sorted(domain.strip().lower() for domain in house.domains)


def _domain_group(domain: str) -> str:
    return f"group:drive.domain.{domain}"


def _group(address: str) -> str:
    return f"group:google:{address.strip().lower()}"
