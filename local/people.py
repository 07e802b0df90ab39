"""Who works at the local firm and in which groups: the directory behind the local token issuer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.issuer import ADMIN_GROUP
from local.paths import Layout
from local.private_file import write_private


@dataclass(frozen=True, slots=True)
class Membership:
    """What the issuer puts into a person's tokens."""

    groups: tuple[str, ...] = ()
    admin: bool = False

    @property
    def token_groups(self) -> tuple[str, ...]:
        """The groups as a token carries them: an administrator is a member of the admin group."""
        return (*self.groups, ADMIN_GROUP) if self.admin else self.groups


def membership_of(email: str, layout: Layout | None = None) -> Membership:
    """Return a person's groups; nobody's when the directory does not know the address."""
    row = _read(_file(layout)).get(email.lower())
    return Membership(tuple(row["groups"]), bool(row["admin"])) if row else Membership()


def everybody(layout: Layout | None = None) -> dict[str, Membership]:
    """Return everybody whom the directory knows, by address."""
    return {email: membership_of(email, layout) for email in sorted(_read(_file(layout)))}


def register(people: Mapping[str, Membership], layout: Layout | None = None) -> None:
    """Put people into the directory, in place of what it knew of them."""
    path = _file(layout)
    known = _read(path)
    for email, membership in people.items():
        known[email.lower()] = {"groups": list(membership.groups), "admin": membership.admin}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True).encode())


def joined(membership: Membership, groups: Iterable[str], *, admin: bool) -> Membership:
    """Return the membership with further groups, each once."""
    return Membership(tuple(dict.fromkeys([*membership.groups, *groups])), membership.admin or admin)


def _file(layout: Layout | None) -> Path:
    return (layout or Layout.of()).state / "people.json"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
