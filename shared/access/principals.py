"""Principals: one normal form, the names of mirrored groups, and what a verified token gives.

Policy. Principals are compared as whole strings in lower case, not case-folded: folding would make "Straßenrecht" and
"Strassenrecht" one group, a silent over-grant. A group that a source reports belongs to that source, so that group
"partners" of one system never opens what "partners" of another may see; only directory groups mean the same
everywhere. Mirrored names are reserved: a token cannot carry one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.access.caller import Caller
from shared.errors import InvalidRequestError, UnauthenticatedError
from shared.settings import Identity
from shared.types import Principal, SourceId

KINDS: Final = frozenset({"user", "username", "group", "role", "service", "system"})
ADMINISTRATORS: Final = frozenset({Principal("role:admin"), Principal("system:admin")})
AUTHENTICATED: Final = Principal("role:authenticated")
SYNC: Final = Principal("role:sync")

_DIRECTORY_GROUPS = ("group:entra:", "group:google:")
_MIRRORED_GROUPS = "group:src."
_UNSTORABLE = frozenset({"\x00", *map(chr, range(0xD800, 0xE000))})
# PostgreSQL cannot put a longer value into the indexes that the rule depends on.
_MAX_BYTES = 1000


def normalise(raw: str) -> Principal | None:
    """Return the normal form of `raw`: NFC, trimmed (its value, too), lower case. None for what names nobody.

    No token carries a value with a blank in front: a deny for "user: anna" would keep nobody out, and not say so.
    Blank, without a known kind or a value, unstorable (NUL, lone surrogates) or over 1,000 bytes names nobody.
    """
    if not _UNSTORABLE.isdisjoint(raw):
        return None
    # Lower-casing can leave a sequence that NFC composes.
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", raw.strip()).lower()).strip()
    kind, separator, value = plain.partition(":")
    value = value.strip()
    if not separator or kind not in KINDS or not value or len(plain.encode()) > _MAX_BYTES:
        return None
    return Principal(f"{kind}:{value}")


def normalise_or_refuse(raw: str) -> Principal:
    """Return the normal form of what an administrator typed; raise `InvalidRequestError` if it names nobody."""
    principal = normalise(raw)
    if principal is None:
        raise InvalidRequestError(
            f"{raw!r} is no principal; write kind:value, kind one of {', '.join(sorted(KINDS))}", field="principal"
        )
    return principal


def normalise_all(raw: Iterable[str]) -> frozenset[Principal]:
    """Return the normal forms, without those that name nobody."""
    return frozenset(principal for item in raw if (principal := normalise(item)) is not None)


def qualify(source_id: SourceId, principal: Principal) -> Principal:
    """Return the principal as it is stored when `source_id` reports it.

    Groups become `group:src.<source>.<name>`; directory groups, users and roles stay; twice is once. A name that
    looks qualified for *another* source is qualified like any other: it must not open that source's group.
    """
    own = f"{_MIRRORED_GROUPS}{source_id}."
    if not principal.startswith("group:") or principal.startswith((own, *_DIRECTORY_GROUPS)):
        return principal
    return Principal(own + principal.removeprefix("group:"))


def is_administrator(principals: Iterable[Principal]) -> bool:
    """Tell whether these (expanded) principals make an administrator."""
    return not ADMINISTRATORS.isdisjoint(principals)


def from_claims(claims: Mapping[str, Any], settings: Identity) -> Caller:
    """Return the caller that the claims of a *verified* token describe.

    `user:<sub>`; with a verified address also `user:<e-mail>` and `username:<e-mail>`; its groups; everyone signed in
    holds `role:authenticated`; `role:admin` and `role:sync` only through a configured group. Raises
    `UnauthenticatedError` when the token names no subject. No other claim, no self-chosen name, becomes a principal.
    """
    subject = claims.get("sub")
    identity = normalise(f"user:{subject.strip()}") if isinstance(subject, str) else None
    if identity is None or not isinstance(subject, str):
        raise UnauthenticatedError("the token names no subject")
    principals = {identity, AUTHENTICATED}
    email = claims.get("email")
    verified = claims.get("email_verified")
    if isinstance(email, str) and (verified is True or verified == "true"):
        principals |= normalise_all((f"user:{email.strip()}", f"username:{email.strip()}"))
    groups = _groups(claims.get(settings.groups_claim))
    if not groups.isdisjoint(_groups(list(settings.admin_groups))):
        principals.add(Principal("role:admin"))
    if not groups.isdisjoint(_groups(list(settings.sync_groups))):
        principals.add(SYNC)
    return Caller(subject, frozenset(principals | groups))


def _groups(claim: object) -> frozenset[Principal]:
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, list | tuple) else []
    groups = normalise_all(f"group:{name.strip()}" for name in names if isinstance(name, str))
    return frozenset(group for group in groups if not group.startswith(_MIRRORED_GROUPS))
