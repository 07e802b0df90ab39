"""A random walk: changes by several sessions, scopes by several processes, compared after every step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import sqlalchemy as sa

from shared.access import service as service_module
from shared.access.caller import Caller
from shared.access.pruning import prune
from shared.access.service import AccessService
from shared.db.engine import reading, sqlstate
from shared.types import AclMode, Principal
from tests.access import changes, reference
from tests.access.world import uncached

CALLERS = (
    Caller("anna", frozenset(map(Principal, ("user:anna", "username:anna", "role:authenticated")))),
    Caller("ben", frozenset(map(Principal, ("user:ben", "group:a", "group:b")))),
    Caller("c", frozenset(map(Principal, ("group:c", "role:authenticated")))),
    Caller("admin", frozenset(map(Principal, ("user:anna", "role:admin")))),
)
_LOCK_NOT_AVAILABLE = "55P03"
# Few enough that a walk meets both sides of the limit, many enough that most changes are patched.
_DELTA_LIMIT = 12


class ScopeDiffersError(AssertionError):
    """A kept scope showed something else than the rule."""


@dataclass
class Walk:
    """Walks over one database; `counts` says what really happened."""

    engine: sa.Engine
    mode: AclMode
    rng: random.Random
    with_reference: bool = True
    favoured: Collection[changes.Change] = ()
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        kept = {"keep_scopes_in_process": 50, "keep_scopes_in_database": True, "scope_delta_limit": _DELTA_LIMIT}
        # Two processes that share the table, and one that keeps nothing.
        self.processes = [AccessService(self.engine, uncached(self.mode, **kept)) for _ in range(2)]
        self.cold = AccessService(self.engine, uncached(self.mode))
        self.side: list[sa.Connection] = []
        # Separate from the product's pool: these stay open between steps, and give up soon when they meet.
        impatient = {"startup_params": {"lock_timeout": "30ms"}}
        self.writers = sa.create_engine(self.engine.url, pool_size=8, connect_args=impatient)
        with self.writers.begin() as connection:
            self._seed_the_database(connection)
            changes.seed(connection, self.rng)

    def run(self, steps: int) -> None:
        """Walk; raise `ScopeDiffersError` at the first wrong scope."""
        try:
            for _ in range(steps):
                self.step()
        finally:
            for connection in self.side:
                connection.close()
            self.side.clear()
            self.writers.dispose()

    def step(self) -> None:
        """Change something in some way, then compare."""
        # Before the change: so many new rows right after it would have everything compiled anew.
        self._refill()
        way = self.rng.choices(
            ["commit", "roll back", "stay open", "settle", "inside", "prune", "lose"], [12, 2, 4, 4, 1, 0.7, 1]
        )[0]
        if way == "commit":
            self._change(end="commit")
        elif way == "roll back":
            self._change(end="rollback")
        elif way == "stay open" and len(self.side) < 3:
            self._leave_open()
        elif way == "settle" and self.side:
            connection = self.side.pop(self.rng.randrange(len(self.side)))
            end = self.rng.choice(["commit", "commit", "commit", "rollback"])
            self.counts[f"late {end}"] += 1
            getattr(connection, end)()
            connection.close()
        elif way == "inside":
            self._compare_inside_a_transaction_that_wrote()
        elif way == "prune":
            with self.engine.begin() as connection:
                pruned = prune(connection, keep_log_rows=self.rng.choice([0, 3, 10]), keep_scopes=3)
            self.counts["pruned"] += pruned.log_rows > 0
        elif way == "lose":
            self.rng.choice(self.processes).forget()
        with reading(self.engine) as connection:
            self._compare(connection, CALLERS)

    def _change(self, *, end: str) -> None:
        with self.writers.connect() as connection:
            self._seed_the_database(connection)
            for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
                if not self._apply(connection):
                    return
            getattr(connection, end)()

    def _leave_open(self) -> None:
        connection = self.writers.connect()
        self._seed_the_database(connection)
        if self._apply(connection, but_not=tuple(changes.TRUNCATE.values())):
            self.side.append(connection)
        else:
            connection.close()

    def _apply(self, connection: sa.Connection, but_not: tuple[changes.Change, ...] = ()) -> bool:
        change = changes.pick(self.rng, self.favoured)
        if change in but_not:
            return False
        try:
            change(connection, self.rng)
        except sa.exc.DBAPIError as error:
            if sqlstate(error) != _LOCK_NOT_AVAILABLE:
                raise
            self.counts["waited in vain"] += 1
            connection.rollback()
            return False
        self.counts[change.__name__] += 1
        return True

    def _seed_the_database(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.setseed(self.rng.random())))

    def _refill(self) -> None:
        with self.engine.connect() as connection:
            seen = connection.scalar(sa.text("select count(*) from version_sources"))
            granted = connection.scalar(sa.text("select count(*) from project_grants where effect = 'allow'"))
        if (seen or 0) < 6 or not granted:
            with self.writers.connect() as connection:
                self._seed_the_database(connection)
                try:
                    changes.seed(connection, self.rng)
                    connection.commit()
                except sa.exc.DBAPIError as error:
                    if sqlstate(error) != _LOCK_NOT_AVAILABLE:
                        raise

    def _compare_inside_a_transaction_that_wrote(self) -> None:
        """A scope that sees its own transaction's writes is right for it, and must not outlive its rollback."""
        with self.writers.connect() as connection:
            self._seed_the_database(connection)
            if self._apply(connection, but_not=tuple(changes.TRUNCATE.values())):
                self._compare(connection, CALLERS[:2])
                self.counts["inside"] += 1
            connection.rollback()

    def _compare(self, connection: sa.Connection, callers: tuple[Caller, ...]) -> None:
        facts = reference.load(connection) if self.with_reference else None
        for caller in callers:
            fresh = self.cold.compile_scope(connection, caller)
            process = self.rng.choice(self.processes)
            with self._watched():
                scope = process.compile_scope(connection, caller)
            self.counts["compared"] += 1
            self.counts["told something"] += scope.size > 0
            if scope.visible != fresh.visible or scope.serialised != fresh.serialised:
                raise ScopeDiffersError(f"{caller.subject}: kept {set(scope.visible)}, cold {set(fresh.visible)}")
            if scope.fingerprint != fresh.fingerprint:
                raise ScopeDiffersError(f"{caller.subject}: equal sets, unequal fingerprints")
            if facts is not None:
                expected = {facts.seq_of[v] for v in reference.visible(facts, caller.principals, self.mode)}
                if set(scope.visible) != expected:
                    raise ScopeDiffersError(f"{caller.subject}: {set(scope.visible)} is not {expected}")
            if self.rng.random() < 0.7:
                process.keep(scope)

    def _watched(self) -> _Watch:
        return _Watch(self.counts)


class _Watch:
    """Counts by which way a scope came about, by standing in for the two functions that make one."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._patch, self._anew = service_module.find_patch, service_module.compile_anew

    def __enter__(self) -> None:
        counts, patch, anew = self._counts, self._patch, self._anew
        counts["scopes"] += 1

        def counting_patch(*args: object, **named: object) -> object:
            found = patch(*args, **named)  # type: ignore[arg-type]
            counts["patched"] += found is not None
            counts["patched to effect"] += found is not None and bool(found.affected)
            return found

        def counting_anew(*args: object) -> object:
            counts["cold"] += 1
            return anew(*args)  # type: ignore[arg-type]

        service_module.find_patch, service_module.compile_anew = counting_patch, counting_anew  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        service_module.find_patch, service_module.compile_anew = self._patch, self._anew
