"""How many statements a file costs, whatever is in it; and that one statement is one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from shared.db.tables.access import scope_log
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.ingest import objects, pipeline
from shared.ingest.contract import Services
from shared.ingest.runner import Runner
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceObjectId
from tests.ingest.conftest import CONFIG, World

# Lock, object with its states, hash, claim, earlier conversion, conversion, matter, lock of the place, situation,
# document with version and profile, relations, drafts to compare with, chunks with their queue entry, net below the
# queue, states, unlock.
NEW_FILE = 16
# Lock, object with its states, unlock.
UNCHANGED_FILE = 3
SENTENCE = "Ein Satz nach § 543 BGB über die Kündigung des Mietvertrags in dieser Sache.\n"


@contextmanager
def counted(world: World) -> Iterator[list[str]]:
    statements: list[str] = []

    def count(connection, cursor, statement, parameters, context, many) -> None:
        statements.append(statement)

    sa.event.listen(world.engine, "before_cursor_execute", count)
    yield statements
    sa.event.remove(world.engine, "before_cursor_execute", count)


def registered(world: World, texts: dict[str, str]) -> tuple[Runner, list[SourceObjectId]]:
    documents = [GivenDocument(path, path, text.encode()) for path, text in texts.items()]
    source = GivenDocuments("ablage", documents, CONFIG)
    with world.engine.begin() as connection:
        ids = objects.register(
            connection, objects.ensure_source(connection, source.name, source.config), list(source.scan())
        )
    services = Services(world.engine, world.store, world.settings, source, world.converter)
    return Runner(services, pipeline.stages(world.settings), now=world.clock.now, wait=world.clock.wait), list(
        ids.values()
    )


@pytest.fixture
def placed(world: World) -> World:
    """A world whose projects and matters exist."""
    world.ingest({"a/erste.txt": "Das erste Schreiben."})
    return world


@pytest.mark.parametrize("sentences", [50, 100, 200])
def test_a_new_file_costs_the_same_statements_however_long_it_is(placed: World, sentences: int) -> None:
    runner, ids = registered(placed, {"a/neu.txt": SENTENCE * sentences})
    with counted(placed) as statements:
        [outcome] = runner.run(ids)
    assert len(statements) == NEW_FILE
    cut = placed.scalar(sa.select(sa.func.count()).where(chunks.c.version_id == sa.cast(outcome.version_id, sa.Uuid)))
    assert cut > sentences / 25


@pytest.mark.parametrize("files", [1, 4])
def test_each_new_file_costs_the_same_statements_however_many_there_are(placed: World, files: int) -> None:
    runner, ids = registered(placed, {f"a/{number}.txt": f"{SENTENCE}{number}" for number in range(files)})
    with counted(placed) as statements:
        list(runner.run(ids))
    assert len(statements) == NEW_FILE * files


@pytest.mark.parametrize("sentences", [50, 100])
def test_an_unchanged_file_costs_three_statements_and_no_change(placed: World, sentences: int) -> None:
    runner, ids = registered(placed, {"a/neu.txt": SENTENCE * sentences})
    list(runner.run(ids))
    with counted(placed) as statements:
        list(runner.run(ids))
    assert len(statements) == UNCHANGED_FILE
    assert not [one for one in statements if not one.startswith("SELECT")]


def test_a_document_written_in_one_statement_reaches_the_log_of_scopes_and_the_queue(placed: World) -> None:
    runner, ids = registered(placed, {"a/neu.txt": SENTENCE})
    [outcome] = runner.run(ids)
    [found] = placed.rows(sa.select(document_versions).where(document_versions.c.id == outcome.version_id))
    assert (found.ordinal, found.size_bytes) == (1, len(SENTENCE.encode()))
    assert placed.rows(sa.select(scope_log).where(scope_log.c.kind == "version", scope_log.c.seq == found.seq))
    entries = placed.rows(sa.select(index_outbox).where(index_outbox.c.version_id == found.id))
    assert [entry.version_seq for entry in entries] == [found.seq]


@pytest.mark.parametrize("at", range(1, NEW_FILE + 1))
def test_a_worker_that_is_cut_off_at_any_statement_leaves_nothing_that_the_next_run_does_not_mend(
    placed: World, at: int
) -> None:
    class CutOffError(Exception):
        pass

    text = SENTENCE * 60
    runner, ids = registered(placed, {"a/neu.txt": text})
    seen = []

    def cut_off(connection, cursor, statement, parameters, context, many) -> None:
        seen.append(statement)
        if len(seen) >= at:
            raise CutOffError

    sa.event.listen(placed.engine, "before_cursor_execute", cut_off)
    with pytest.raises(Exception):  # noqa: B017 - what the driver's hook makes of it is not the point
        list(runner.run(ids))
    sa.event.remove(placed.engine, "before_cursor_execute", cut_off)
    placed.engine.dispose()
    list(runner.run(ids))
    [version] = placed.rows(sa.select(document_versions).where(document_versions.c.title == "neu"))
    rows = placed.rows(sa.select(chunks).where(chunks.c.version_id == version.id).order_by(chunks.c.ordinal))
    assert [row.ordinal for row in rows] == list(range(-1, len(rows) - 1))
    assert "".join(row.text for row in rows[1:2]) == text[: rows[1].char_end]
    queued = sa.select(index_outbox).where(index_outbox.c.version_id == version.id, index_outbox.c.done_at.is_(None))
    assert placed.rows(queued)
    with counted(placed) as statements:
        list(runner.run(ids))
    assert len(statements) == UNCHANGED_FILE
