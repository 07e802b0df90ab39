"""What the machine carries stays small whatever comes in: ids in pages, keys, and short reasons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from functions.index_sweep.handler import handler as sweep
from functions.ingest_members.handler import handler as find_members
from functions.ingest_quarantine.handler import handler as quarantine_handler
from functions.ingest_relate.handler import handler as relate
from local.lambda_context import LambdaContext
from shared.db.tables.ingest import ingest_state, quarantine
from shared.db.tables.sources import source_objects
from shared.errors import (
    EmbeddingWidthError,
    EmptyFileError,
    EngineUnavailableError,
    IndexMappingError,
    MisconfiguredError,
    ObjectBusyError,
    SupersededError,
)
from shared.index.writer import DrainReport
from shared.ingest import members, objects, state
from shared.ingest.contract import MAX_PAYLOAD_BYTES, Payload
from shared.ingest.objects import MemberRow
from shared.runtime import bootstrap
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceObjectId
from tests.ingest.conftest import CONFIG, World

CONTEXT = LambdaContext("test", "1", timeout_s=900)


@pytest.fixture
def holder(world: World) -> Iterator[SourceObjectId]:
    """A registered file, with the functions' services in force."""
    bootstrap.install(bootstrap.build(world.settings, engine=world.engine, store=world.store))
    source = GivenDocuments("ablage", [GivenDocument("a.eml", "a.eml", b"x")], CONFIG)
    with world.engine.begin() as connection:
        source_id = objects.ensure_source(connection, source.name, source.config)
        yield_id = objects.register(connection, source_id, list(source.scan()))["a.eml"]
    yield yield_id
    bootstrap.forget()


def hold(world: World, holder: SourceObjectId, names: list[str]) -> None:
    rows = [MemberRow(n, name, hashlib.sha256(name.encode()).hexdigest()) for n, name in enumerate(names, start=1)]
    with world.engine.begin() as connection:
        objects.register_members(connection, state.load(connection, holder).row, rows, most=10_000)


def id_of(world: World, name: str) -> SourceObjectId:
    return SourceObjectId(world.scalar(sa.select(source_objects.c.id).where(source_objects.c.name == name)))


def pages_of(holder: SourceObjectId) -> list[dict[str, Any]]:
    """What the machine gets page by page, as its states hand the answers on."""
    event: dict[str, Any] = {"object_id": str(holder), "text_key": "texts/1"}
    pages = []
    while True:
        event = find_members(event, CONTEXT)
        if not event["members"]:
            return pages
        pages.append(event)
        assert len(pages) < 100


def names_in(world: World, page: dict[str, Any]) -> list[str]:
    rows = world.rows(sa.select(source_objects.c.id, source_objects.c.name))
    names = {str(row.id): row.name for row in rows}
    return [names[one] for one in page["members"]]


def test_five_thousand_files_in_a_file_come_in_pages_of_less_than_the_limit(
    world: World, holder: SourceObjectId
) -> None:
    hold(world, holder, [f"Anlage {n}.txt" for n in range(5_000)])
    pages = pages_of(holder)
    assert len(pages) == 5_000 // members.PAGE
    assert max(len(json.dumps(page).encode()) for page in pages) < MAX_PAYLOAD_BYTES
    seen = [one for page in pages for one in page["members"]]
    assert len(seen) == len(set(seen)) == 5_000


def test_files_come_after_what_holds_them_and_level_by_level(
    world: World, holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "PAGE", 2)
    hold(world, holder, ["eins.zip", "zwei.txt", "drei.zip"])
    hold(world, id_of(world, "eins.zip"), ["eins a.txt", "eins b.zip"])
    hold(world, id_of(world, "drei.zip"), ["drei a.txt"])
    hold(world, id_of(world, "eins b.zip"), ["innen.txt"])
    assert [(page["level"], names_in(world, page)) for page in pages_of(holder)] == [
        (1, ["eins.zip", "zwei.txt"]),
        (1, ["drei.zip"]),
        (2, ["eins a.txt", "eins b.zip"]),
        (2, ["drei a.txt"]),
        (3, ["innen.txt"]),
    ]


def test_files_of_the_next_level_may_be_found_while_a_level_is_worked_through(
    world: World, holder: SourceObjectId
) -> None:
    hold(world, holder, ["eins.zip"])
    first = find_members({"object_id": str(holder)}, CONTEXT)
    hold(world, id_of(world, "eins.zip"), ["spaet.txt"])
    assert names_in(world, find_members(first, CONTEXT)) == ["spaet.txt"]


def test_what_has_gone_is_no_file_in_the_file_and_ends_no_page(
    world: World, holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "PAGE", 1)
    hold(world, holder, ["eins.txt", "zwei.txt", "drei.txt"])
    first = find_members({"object_id": str(holder)}, CONTEXT)
    assert names_in(world, first) == ["eins.txt"]
    with world.engine.begin() as connection:
        gone = source_objects.c.name.in_(["eins.txt", "zwei.txt"])
        connection.execute(sa.update(source_objects).where(gone).values(deleted_at=sa.func.now()))
    assert names_in(world, find_members(first, CONTEXT)) == ["drei.txt"]


def advance_raises(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    class Worker:
        def advance(self, *_: Any) -> Payload:
            raise error

    services = bootstrap.services()
    monkeypatch.setitem(services._made, "stage_worker", Worker())


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (EngineUnavailableError("away"), "TransientError"),
        (sa.exc.OperationalError("select", {}, Exception("gone")), "TransientError"),
        (EmptyFileError("empty"), "PermanentError"),
        (KeyError("colour"), "PermanentError"),
        (ObjectBusyError(), "ObjectBusyError"),
        (SupersededError(), "SupersededError"),
        (MisconfiguredError("no model"), "MisconfiguredError"),
        (EmbeddingWidthError("32"), "EmbeddingWidthError"),
        (IndexMappingError("other"), "IndexMappingError"),
    ],
)
def test_an_error_leaves_a_function_under_the_name_that_the_machine_matches(
    holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch, error: Exception, name: str
) -> None:
    advance_raises(monkeypatch, error)
    with pytest.raises(Exception) as raised:
        relate({"object_id": str(holder)}, CONTEXT)
    assert type(raised.value).__name__ == name


def test_an_error_s_message_does_not_make_the_payload_grow(
    holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance_raises(monkeypatch, ValueError("ä" * 1_000_000))
    with pytest.raises(Exception) as raised:
        relate({"object_id": str(holder)}, CONTEXT)
    assert len(str(raised.value)) <= 1_000
    assert raised.value.__cause__ is None


def test_what_the_service_says_of_a_killed_function_is_written_down_short(world: World, holder: SourceObjectId) -> None:
    failed = {"convert": {"Error": "States.Timeout", "Cause": "x" * 30_000}}
    answer = quarantine_handler({"object_id": str(holder), "failed": failed, "mime": "text/plain"}, CONTEXT)
    assert answer == {"object_id": str(holder)}
    [row] = world.rows(sa.select(quarantine))
    assert (row.stage, row.error) == ("convert", "States.Timeout")
    assert row.reason.startswith("the stage was ended before it could say why (States.Timeout)")
    assert len(row.reason) <= 1_000


def test_what_a_stage_has_written_down_itself_is_not_written_over(world: World, holder: SourceObjectId) -> None:
    failed = {"relate": {"Error": "TransientError", "Cause": json.dumps({"errorMessage": "away"})}}
    event = {"object_id": str(holder), "failed": failed}
    quarantine_handler(event, CONTEXT)
    with world.engine.begin() as connection:
        connection.execute(sa.update(quarantine).values(error="EngineUnavailableError"))
    quarantine_handler(event, CONTEXT)
    [row] = world.rows(sa.select(quarantine))
    assert (row.error, row.reason) == ("EngineUnavailableError", "away")


def test_a_failure_of_an_object_that_has_gone_is_not_written_down(world: World, holder: SourceObjectId) -> None:
    with world.engine.begin() as connection:
        connection.execute(sa.update(source_objects).values(deleted_at=sa.func.now()))
    quarantine_handler({"object_id": str(holder), "failed": {"relate": {"Error": "E", "Cause": "c"}}}, CONTEXT)
    assert world.rows(sa.select(quarantine)) == world.rows(sa.select(ingest_state)) == []


def test_a_function_of_a_stage_that_the_pipeline_has_not_is_a_wrong_installation(holder: SourceObjectId) -> None:
    with pytest.raises(MisconfiguredError, match="no stage called"):
        bootstrap.services().stage_worker.advance("divine", Payload(SourceObjectId(uuid4())))


class Writer:
    """Has so many versions to write, two at a time."""

    def __init__(self, versions: int, *, error: str | None = None) -> None:
        self.left = versions
        self.error = error
        self.drains = 0

    def drain(self, limit: int) -> DrainReport:  # noqa: ARG002
        self.drains += 1
        done = min(self.left, 2)
        self.left -= done
        return DrainReport(versions_indexed=done, error=self.error)


def swept(monkeypatch: pytest.MonkeyPatch, writer: Writer, *, time_s: float = 900) -> dict[str, Any]:
    monkeypatch.setitem(bootstrap.services()._made, "writer", writer)
    return sweep({}, LambdaContext("index_sweep", "1", timeout_s=time_s))


def test_a_sweep_goes_on_until_nothing_is_due(holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch) -> None:
    assert swept(monkeypatch, Writer(5)) == {"repaired": 0, "indexed": 5, "removed": 0, "failed": 0}


def test_a_sweep_ends_when_an_engine_is_away_or_its_time_is_over(
    holder: SourceObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    for writer, time_s in ((Writer(50, error="away"), 900), (Writer(50), 60)):
        swept(monkeypatch, writer, time_s=time_s)
        assert writer.drains == 1
