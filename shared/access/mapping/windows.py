"""Windows file servers: the access list of a file as SDDL or as `icacls` prints it, and everybody's groups.

Facts from Microsoft's pages "ACE Strings" and "Security Descriptor String Format" (SDDL; rights as letters or as a
number, where CC is the bit of FILE_READ_DATA), "File Access Rights Constants", "Well-known SIDs", "icacls" (I, OI, CI,
IO, NP; simple and specific rights), and "How DACLs Control Access to an Object" (no list at all opens to everyone). An
owner has READ_CONTROL and WRITE_DAC without any entry; neither reads data.

Only what includes reading data counts. A deny wins here wherever it stands: Windows lets an explicit allow go before an
inherited deny; closed where they differ. What only hands rights down (IO) says nothing about the file. Accounts of the
machine itself (SYSTEM, Administrators) are given nothing: who runs a file server does not thereby read its documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.access.mapping.entries import Entries, allow, deny, unknown
from shared.access.snapshots import AclEntry, GroupMembers
from shared.types import Effect

EVERYONE: Final = "group:windows.everyone"
AUTHENTICATED: Final = "group:windows.authenticated-users"

_SYSTEM: Final = "windows"
_READ_DATA: Final = 0x1
_READS: Final = _READ_DATA | 0x80000000 | 0x10000000  # or generic read, or generic all
_RIGHTS: Final[Mapping[str, int]] = {
    "GA": 0x10000000, "GX": 0x20000000, "GW": 0x40000000, "GR": 0x80000000,
    "SD": 0x10000, "RC": 0x20000, "WD": 0x40000, "WO": 0x80000,
    "FA": 0x1F01FF, "FR": 0x120089, "FW": 0x120116, "FX": 0x1200A0,
    "CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
}  # fmt: skip
_SIDS: Final[Mapping[str, str]] = {
    "WD": "S-1-1-0", "AN": "S-1-5-7", "AU": "S-1-5-11", "SY": "S-1-5-18", "LS": "S-1-5-19", "NS": "S-1-5-20",
    "CO": "S-1-3-0", "CG": "S-1-3-1", "OW": "S-1-3-4", "NU": "S-1-5-2", "IU": "S-1-5-4",
    "BA": "S-1-5-32-544", "BU": "S-1-5-32-545", "BG": "S-1-5-32-546",
}  # fmt: skip
_OF_DOMAIN: Final[Mapping[str, str]] = {"DA": "512", "DU": "513", "DG": "514"}
_GIVEN_NOTHING: Final = frozenset({"S-1-5-18", "S-1-5-19", "S-1-5-20", "S-1-5-32-544", "S-1-3-0", "S-1-3-1"})
_GUEST_ACCOUNT: Final = "-501"
_SID: Final = r"(?:S-1-[0-9A-Fx-]+|[A-Z]{2})"
# Owner and group come first and give no right to read data.
_HEAD: Final = re.compile(rf"(?:O:{_SID})?(?:G:{_SID})?D:(?P<flags>[A-Z_]*)")
_DENYING: Final = frozenset({"D", "OD", "XD"})
_NOT_WEIGHED: Final = frozenset({"OA", "XA", "ZA"})
_FIELDS: Final = 6
_ICACLS: Final = re.compile(r"(?P<name>.+?):(?P<parts>(?:\([A-Za-z,]+\))+)")
_ICACLS_FLAGS: Final = frozenset({"I", "OI", "CI", "IO", "NP"})
_ICACLS_READS: Final = frozenset({"F", "M", "RX", "R", "GR", "GA", "RD"})
_ICACLS_OTHERS: Final = frozenset(
    {"W", "D", "DE", "RC", "WDAC", "WO", "S", "AS", "MA", "GW", "GE", "WD", "AD", "REA", "WEA", "X", "DC", "RA", "WA"}
)


@dataclass(frozen=True, slots=True)
class Directory:
    r"""Who is behind a SID: users by their sign-in name, groups (also local ones) whose members are mirrored.

    `names` are the SIDs of names as `icacls` prints them, `DOMAIN\name` or a localised well-known one, in lower case.
    """

    users: Mapping[str, str]
    groups: frozenset[str]
    domain_sid: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


def entries_of_sddl(directory: Directory, sddl: str) -> Entries | None:
    """Return the ACL that a security descriptor makes, None if it cannot be read.

    A descriptor without a list, which Windows opens to everyone, counts as one that cannot be read.
    """
    try:
        return tuple(entry for ace in _aces(sddl.strip()) for entry in _of_ace(directory, ace))
    except ValueError:
        return None


def entries_of_icacls(directory: Directory, aces: Iterable[str]) -> Entries | None:
    r"""Return the ACL that lines like `KANZLEI\anna:(I)(RX)` make (no path before the first), None if unreadable."""
    made: list[AclEntry] = []
    for ace in aces:
        found = _ICACLS.fullmatch(ace.strip())
        if found is None:
            return None
        parts = found["parts"].upper().strip("()").split(")(")
        rights = [right for part in parts if part not in _ICACLS_FLAGS | {"DENY"} for right in part.split(",")]
        effect = Effect.DENY if "DENY" in parts or rights == ["N"] else Effect.ALLOW
        if not rights or not set(rights) <= _ICACLS_READS | _ICACLS_OTHERS | {"N"}:
            return None
        # No access at all is written as a deny of everything.
        reads = rights == ["N"] or not _ICACLS_READS.isdisjoint(rights)
        if "IO" in parts or not reads:
            continue
        name = found["name"].strip()
        sid = directory.names.get(name.lower(), name)
        made += _entry(directory, sid, effect)
    return tuple(made)


def everyone(directory: Directory) -> list[GroupMembers]:
    """Return the two groups of everybody with the directory's users; the account for guests has not signed in."""
    users = sorted(directory.users.items())
    signed_in = tuple(f"user:{name}" for sid, name in users if not sid.endswith(_GUEST_ACCOUNT))
    return [
        GroupMembers(group=EVERYONE, members=tuple(f"user:{name}" for _, name in users)),
        GroupMembers(group=AUTHENTICATED, members=signed_in),
    ]


def group_of(sid: str) -> str:
    """Return the group that stands for a SID; its members come in the snapshot of memberships."""
    return f"group:windows.{sid.upper()}"


def _aces(sddl: str) -> list[str]:
    """Return what stands in the brackets of the list; `ValueError` if there is no list, or something else in it."""
    head = _HEAD.match(sddl)
    if head is None or "NO_ACCESS" in head["flags"]:
        raise ValueError
    at, found = head.end(), []
    while sddl[at : at + 1] == "(":
        end = _closing(sddl, at)
        found.append(sddl[at + 1 : end])
        at = end + 1
    if sddl[at:] and not sddl.startswith("S:", at):
        raise ValueError
    return found


def _closing(sddl: str, at: int) -> int:
    """Return where the bracket at `at` closes: conditions have brackets and quoted text of their own."""
    depth, is_quoted = 0, False
    for place in range(at, len(sddl)):
        letter = sddl[place]
        if letter == '"':
            is_quoted = not is_quoted
        elif not is_quoted:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0:
                return place
    raise ValueError


def _of_ace(directory: Directory, ace: str) -> list[AclEntry]:
    """Return the entry, none if the ACE does not concern reading this file; `ValueError` if it cannot be read."""
    parts = [part.strip().upper() for part in ace.split(";", _FIELDS)]
    if len(parts) < _FIELDS or parts[0] not in {"A"} | _DENYING | _NOT_WEIGHED or len(parts[1]) % 2:
        raise ValueError
    kind, flags, sid = parts[0], parts[1], _sid(directory, parts[5])
    if "IO" in _pairs(flags) or not _mask(parts[2]) & _READS:
        return []
    if kind in _NOT_WEIGHED:
        return [unknown(_SYSTEM, f"an allow under a condition, or for a part, for {sid}")]
    # A deny under a condition is one: what cannot be looked at here may hold.
    return _entry(directory, sid, Effect.DENY if kind in _DENYING else Effect.ALLOW)


def _entry(directory: Directory, sid: str, effect: Effect) -> list[AclEntry]:
    sid = sid.upper()
    if effect is Effect.ALLOW and sid in _GIVEN_NOTHING:
        return []
    principal = _principal(directory, sid)
    if principal is None:
        return [unknown(_SYSTEM, f"Windows account {sid}", effect)]
    return [deny(principal) if effect is Effect.DENY else allow(principal)]


def _principal(directory: Directory, sid: str) -> str | None:
    if sid == _SIDS["WD"]:
        return EVERYONE
    if sid == _SIDS["AU"]:
        return AUTHENTICATED
    if sid in directory.users:
        return f"user:{directory.users[sid]}"
    return group_of(sid) if sid in directory.groups else None


def _sid(directory: Directory, written: str) -> str:
    if written in _OF_DOMAIN and directory.domain_sid:
        return f"{directory.domain_sid.upper()}-{_OF_DOMAIN[written]}"
    return _SIDS.get(written, written)


def _mask(rights: str) -> int:
    if rights.startswith("0X"):
        return int(rights, 16)
    pairs = _pairs(rights)
    if not pairs <= _RIGHTS.keys():
        raise ValueError
    mask = 0
    for pair in pairs:
        mask |= _RIGHTS[pair]
    return mask


def _pairs(letters: str) -> set[str]:
    return {letters[at : at + 2] for at in range(0, len(letters), 2)}
