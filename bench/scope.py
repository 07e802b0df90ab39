"""How fast a scope is for a large firm: cold, kept and unchanged, kept and patched; and what its filter weighs.

    python -m bench.scope 1000000

builds a synthetic world in a throwaway database (or in the database given by `url`, which must be migrated and
empty) and prints medians in milliseconds.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from local import postgres
from local.ports import choose_port
from shared.access import predicate
from shared.access.caller import Caller
from shared.access.predicate import Standing, among_seqs
from shared.access.pruning import prune
from shared.access.scope import CompiledAccessScope
from shared.access.service import AccessService
from shared.db.engine import make_engine, reading
from shared.db.migrate import upgrade
from shared.db.tables.base import TextArray
from shared.settings import Security, load_settings
from shared.types import Principal

TEAMS = 600
FEW_VERSIONS = 20_000
"""A firm that is built in seconds."""
_WORLD = Path(__file__).with_name("scope_world.sql")
_TEAMS_OF_CALLER = 27
_CANDIDATES = 100
_SPIN_S = 0.5

CALLER = Caller(
    "bench",
    frozenset(
        Principal(name)
        for name in (
            "user:bench",
            "role:authenticated",
            "group:wall-1",
            *(f"group:team-{number}" for number in range(1, _TEAMS_OF_CALLER + 1)),
        )
    ),
)
ADMINISTRATOR = Caller("admin", frozenset({Principal("user:admin"), Principal("role:admin")}))
SMALL = Caller("small", frozenset({Principal("user:small"), Principal("group:team-599")}))


def run(n_versions: int, *, url: str | None = None, progress: Callable[[str], None] = print) -> dict[str, Any]:
    """Return the figures for a world of `n_versions`: medians in milliseconds, sizes in versions and bytes."""
    if url is None:
        with _throwaway() as made:
            return run(n_versions, url=made, progress=progress)
    settings = load_settings({"KI_DATABASE__URL": url, "KI_DATABASE__STATEMENT_TIMEOUT_MS": "600000"})
    engine = make_engine(settings.database)
    try:
        started = time.perf_counter()
        build(engine, n_versions, progress=progress)
        built_s = time.perf_counter() - started
        return {"versions": n_versions, "build_s": round(built_s, 1), **_measured(engine, settings.security, progress)}
    finally:
        engine.dispose()


def build(engine: sa.Engine, n_versions: int, *, progress: Callable[[str], None]) -> None:
    """Fill the database with the synthetic firm."""
    values = {
        ":documents": str(max(1, n_versions * 5 // 6)),
        ":projects": str(max(40, n_versions // 100)),
        ":teams": str(TEAMS),
        ":n": str(n_versions),
    }
    text = _WORLD.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(name, value)
    statements = [statement for statement in text.split(";\n") if statement.strip()]
    with engine.begin() as connection:
        # Foreign keys hold by construction; checking a million of them is most of the time.
        connection.exec_driver_sql("set local session_replication_role = replica")
        for number, statement in enumerate(statements, start=1):
            connection.exec_driver_sql(statement)
            progress(f"building: {number} of {len(statements)}")
    with engine.begin() as connection:
        prune(connection, keep_log_rows=0, keep_scopes=0)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("vacuum analyze")


def _measured(engine: sa.Engine, security: Security, progress: Callable[[str], None]) -> dict[str, Any]:
    nothing = security.model_copy(update={"keep_scopes_in_process": 0, "keep_scopes_in_database": False})
    cold, kept = AccessService(engine, nothing), AccessService(engine, security)
    figures: dict[str, Any] = {"cpu_share_before": _cpu_share()}

    def compiled(service: AccessService, caller: Caller = CALLER) -> CompiledAccessScope:
        with reading(engine) as connection:
            return service.compile_scope(connection, caller)

    scope = compiled(kept)
    kept.keep(scope)
    figures["visible"] = scope.size
    figures["principals"] = len(scope.principals)
    figures["filter_bytes"] = len(json.dumps(scope.opensearch_filter()))
    progress("measuring: cold")
    figures["cold_ms"] = _median_ms(5, lambda: compiled(cold))
    figures["cold_small_caller_ms"] = _median_ms(5, lambda: compiled(cold, SMALL))
    figures["cold_administrator_ms"] = _median_ms(3, lambda: compiled(cold, ADMINISTRATOR))
    progress("measuring: kept")
    figures["unchanged_ms"] = _median_ms(100, lambda: compiled(kept))
    figures["unchanged_from_table_ms"] = _median_ms(20, lambda: compiled(AccessService(engine, security)))
    for name, change in _changes(engine, scope).items():
        progress(f"measuring: after {name}")
        figures[f"after_{name}_ms"] = _median_ms(12, lambda: compiled(kept), before=change)
        if set(compiled(kept).visible) != set(compiled(cold).visible):
            raise AssertionError(f"after {name}: the kept scope is not the cold one")
    progress("measuring: verification")
    figures[f"verify_{_CANDIDATES}_ms"] = _median_ms(30, _verification(engine, scope))
    figures["cpu_share_after"] = _cpu_share()
    return figures


def _changes(engine: sa.Engine, scope: CompiledAccessScope) -> dict[str, Callable[[], None]]:
    """Return changes that concern the caller, each undone by the next call."""
    seen = scope.visible[len(scope.visible) // 2]
    with engine.connect() as connection:
        document, project, seen_at = connection.execute(
            sa.text(
                "select d.id, d.project_id, s.source_object_id from document_versions v join documents d"
                " on d.id = v.document_id join version_sources s on s.version_id = v.id where v.seq = :seq limit 1"
            ),
            {"seq": seen},
        ).one()
        large = connection.scalar(sa.text("select md5('p0')::uuid"))

    def toggled(present: str, insert: str, remove: str, target: object) -> Callable[[], None]:
        def toggle() -> None:
            with engine.begin() as connection:
                found = connection.scalar(sa.text(present), {"t": target})
                connection.execute(sa.text(remove if found else insert), {"t": target})

        return toggle

    def deny(kind: str, target: object) -> Callable[[], None]:
        where = f"from {kind}_grants where {kind}_id = :t and principal = 'user:bench'"
        insert = f"insert into {kind}_grants values (:t, 'user:bench', 'deny')"  # noqa: S608
        return toggled(f"select 1 {where}", insert, f"delete {where}", target)  # no value of anyone's

    return {
        "document_deny": deny("document", document),
        "project_deny": deny("project", project),
        "large_project_deny": deny("project", large),
        "tombstone": toggled(
            "select 1 from source_objects where id = :t and deleted_at is not null",
            "update source_objects set deleted_at = now() where id = :t",
            "update source_objects set deleted_at = null where id = :t",
            seen_at,
        ),
    }


def _verification(engine: sa.Engine, scope: CompiledAccessScope) -> Callable[[], None]:
    visible = list(scope.visible)
    chance = random.Random(0)
    # Built once, as the product does.
    standing = Standing(sa.bindparam("viewer", type_=TextArray), scope.mode, scope.administrator)
    found = predicate.visible_versions(
        standing, among=among_seqs(sa.bindparam("seqs", type_=postgresql.ARRAY(sa.Integer)))
    )
    citable = predicate.citable_observations(standing, found)
    statement = sa.select(found.c.version_id, citable.c.source_object_id).join(
        citable, citable.c.version_id == found.c.version_id
    )

    def verify() -> None:
        values = {"viewer": sorted(scope.principals), "seqs": chance.sample(visible, _CANDIDATES)}
        with reading(engine) as connection:
            rows = connection.execute(statement, values).all()
        if len({row.version_id for row in rows}) != _CANDIDATES:
            raise AssertionError("a visible version did not pass verification")

    return verify


def _cpu_share() -> float:
    """Return the share of one core that a busy process gets here now: below 1, times are as much too long."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < _SPIN_S:
        pass
    return round((time.process_time() - cpu) / (time.perf_counter() - wall), 2)


def _median_ms(times: int, work: Callable[[], object], *, before: Callable[[], None] | None = None) -> float:
    taken = []
    for _ in range(times):
        if before is not None:
            before()
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return round(median(taken), 2)


@contextmanager
def _throwaway() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ki-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = postgres.PostgresCluster(folder / "data", folder / "postgres.log", choose_port(), throwaway=True)
        postgres.start(cluster)
        try:
            upgrade(cluster.url())
            yield cluster.url()
        finally:
            postgres.shut_down(cluster)


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), progress=lambda line: print(line, file=sys.stderr)), indent=2))
