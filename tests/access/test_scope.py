"""Budgets, traps and shapes of the compiled scope, each shown on purpose (the random walk meets them by chance)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from pyroaring import BitMap

from shared.access import compilation
from shared.access.caller import Caller
from shared.access.pruning import prune
from shared.access.scope import CompiledAccessScope
from shared.access.service import AccessService
from shared.db.engine import make_engine, reading
from shared.settings import load_settings
from shared.types import AclMode, Principal, ProjectId
from tests.access.world import World, allow, id_of, uncached, write
from tests.statements import counted

ANNA = Caller("anna", frozenset({Principal("user:anna"), Principal("group:team-a")}))
BEN = Caller("ben", frozenset({Principal("user:ben"), Principal("group:team-b")}))


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    with made.begin() as connection:
        write(connection, firm(documents=4))
    yield made
    made.dispose()


def firm(documents: int) -> World:
    world = World().project("a", allow("group:team-a")).project("b", allow("group:team-b")).source("ablage", "local_fs")
    for number in range(documents):
        world.document(f"d{number}", "ab"[number % 2]).file(f"v{number}", "ablage", f"d{number}")
    return world


def keeping(engine: sa.Engine, **changes: object) -> AccessService:
    kept = {"keep_scopes_in_process": 8, "keep_scopes_in_database": True}
    return AccessService(engine, uncached(AclMode.SUFFICIENT, **{**kept, **changes}))


def compiled(
    engine: sa.Engine, service: AccessService, caller: Caller = ANNA, project_ids: list[ProjectId] | None = None
) -> tuple[CompiledAccessScope, int]:
    with counted(engine) as statements, reading(engine) as connection:
        scope = service.compile_scope(connection, caller, project_ids=project_ids)
    return scope, len(statements)


def change(engine: sa.Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(statement), values)


def names(engine: sa.Engine, scope: CompiledAccessScope) -> set[str]:
    with engine.connect() as connection:
        rows = connection.execute(sa.text("select seq, title from document_versions")).all()
    return {row.title for row in rows if row.seq in scope.visible}


DENY_D0 = "insert into document_grants values (:d, 'user:anna', 'deny')"
D0 = id_of("document/d0")


def test_a_cold_scope_costs_two_statements_an_unchanged_one_one_and_a_patched_one_two(engine: sa.Engine) -> None:
    service = keeping(engine)
    scope, statements = compiled(engine, service)
    assert (names(engine, scope), statements) == ({"v0", "v2"}, 2)
    assert compiled(engine, service)[1] == 1
    change(engine, DENY_D0, d=D0)
    scope, statements = compiled(engine, service)
    assert (names(engine, scope), statements) == ({"v2"}, 2)
    assert compiled(engine, service)[1] == 1


def test_the_budget_does_not_grow_with_documents_grants_or_depth_of_groups(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for table in ("document_versions", "documents", "projects", "sources"):
            connection.execute(sa.text(f"delete from {table}"))
        world = firm(documents=60)
        for depth in range(40):
            world.member("ablage", f"group:g{depth + 1}", f"group:g{depth}" if depth else "user:anna")
            world.projects["b"] = [*world.projects["b"], ("group:x" + str(depth), "allow")]
        world.alias(f"group:src.{id_of('source/ablage')}.g40", "group:team-b")
        write(connection, world)
    service = keeping(engine)
    scope, statements = compiled(engine, service)
    assert (scope.size, statements) == (60, 2)
    assert compiled(engine, service)[1] == 1
    change(engine, DENY_D0, d=D0)
    scope, statements = compiled(engine, service)
    assert (scope.size, statements) == (59, 2)


def test_a_grant_for_a_stranger_costs_nobody_else_anything(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    change(engine, "insert into document_grants values (:d, 'user:stranger', 'deny')", d=D0)
    assert compiled(engine, service)[1] == 1


def test_memberships_and_aliases_take_effect_at_once(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    change(engine, "insert into principal_aliases values ('user:anna', 'group:team-b')")
    assert compiled(engine, service)[0].size == 4
    change(engine, "delete from principal_aliases")
    assert compiled(engine, service)[0].size == 2


def test_a_change_that_began_before_the_scope_and_committed_after_it_is_seen(engine: sa.Engine) -> None:
    """Two sessions: neither the id nor the time of the log row is later than the scope."""
    service = keeping(engine)
    with engine.connect() as early:
        early.execute(sa.text(DENY_D0), {"d": D0})
        assert names(engine, compiled(engine, service)[0]) == {"v0", "v2"}
        # Another change in between pushes every simple watermark past the first one.
        change(engine, "update documents set project_id = null where id = :d", d=id_of("document/d1"))
        assert names(engine, compiled(engine, service)[0]) == {"v0", "v2"}
        early.commit()
    scope, statements = compiled(engine, service)
    assert (names(engine, scope), statements) == ({"v2"}, 2)


def test_a_scope_compiled_in_a_transaction_that_wrote_is_right_there_and_never_kept(engine: sa.Engine) -> None:
    service = keeping(engine)
    with engine.connect() as connection:
        connection.execute(
            sa.text("insert into document_grants values (:d, 'user:anna', 'allow')"), {"d": id_of("document/d1")}
        )
        inside = service.compile_scope(connection, ANNA)
        assert names_inside(connection, inside) == {"v0", "v1", "v2"}
        assert inside.snapshot is None
        assert inside.pending is None
        connection.rollback()
    assert names(engine, compiled(engine, service)[0]) == {"v0", "v2"}


def names_inside(connection: sa.Connection, scope: CompiledAccessScope) -> set[str]:
    rows = connection.execute(sa.text("select seq, title from document_versions"))
    return {row.title for row in rows if row.seq in scope.visible}


def test_a_kept_scope_serves_another_process_through_the_table(engine: sa.Engine) -> None:
    first, second = keeping(engine), keeping(engine)
    scope, _ = compiled(engine, first)
    first.keep(scope)
    change(engine, DENY_D0, d=D0)
    with counted(engine) as statements, reading(engine) as connection:
        patched = second.compile_scope(connection, ANNA)
    assert names(engine, patched) == {"v2"}
    assert len(statements) == 2
    assert "affected" in statements.texts[1]
    second.keep(patched)
    assert compiled(engine, keeping(engine))[1] == 1


def test_people_with_the_same_guess_but_another_expansion_do_not_share(engine: sa.Engine) -> None:
    service = keeping(engine)
    assert names(engine, compiled(engine, service, ANNA)[0]) == {"v0", "v2"}
    assert names(engine, compiled(engine, service, BEN)[0]) == {"v1", "v3"}
    assert names(engine, compiled(engine, service, Caller("x", frozenset()))[0]) == set()


@pytest.mark.parametrize(
    "statement",
    [
        "update scope_epoch set token = gen_random_uuid()",
        "delete from scope_epoch",
        "update kept_scopes set visible = '\\x00'",
        "truncate scope_log",
    ],
)
def test_what_cannot_be_trusted_any_more_is_compiled_anew(engine: sa.Engine, statement: str) -> None:
    first = keeping(engine)
    first.keep(compiled(engine, first)[0])
    change(engine, statement)
    service = keeping(engine) if "visible" in statement else first
    with counted(engine) as statements, reading(engine) as connection:
        scope = service.compile_scope(connection, ANNA)
    assert names(engine, scope) == {"v0", "v2"}
    assert len(statements) == 2
    assert "affected" not in statements.texts[1]


def test_without_an_epoch_nothing_is_kept(engine: sa.Engine) -> None:
    """As on a standby, whose snapshots do not list running transactions."""
    change(engine, "delete from scope_epoch")
    service = keeping(engine)
    scope, _ = compiled(engine, service)
    assert (scope.size, scope.snapshot, scope.pending) == (2, None, None)
    assert compiled(engine, service)[1] == 2


def test_pruning_past_a_scope_makes_it_cold_and_pruning_short_of_it_does_not(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    change(engine, DENY_D0, d=D0)
    change(engine, "delete from document_grants")
    with engine.begin() as connection:
        assert prune(connection, keep_log_rows=0, keep_scopes=100).log_rows > 0
    with counted(engine) as statements, reading(engine) as connection:
        service.compile_scope(connection, ANNA)
    assert len(statements) == 2
    assert "affected" not in statements.texts[1]
    with engine.begin() as connection:
        assert prune(connection, keep_log_rows=0, keep_scopes=100).log_rows == 0
    assert compiled(engine, service)[1] == 1


def test_pruning_keeps_what_a_running_transaction_may_still_add_to(engine: sa.Engine) -> None:
    service = keeping(engine)
    with engine.connect() as early:
        early.execute(sa.text(DENY_D0), {"d": D0})
        change(engine, "insert into document_grants values (:d, 'user:anna', 'deny')", d=id_of("document/d2"))
        compiled(engine, service)
        with engine.begin() as connection:
            prune(connection, keep_log_rows=0, keep_scopes=100)
        assert compiled(engine, service)[1] == 1, "a long transaction must not make everyone cold"
        early.commit()
    scope, statements = compiled(engine, service)
    assert (names(engine, scope), statements) == (set(), 2)


def test_kept_scopes_are_pruned_by_last_use(engine: sa.Engine) -> None:
    service = keeping(engine)
    for caller in (ANNA, BEN):
        service.keep(compiled(engine, service, caller)[0])
    with engine.begin() as connection:
        assert prune(connection, keep_log_rows=10_000, keep_scopes=1).scopes == 1
        assert connection.scalar(sa.text("select count(*) from kept_scopes")) == 1


def test_a_large_statement_is_logged_by_target_and_still_patched_or_recompiled(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    change(
        engine,
        "insert into document_grants select :d, 'user:n' || n, 'deny' from generate_series(1, 2500) n",
        d=D0,
    )
    with engine.connect() as connection:
        rows = connection.execute(
            sa.text(
                "select kind, target, principal from scope_log where xid = (select max(xid::text::bigint)::text::xid8 from scope_log)"
            )
        ).all()
    assert rows == [("document", D0, None)]
    assert names(engine, compiled(engine, service)[0]) == {"v0", "v2"}


def test_too_many_changes_are_compiled_anew(engine: sa.Engine) -> None:
    service = keeping(engine, scope_delta_limit=2)
    compiled(engine, service)
    for number in range(3):
        change(engine, DENY_D0, d=id_of(f"document/d{number}"))
    with counted(engine) as statements, reading(engine) as connection:
        scope = service.compile_scope(connection, ANNA)
    assert names(engine, scope) == set()
    assert "affected" not in statements.texts[1]


def test_triggers_stay_on_when_a_session_poses_as_a_replica(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    with engine.begin() as connection:
        connection.execute(sa.text("set local session_replication_role = replica"))
        connection.execute(sa.text(DENY_D0), {"d": D0})
    assert names(engine, compiled(engine, service)[0]) == {"v2"}


def test_who_may_write_grants_need_not_be_able_to_write_the_log(engine: sa.Engine) -> None:
    service = keeping(engine)
    compiled(engine, service)
    role = f"clerk_{engine.url.database}"
    change(engine, f"create role {role}")
    try:
        change(engine, f"grant insert on document_grants to {role}")
        with engine.begin() as connection:
            connection.execute(sa.text(f"set local role {role}"))
            connection.execute(sa.text(DENY_D0), {"d": D0})
        assert names(engine, compiled(engine, service)[0]) == {"v2"}
    finally:
        change(engine, f"drop owned by {role}; drop role {role}")


def test_a_role_that_may_only_read_compiles_scopes(engine: sa.Engine) -> None:
    role = f"reader_{engine.url.database}"
    change(engine, f"create role {role}")
    try:
        change(engine, f"grant select on all tables in schema public to {role}")
        service = keeping(engine)
        with engine.connect() as connection:
            connection.execute(sa.text(f"set local role {role}"))
            scope = service.compile_scope(connection, ANNA)
            assert scope.snapshot is not None
        assert compiled(engine, service)[1] == 1
    finally:
        change(engine, f"drop owned by {role}; drop role {role}")


def test_a_long_log_of_other_peoples_changes_is_read_from_its_end(engine: sa.Engine) -> None:
    """Also before the first ANALYZE: nothing but the new rows is touched."""
    others = "insert into scope_log (kind, target, principal) select 'document', gen_random_uuid(), 'user:x' || n % 99"
    change(engine, f"{others} from generate_series(1, 50000) n")
    service = keeping(engine)
    compiled(engine, service)
    change(engine, DENY_D0, d=D0)
    assert compiled(engine, service)[1] == 2
    plan = explained_probe(engine, service)
    assert "Seq Scan on scope_log" not in plan
    assert "Index Scan using ix_scope_log_xid" in plan


def explained_probe(engine: sa.Engine, service: AccessService) -> str:
    guess = service._process.guess(ANNA.principals)
    assert guess is not None
    values = {
        "principals": sorted(ANNA.principals),
        "key_prefix": compilation.key_prefix(AclMode.SUFFICIENT),
        "limit": 5001,
        "wide_limit": 5001,
        "guess_key": guess.key,
        "guess_epoch": guess.epoch,
        "guess_snapshot": guess.snapshot,
    }
    statement = compilation._probe(has_guess=True, from_table=True, is_narrowed=False)
    text = statement.compile(dialect=engine.dialect)
    parameters = text.construct_params(values)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"explain {text}", tuple(parameters[name] for name in text.positiontup or ()))
        return "\n".join(row[0] for row in rows)


def test_what_is_shared_between_requests_cannot_be_changed(engine: sa.Engine) -> None:
    service = keeping(engine)
    scope, _ = compiled(engine, service)
    assert not hasattr(scope.visible, "add")
    mine = scope.visible
    mine &= BitMap()
    assert compiled(engine, service)[0].size == 2


def test_every_trigger_that_tells_of_changes_is_always_on(engine: sa.Engine) -> None:
    # Those of the audit trail only refuse; a seal finds what somebody did who had switched them off.
    triggers = "select tgname, tgenabled from pg_trigger where not tgisinternal and tgname !~ '^audit_'"
    with engine.connect() as connection:
        modes = connection.execute(sa.text(triggers)).all()
    assert len(modes) > 20
    assert {mode for _, mode in modes} == {"A"}


def test_asked_for_projects_narrow_the_scope_and_foreign_ones_empty_it(engine: sa.Engine) -> None:
    service = keeping(engine)
    a, b = ProjectId(id_of("project/a")), ProjectId(id_of("project/b"))
    assert names(engine, compiled(engine, service, ANNA, [a])[0]) == {"v0", "v2"}
    for foreign in ([b], [], [ProjectId(id_of("nothing"))]):
        scope, statements = compiled(engine, service, ANNA, foreign)
        assert scope.is_empty
        assert scope.opensearch_filter() == {"match_none": {}}
        assert statements == 1
    # Narrowing never spoils what is kept.
    assert names(engine, compiled(engine, service, ANNA)[0]) == {"v0", "v2"}


def test_the_filter_lists_a_small_set_and_packs_a_large_one(engine: sa.Engine) -> None:
    listed = compiled(engine, keeping(engine, scope_bitmap_threshold=2))[0]
    assert listed.opensearch_filter() == {"terms": {"version_seq": sorted(listed.visible)}}
    packed = compiled(engine, keeping(engine, scope_bitmap_threshold=1))[0]
    terms = packed.opensearch_filter()["terms"]
    assert terms["value_type"] == "bitmap"
    assert BitMap.deserialize(base64.b64decode(terms["version_seq"][0])) == listed.visible
    assert packed.fingerprint == listed.fingerprint


def test_equal_scopes_have_equal_bytes_however_they_came_about(engine: sa.Engine) -> None:
    patched, cold = (
        keeping(engine, scope_bitmap_threshold=0),
        keeping(engine, keep_scopes_in_process=0, keep_scopes_in_database=False, scope_bitmap_threshold=0),
    )
    compiled(engine, patched)
    change(engine, DENY_D0, d=D0)
    compiled(engine, patched)
    change(engine, "delete from document_grants")
    one, other = compiled(engine, patched)[0], compiled(engine, cold)[0]
    assert json.dumps(one.opensearch_filter()) == json.dumps(other.opensearch_filter())
    assert one.fingerprint == other.fingerprint
    assert len(one.shown_fingerprint) == 20


def test_the_fingerprint_tells_principals_mode_narrowing_and_set_apart(engine: sa.Engine) -> None:
    service = keeping(engine)
    project = ProjectId(id_of("project/a"))
    scopes = [
        compiled(engine, service)[0],
        compiled(engine, service, Caller("anna", ANNA.principals | {Principal("group:x")}))[0],
        compiled(engine, service, ANNA, [project])[0],
        compiled(engine, AccessService(engine, uncached(AclMode.INTERSECT)))[0],
    ]
    change(engine, DENY_D0, d=D0)
    scopes.append(compiled(engine, service)[0])
    assert len({scope.fingerprint for scope in scopes}) == len(scopes)


def test_the_key_covers_the_text_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compilation.key_prefix(AclMode.SUFFICIENT)
    monkeypatch.setattr("shared.access.predicate.is_active", sa.true)
    compilation._whole.cache_clear()
    compilation.key_prefix.cache_clear()
    try:
        assert compilation.key_prefix(AclMode.SUFFICIENT) != before
    finally:
        compilation._whole.cache_clear()
        compilation.key_prefix.cache_clear()


def test_a_name_with_a_line_break_is_not_two_names(engine: sa.Engine) -> None:
    """The key is made of the list of names; gluing them together would let one name pose as two."""
    service = keeping(engine)
    two, _ = compiled(engine, service, Caller("two", frozenset({Principal("group:team-a"), Principal("user:x")})))
    service.keep(two)
    glued = Caller("one", frozenset({Principal('group:team-a","user:x'), Principal("group:team-a\nuser:x")}))
    assert compiled(engine, keeping(engine), glued)[0].is_empty
