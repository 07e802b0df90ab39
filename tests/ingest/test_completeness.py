"""Every file of a source is in exactly one state, and the statement says which and why."""

from __future__ import annotations

import sqlalchemy as sa

from shared.ingest.completeness import Reason, SourceCompleteness, completeness
from shared.ingest.pipeline import stages
from shared.sources.given import GivenDocument, GivenDocuments
from tests.ingest.conftest import CONFIG, World
from tests.ingest.test_deletions import texts, whole


def stated(world: World) -> dict[str, SourceCompleteness]:
    statements = []

    def count(connection, cursor, statement, parameters, context, many) -> None:
        statements.append(statement)

    sa.event.listen(world.engine, "before_cursor_execute", count)
    with world.engine.connect() as connection:
        found = {one.source: one for one in completeness(connection)}
    sa.event.remove(world.engine, "before_cursor_execute", count)
    assert len(statements) == 1
    for one in found.values():
        assert one.found == one.indexed + one.waiting + one.empty + one.quarantined
    return found


def test_the_stage_that_hands_over_to_the_index_is_the_last_one(world: World) -> None:
    from shared.ingest.completeness import LAST_STAGE

    assert stages(world.settings)[-1].name == LAST_STAGE


def test_each_file_is_counted_where_it_stands_with_the_reasons_of_those_that_stopped(world: World) -> None:
    files: dict[str, bytes | str] = {
        **texts(3),
        "a/plan.dwg": b"AC1032" + bytes(100),
        "a/plan2.dwg": b"AC1032" + bytes(99),
    }
    whole(world, {**files, "a/leer.txt": b"", "a/kaputt.pdf": b"%PDF-1.7 kaputt", "a/weg.txt": "Wird entfernt."})
    whole(world, {**files, "a/leer.txt": b"", "a/kaputt.pdf": b"%PDF-1.7 kaputt"})
    one = stated(world)["ablage"]
    assert (one.found, one.indexed, one.waiting, one.empty, one.quarantined) == (7, 3, 0, 1, 3)
    assert (one.tombstoned, one.held, one.oldest_pending, one.complete) == (1, 0, None, False)
    [first, second] = one.reasons
    assert (first.error, first.count, first.stage) == ("UnsupportedFileError", 2, "convert")
    assert (second.error, second.count) == ("UnreadableFileError", 1)
    assert isinstance(first, Reason)
    assert first.example


def test_what_the_index_has_not_taken_yet_waits(world: World) -> None:
    whole(world, texts(1))
    world.service(writer=None).ingest(
        GivenDocuments("zwei", [GivenDocument("a/neu.txt", "a/neu.txt", b"Ein neues Schreiben.")], CONFIG)
    )
    found = stated(world)
    assert (found["ablage"].indexed, found["ablage"].waiting) == (1, 0)
    assert (found["zwei"].indexed, found["zwei"].waiting) == (0, 1)
    queued = world.scalar(sa.text("select min(created_at) from index_outbox where done_at is null"))
    assert found["zwei"].oldest_pending == queued


def test_what_was_only_listed_waits(world: World) -> None:
    from shared.ingest.scans import Listing, begin

    whole(world, texts(1))
    source = GivenDocuments("ablage", [GivenDocument("a/neu.txt", "a/neu.txt", b"Neu.")], CONFIG)
    with world.engine.begin() as connection:
        run = begin(
            connection, connection.execute(sa.text("select id from sources")).scalar_one(), started_at=world.clock.now()
        )
    assert list(Listing(world.engine, run, source).register()) == []
    one = stated(world)["ablage"]
    assert (one.found, one.indexed, one.waiting) == (2, 1, 1)
    assert one.oldest_pending is not None


def test_held_deletions_are_shown_and_stay_found(world: World) -> None:
    whole(world, texts(20))
    whole(world, texts(5))
    one = stated(world)["ablage"]
    assert (one.found, one.indexed, one.held, one.held_scans, one.complete) == (20, 20, 15, 1, False)


def test_a_source_without_objects_is_listed_too(world: World) -> None:
    world.ingest({})
    one = stated(world)["ablage"]
    assert (one.found, one.reasons, one.complete) == (0, (), True)
    assert one.to_json()["oldest_pending"] is None
