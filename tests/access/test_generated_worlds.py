from __future__ import annotations

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.types import AclMode
from tests.access.generated import GROUPS, NAMES, callers, grant_lists, worlds
from tests.access.world import World, ask, write

MODES = st.sampled_from(list(AclMode))
QUIET = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_every_evaluator_agrees_with_the_reference_on_generated_worlds(engine: sa.Engine) -> None:
    asked = telling = 0

    @settings(QUIET, max_examples=70)
    @given(worlds(), st.lists(callers, min_size=2, max_size=3), MODES)
    def compare(world: World, people: list[set[str]], mode: AclMode) -> None:
        nonlocal asked, telling
        with engine.connect() as connection:
            write(connection, world)
            for principals in people:
                found = ask(connection, principals, mode)
                asked += 1
                telling += 0 < len(found.versions) < len(world.versions)
            connection.rollback()

    compare()
    # A world in which nobody, or everybody, sees everything proves nothing.
    assert telling >= asked * 0.3, f"only {telling} of {asked} answers tell anything"


def test_a_new_deny_never_adds_a_result(engine: sa.Engine) -> None:
    lost = 0

    @settings(QUIET, max_examples=25)
    @given(worlds(), callers, MODES, st.sampled_from(NAMES), st.data())
    def law(world: World, principals: set[str], mode: AclMode, stranger: str, data: st.DataObject) -> None:
        nonlocal lost
        # Half of the time it names the caller.
        stranger = data.draw(st.sampled_from([stranger, *principals]))
        with engine.connect() as connection:
            write(connection, world)
            before = ask(connection, principals, mode)
            connection.rollback()
            kind = data.draw(st.sampled_from(["project", "document", "object"]))
            if kind == "project":
                name = data.draw(st.sampled_from(sorted(world.projects)))
                world.projects[name] = [*world.projects[name], (stranger, "deny")]
            elif kind == "document":
                name = data.draw(st.sampled_from(sorted(world.documents)))
                project, grants = world.documents[name]
                world.documents[name] = (project, [*grants, (stranger, "deny")])
            else:
                name = data.draw(st.sampled_from(sorted(world.objects)))
                source, acl, gone = world.objects[name]
                world.objects[name] = (source, [*(acl or ()), (stranger, "deny")], gone)
            write(connection, world)
            after = ask(connection, principals, mode)
            connection.rollback()
        assert after.versions <= before.versions
        assert after.observations <= before.observations
        lost += after != before

    law()
    assert lost, "no deny ever took anything away"


def test_taking_away_a_group_never_adds_a_result_where_nothing_is_denied(engine: sa.Engine) -> None:
    lost = 0

    @settings(QUIET, max_examples=25)
    @given(worlds(denies=False), callers, MODES, st.sampled_from(GROUPS))
    def law(world: World, principals: set[str], mode: AclMode, group: str) -> None:
        nonlocal lost
        with engine.connect() as connection:
            write(connection, world)
            fewer = ask(connection, principals - {group}, mode)
            more = ask(connection, principals | {group}, mode)
            connection.rollback()
        assert fewer.versions <= more.versions
        assert fewer.observations <= more.observations
        lost += fewer != more

    law()
    assert lost, "no group ever mattered"


def test_adding_an_allow_never_removes_a_result_unless_it_gives_an_object_its_first_acl(engine: sa.Engine) -> None:
    @settings(QUIET, max_examples=15)
    @given(worlds(), callers, MODES, grant_lists)
    def law(world: World, principals: set[str], mode: AclMode, grants: list[tuple[str, str]]) -> None:
        with engine.connect() as connection:
            write(connection, world)
            before = ask(connection, principals, mode)
            connection.rollback()
            for name, old in world.projects.items():
                world.projects[name] = [*old, *((principal, "allow") for principal, _ in grants)]
            write(connection, world)
            after = ask(connection, principals, mode)
            connection.rollback()
        assert before.versions <= after.versions

    law()
