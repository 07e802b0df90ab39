"""iManage Work: default security and trustees of a document, and the groups and users of a library.

Facts from iManage's pages "Security Access Levels", "Managing Groups" and "Managing Users" of the Control Center help
(no access, read only, read/write, full access; external users), and from "iManage Work" among Microsoft's connectors
(default security inherit, private, view, public; trustees with `no_access`, `read`, `read_write`, `full_access`).

No access is a deny, and a deny wins here over whatever else somebody holds, in iManage not always: closed where they
differ. `inherit` says nothing without the folder: an export must resolve it. Membership in NRTADMIN opens nothing here.
A user's id is the library's own; `people` says which sign-in address is behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.access.mapping.entries import Entries, allow, deny, unknown
from shared.access.snapshots import AclEntry, GroupMembers
from shared.types import Effect

EVERYONE: Final = "group:imanage.everyone"
"""All users of the library that are the house's own; default security is for them."""

_SYSTEM: Final = "imanage"
_OPEN: Final = frozenset({"public", "view"})
_CLOSED: Final = frozenset({"private"})
_READING: Final = frozenset({"read", "read_write", "full_access", "change_security"})
_NO_ACCESS: Final = "no_access"


def people(users: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the address of each user of the library by id; who has none is nobody here."""
    return {_id(user): str(user["email"]).strip() for user in users if str(user.get("email") or "").strip()}


def entries(known: Mapping[str, str], security: Mapping[str, Any]) -> Entries | None:
    """Return the ACL that `default_security` and `trustees` (id, type, access_level) make; None if unreadable."""
    default, trustees = str(security.get("default_security") or "").lower(), security.get("trustees")
    if default not in _OPEN | _CLOSED or not isinstance(trustees, list):
        return None
    made = [_entry(known, trustee) for trustee in trustees]
    return (allow(EVERYONE), *made) if default in _OPEN else tuple(made)


def groups(known: Mapping[str, str], listed: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[GroupMembers]:
    """Return the library's groups by id with their users (those that may log on)."""
    return [GroupMembers(group=_group(group), members=_logging_on(known, users)) for group, users in listed.items()]


def everyone(known: Mapping[str, str], users: Iterable[Mapping[str, Any]]) -> list[GroupMembers]:
    """Return the group that default security is for: users that may log on and are not external."""
    own = [user for user in users if user.get("is_external") is False]
    return [GroupMembers(group=EVERYONE, members=_logging_on(known, own))]


def _entry(known: Mapping[str, str], trustee: Any) -> AclEntry:
    """Return the entry of a trustee. One of whom it is not clear what it may, may be meant to be kept out."""
    given = trustee if isinstance(trustee, Mapping) else {}
    kind, name, level = str(given.get("type")).lower(), _id(given), str(given.get("access_level")).lower()
    effect = Effect.ALLOW if level in _READING else Effect.DENY
    principal = None
    if kind == "group" and name:
        principal = _group(name)
    elif kind == "user" and name in known:
        principal = f"user:{known[name]}"
    if principal is None or level not in _READING | {_NO_ACCESS}:
        return unknown(_SYSTEM, f"iManage trustee {name or '(none)'} of type {kind} with {level}", effect)
    return allow(principal) if effect is Effect.ALLOW else deny(principal)


def _logging_on(known: Mapping[str, str], users: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    names = (_id(user) for user in users if user.get("allow_logon") is True)
    return tuple(f"user:{known[name]}" for name in names if name in known)


def _id(thing: Mapping[str, Any]) -> str:
    return str(thing.get("id") or "").strip().lower()


def _group(name: str) -> str:
    return f"group:imanage.{name}"
