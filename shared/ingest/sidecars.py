"""The ACL file beside an object in a bucket, `<key>.acl.json`: one object's whole ACL as its source writes it."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from shared.access.mirror import UnreadableAcl
from shared.access.snapshots import AclEntry
from shared.types import Effect

_FILE: Final = TypeAdapter(list[AclEntry] | None)


def entries_of(content: bytes) -> list[tuple[str, Effect]] | UnreadableAcl:
    """Return the entries of a list like `[{"principal": "user:a@example.org", "effect": "deny"}]`.

    `null` says that the source could not read the ACL. What is no such list, or gives a key twice, is unreadable: it
    closes the object, and never leaves open what it meant to close.
    """
    try:
        entries = _FILE.validate_python(json.loads(content, object_pairs_hook=_once))
    except (ValueError, ValidationError, RecursionError):
        return UnreadableAcl("the file beside the object is no list of principals and effects")
    if entries is None:
        return UnreadableAcl("the source reports an ACL that could not be read")
    return [(entry.principal, entry.effect) for entry in entries]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
