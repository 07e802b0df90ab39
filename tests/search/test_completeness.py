"""An answer says whether the index has yet to take something that the caller may see; and nothing of anything else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions
from shared.types import VersionId
from tests.world import World, caller

Search = Callable[..., dict[str, Any]]


def wait_for_index(world: World, version_id: VersionId) -> None:
    with world.engine.begin() as connection:
        connection.execute(
            sa.update(document_versions).where(document_versions.c.id == version_id).values(indexed_at=None)
        )


def test_an_answer_says_whether_something_of_the_callers_is_not_in_the_index_yet(
    world: World, search: Search, listed: Search
) -> None:
    nord = world.project("nord", "group:nord")
    first = world.document(nord, "Die Kündigung")
    world.publish()
    who = caller("anna", "group:nord")
    assert search("Kündigung", who=who)["completeness"]["index_pending"] is False
    wait_for_index(world, first)
    for answer in (search("Kündigung", who=who), listed(who=who)):
        assert answer["completeness"]["index_pending"] is True
        as_of = datetime.fromisoformat(answer["completeness"]["as_of"])
        assert abs((datetime.now(UTC) - as_of).total_seconds()) < 60


def test_what_waits_behind_a_wall_does_not_show(world: World, search: Search, listed: Search) -> None:
    nord, sued = world.project("nord", "group:nord"), world.project("sued", "group:sued")
    world.document(nord, "Die Kündigung")
    hidden = [world.document(sued, f"Die Kündigung {number}") for number in range(3)]
    world.publish()
    who, other, nobody = caller("anna", "group:nord"), caller("ben", "group:sued"), caller("dora", "group:none")

    def seen() -> list[Any]:
        answers = [ask(who=one) for one in (who, nobody) for ask in (lambda who: search("Kündigung", who=who), listed)]
        for answer in answers:
            answer["completeness"].pop("as_of")
        return answers

    before = seen()
    assert [answer["completeness"] for answer in before] == [{"index_pending": False}] * 4
    for version_id in hidden:
        wait_for_index(world, version_id)
    assert seen() == before
    assert search("Kündigung", who=other)["completeness"]["index_pending"] is True
    assert search("Kündigung", who=caller("root", "role:admin"))["completeness"]["index_pending"] is True


def test_a_search_in_one_project_says_nothing_about_another(world: World, search: Search) -> None:
    nord, sued = world.project("nord"), world.project("sued")
    world.document(nord, "Die Kündigung")
    waiting = world.document(sued, "Die Kündigung")
    world.publish()
    wait_for_index(world, waiting)
    for project, is_pending in ((nord, False), (sued, True)):
        answer = search("Kündigung", project_ids=[str(project)])
        assert answer["completeness"]["index_pending"] is is_pending
