"""Kept scopes: in the process, and in a table for the other processes. Losing either costs time only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.scope import CompiledAccessScope
from shared.db.tables.access import kept_scopes
from shared.types import Principal


@dataclass(frozen=True, slots=True)
class KeptScope:
    """A whole scope (never narrowed) with what it takes to trust it again: key, epoch and snapshot.

    The key covers the text of the rule, the mode and the expanded principals. `patches` counts the changes applied
    since the table got its copy.
    """

    key: str
    epoch: str
    snapshot: str
    scope: CompiledAccessScope
    patches: int = 0


class ProcessScopes:
    """The scopes that this process used last, by the principals of the token. Safe to share between threads.

    Looking up by unexpanded principals is a guess: the statement that follows expands them and says whether the
    guess still holds.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._scopes: OrderedDict[frozenset[Principal], KeptScope] = OrderedDict()
        self._lock = threading.Lock()

    def guess(self, principals: frozenset[Principal]) -> KeptScope | None:
        """Return what was last kept for a token with these principals."""
        with self._lock:
            found = self._scopes.get(principals)
            if found is not None:
                self._scopes.move_to_end(principals)
            return found

    def put(self, principals: frozenset[Principal], kept: KeptScope) -> None:
        """Keep it, in place of what was kept before; the least recently used goes when there are too many."""
        if not self._capacity:
            return
        with self._lock:
            self._scopes[principals] = kept
            self._scopes.move_to_end(principals)
            while len(self._scopes) > self._capacity:
                self._scopes.popitem(last=False)

    def forget(self) -> None:
        """Drop everything."""
        with self._lock:
            self._scopes.clear()


def upsert(kept: KeptScope) -> sa.Insert:
    """Return the statement that keeps a scope in the table; also fit to ride on another statement as a CTE."""
    values = {
        "key": kept.key,
        "epoch": kept.epoch,
        "snapshot": kept.snapshot,
        "principals": sorted(kept.scope.principals),
        "visible": kept.scope.serialised,
    }
    statement = pg.insert(kept_scopes).values(**values)
    renewed: Collection[str] = ("epoch", "snapshot", "principals", "visible")
    return statement.on_conflict_do_update(
        index_elements=[kept_scopes.c.key],
        set_={**{name: statement.excluded[name] for name in renewed}, "used_at": sa.func.now()},
    )
