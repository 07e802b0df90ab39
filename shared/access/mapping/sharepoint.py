"""SharePoint Online and Entra ID: role assignments, site groups, and the directory's users and groups.

Facts from Microsoft's pages "SP.PrincipalType enumeration" (1 user, 4 security group, 8 site group),
"SP.PermissionKind" (the lowest bit: ViewListItems), "RoleType enumeration" (1: Guest, which is Limited Access),
"Understanding permission levels in SharePoint", "Default SharePoint groups in SharePoint Online" (everyone except
external users), "user resource type" of Graph (`userType`), and from answers there on "Understanding login name format
of SharePoint".

SharePoint grants and never denies. A principal is the login name: a guest is `user:` with the name that the directory
gave (`...#ext#@tenant`), because an address that was only invited is not a verified one; an alias can join the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from shared.access.mapping.entries import Entries, LinkRule, allow, is_somebody, noted, unknown
from shared.access.snapshots import AclEntry, GroupMembers

INTERNAL: Final = "group:sharepoint.everyone-except-external"
EVERYONE: Final = "group:sharepoint.everyone"

_SYSTEM: Final = "sharepoint"
_USER, _SECURITY_GROUP, _SITE_GROUP = 1, 4, 8
_VIEW_ITEMS: Final = 0x1
_LIMITED_ACCESS: Final = 1  # RoleTypeKind "Guest"
_READING_ROLES: Final = frozenset({2, 3, 4, 5, 6, 7})
_USER_CLAIMS: Final = ("i:0#.f|membership|", "i:0#.w|")
_GROUP_CLAIM: Final = "c:0t.c|tenant|"
_UNIFIED_CLAIM: Final = "c:0o.c|federateddirectoryclaimprovider|"
_OWNERS: Final = "_o"
_INTERNAL_CLAIM: Final = "c:0-.f|rolemanager|spo-grid-all-users/"
_EVERYONE_CLAIM: Final = "c:0(.s|true"
_LINK: Final = "sharinglinks."
_HOUSE_LINKS: Final = ("organization", "anonymous")
_GUEST: Final = "#ext#"


@dataclass(frozen=True, slots=True)
class Site:
    """One site collection: its name (site groups are its own), its tenant, and the house's rule for links."""

    name: str
    tenant_id: UUID
    links: LinkRule = LinkRule.NOTHING


def entries(site: Site, assignments: Iterable[Mapping[str, Any]]) -> Entries | None:
    """Return the ACL that role assignments (REST, Member and RoleDefinitionBindings expanded) make; None if unreadable.

    An assignment without a role that reads items gives nothing: Limited Access only leads through to something below.
    """
    made = []
    for assignment in assignments:
        member, roles = assignment.get("Member"), assignment.get("RoleDefinitionBindings")
        if not isinstance(member, Mapping) or not isinstance(roles, list):
            return None
        if any(_reads(role) for role in roles):
            made.append(principal(site, member))
    return tuple(made)


def site_groups(site: Site, groups: Iterable[Mapping[str, Any]]) -> list[GroupMembers]:
    """Return the site's groups (REST, with Users expanded) with their members; sharing links are no groups."""
    return [
        GroupMembers(
            group=_site_group(site, group),
            members=tuple(
                entry.principal for entry in (principal(site, user) for user in group["Users"]) if is_somebody(entry)
            ),
        )
        for group in groups
        if not _is_link(group)
    ]


def directory_groups(groups: Iterable[Mapping[str, Any]]) -> list[GroupMembers]:
    """Return the groups of Graph (`id`, `members`, `owners` of a Microsoft 365 group) as our groups.

    Owners are a group of their own: who owns a group and is not in it has what SharePoint gives to owners only.
    """
    made = []
    for group in groups:
        name = f"group:entra:{UUID(str(group['id']))}"
        made.append(GroupMembers(group=name, members=_members(group["members"])))
        if "owners" in group:
            made.append(GroupMembers(group=name + _OWNERS, members=_members(group["owners"])))
    return made


def everyone(users: Iterable[Mapping[str, Any]]) -> list[GroupMembers]:
    """Return the two groups of everybody, with all enabled users of Graph (`userType`, `accountEnabled`) in them.

    Internal is only who the directory calls a member and who was not invited (`#ext#` in the name).
    """
    enabled = [user for user in users if user.get("accountEnabled") is True]
    return [
        GroupMembers(group=EVERYONE, members=_members(enabled)),
        GroupMembers(group=INTERNAL, members=_members(user for user in enabled if _is_internal(user))),
    ]


def principal(site: Site, member: Mapping[str, Any]) -> AclEntry:
    """Return the allow for a member as REST gives it (PrincipalType, LoginName, Title, Id)."""
    login, kind = str(member.get("LoginName", "")).strip().lower(), member.get("PrincipalType")
    if kind == _SITE_GROUP:
        return _link(site, member) if _is_link(member) else allow(_site_group(site, member))
    if kind == _USER:
        for claim in _USER_CLAIMS:
            if login.startswith(claim) and login != claim:
                return allow(f"user:{login.removeprefix(claim)}")
    if kind == _SECURITY_GROUP and (name := _directory_group(site, login)):
        return allow(name)
    return unknown(_SYSTEM, f"SharePoint claim {login or '(none)'} of type {kind}")


def _directory_group(site: Site, login: str) -> str | None:
    if login == _EVERYONE_CLAIM:
        return EVERYONE
    if login == f"{_INTERNAL_CLAIM}{site.tenant_id}":
        return INTERNAL
    for claim in (_GROUP_CLAIM, _UNIFIED_CLAIM):
        group = login.removeprefix(claim)
        owners = _OWNERS if claim == _UNIFIED_CLAIM and group.endswith(_OWNERS) else ""
        if group != login and (group_id := _guid(group.removesuffix(owners))):
            return f"group:entra:{group_id}{owners}"
    return None


def _reads(role: Any) -> bool:
    """Return whether the role opens items: by its permissions if they are given, else by what it is called."""
    if not isinstance(role, Mapping):
        return False
    kind, permissions = role.get("RoleTypeKind"), role.get("BasePermissions")
    if kind == _LIMITED_ACCESS:
        return False
    if isinstance(permissions, Mapping) and str(permissions.get("Low", "")).isdecimal():
        return bool(int(permissions["Low"]) & _VIEW_ITEMS)
    return kind in _READING_ROLES


def _is_link(member: Mapping[str, Any]) -> bool:
    return str(member.get("Title") or member.get("LoginName") or "").lower().startswith(_LINK)


def _link(site: Site, member: Mapping[str, Any]) -> AclEntry:
    """Return what a link gives by the house's rule. One for named people never counts: the group does not say who."""
    _, _, rest = str(member.get("Title") or member.get("LoginName")).lower().removeprefix(_LINK).partition(".")
    kind = rest.partition(".")[0]
    if site.links is LinkRule.MEMBERS and kind.startswith(_HOUSE_LINKS):
        return allow(INTERNAL)
    return noted(f"a sharing link ({kind or 'of no kind'})")


def _site_group(site: Site, group: Mapping[str, Any]) -> str:
    return f"group:sharepoint.{site.name}.{int(group['Id'])}"


def _members(members: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return users and groups of Graph as principals; devices, applications and contacts are nobody who reads."""
    made = []
    for member in members:
        if str(member.get("@odata.type", "")).endswith(".group"):
            made.append(f"group:entra:{UUID(str(member['id']))}")
        elif name := str(member.get("userPrincipalName") or "").strip():
            made.append(f"user:{name}")
    return tuple(made)


def _is_internal(user: Mapping[str, Any]) -> bool:
    return user.get("userType") == "Member" and _GUEST not in str(user.get("userPrincipalName", "")).lower()


def _guid(text: str) -> UUID | None:
    try:
        return UUID(text) if len(text) == len("00000000-0000-0000-0000-000000000000") else None
    except ValueError:
        return None
