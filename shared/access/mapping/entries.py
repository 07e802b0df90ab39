"""The entries that mappings make: for somebody, or for what is not understood and therefore opens nothing."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final

from shared.access.snapshots import AclEntry
from shared.types import Effect

_LOG = logging.getLogger(__name__)
_NOBODY: Final = "noted"
_MAX_CHARS: Final = 500

Entries = tuple[AclEntry, ...]


class LinkRule(StrEnum):
    """The house's rule for what is shared by a link with everyone in the house, or with anyone at all.

    A link is found by who was sent it, and search would find for everyone what Drive or SharePoint does not list: so by
    default it opens nothing here. `MEMBERS`: the house counts such a link as given to all its own people, never to
    guests and never to the world.
    """

    NOTHING = "nothing"
    MEMBERS = "members"


def allow(principal: str) -> AclEntry:
    """Return the entry that lets the principal read."""
    return AclEntry(principal=principal)


def deny(principal: str) -> AclEntry:
    """Return the entry that keeps the principal out."""
    return AclEntry(principal=principal, effect=Effect.DENY)


def unknown(system: str, what: str, effect: Effect = Effect.ALLOW) -> AclEntry:
    """Return an entry that names nobody, and log that there is one (without names: they can be addresses).

    `mirror` leaves such an allow out with a warning, and closes the object for such a deny.
    """
    _LOG.warning("acl entry is not understood", extra={"system": system, "effect": str(effect)})
    return noted(what, effect)


def noted(what: str, effect: Effect = Effect.ALLOW) -> AclEntry:
    """Return an entry that is understood and by rule opens nothing; it shows among the warnings of the object."""
    return AclEntry(principal=f"{_NOBODY}: {what[:_MAX_CHARS]}", effect=effect)


def is_somebody(entry: AclEntry) -> bool:
    """Return whether the entry names a principal at all."""
    return not entry.principal.startswith(f"{_NOBODY}:")
