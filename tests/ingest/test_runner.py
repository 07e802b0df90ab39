"""The runner obeys the stages' data: retries, backoff, quarantine, producer versions, locks."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.db.tables.ingest import ingest_state, quarantine
from shared.errors import EngineUnavailableError, LimitExceededError, MisconfiguredError, UnreadableFileError
from shared.ingest import objects, pipeline
from shared.ingest.contract import MAX_PAYLOAD_BYTES, Payload, Retry, Services, Stage, StageResult
from shared.ingest.locks import object_lock
from shared.ingest.report import Outcome
from shared.ingest.runner import Runner
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceObjectId
from tests.ingest.conftest import CONFIG, World


def registered(world: World, *names: str):
    """Return services over registered objects, and their ids."""
    documents = [GivenDocument(name, name, name.encode()) for name in names]
    source = GivenDocuments("ablage", documents, CONFIG)
    with world.engine.begin() as connection:
        source_id = objects.ensure_source(connection, source.name, source.config)
        ids = objects.register(connection, source_id, list(source.scan()))
    services = Services(world.engine, world.store, world.settings, source, world.converter)
    return services, ids


def stage(run, *, version: str = "1", reads=(), max_tries: int = 3, name: str = "try") -> Stage:
    return Stage(name, run, lambda _: version, reads, 1.0, Retry(max_tries, 5.0))


def runner(world: World, services: Services, *stages: Stage) -> Runner:
    return Runner(services, stages, now=world.clock.now, wait=world.clock.wait)


def state_of(world: World):
    return {row.stage: row for row in world.rows(sa.select(ingest_state))}


def test_a_transient_failure_is_tried_again_after_doubling_waits(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    calls = []

    def fails_twice(call, _):
        calls.append(world.clock.time)
        if len(calls) < 3:
            raise EngineUnavailableError("away")
        return StageResult({})

    [outcome] = runner(world, services, stage(fails_twice)).run(ids.values())
    assert outcome.outcome is Outcome.REFRESHED
    assert world.clock.waits == [5.0, 10.0]
    assert (state_of(world)["try"].status, state_of(world)["try"].attempts) == ("done", 0)


def test_after_the_last_try_the_object_is_quarantined_with_the_number_of_tries(world: World) -> None:
    services, ids = registered(world, "a/x.txt")

    def fails(call, _):
        raise EngineUnavailableError("the model is away")

    [outcome] = runner(world, services, stage(fails)).run(ids.values())
    assert (outcome.outcome, outcome.error, outcome.reason) == (
        Outcome.QUARANTINED,
        "EngineUnavailableError",
        "the model is away",
    )
    [row] = world.rows(sa.select(quarantine))
    assert (row.stage, row.attempts) == ("try", 3)
    assert world.clock.waits == [5.0, 10.0]


def test_a_failure_that_may_pass_is_tried_anew_by_the_next_run(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    away = [True]

    def fails_while_away(call, _):
        if away[0]:
            raise EngineUnavailableError("away")
        return StageResult({})

    list(runner(world, services, stage(fails_while_away)).run(ids.values()))
    away[0] = False
    [outcome] = runner(world, services, stage(fails_while_away)).run(ids.values())
    assert outcome.outcome is Outcome.REFRESHED
    assert world.rows(sa.select(quarantine)) == []


def test_a_permanent_failure_is_quarantined_at_once_and_costs_no_second_try(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    calls = []

    def fails(call, _):
        calls.append(1)
        raise UnreadableFileError("cut off")

    for _ in range(2):
        [outcome] = runner(world, services, stage(fails)).run(ids.values())
        assert (outcome.outcome, outcome.reason) == (Outcome.QUARANTINED, "cut off")
    assert len(calls) == 1
    assert world.clock.waits == []


def test_a_new_producer_version_runs_the_stage_again(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    calls = []

    def run(call, _):
        calls.append(1)
        return StageResult({})

    for version in ("1", "1", "2", "2"):
        list(runner(world, services, stage(run, version=version)).run(ids.values()))
    assert len(calls) == 2


def test_a_stage_whose_input_stays_the_same_is_not_run_when_the_one_before_it_was(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    calls = []

    def first(call, _):
        return StageResult({"text_key": "texts/1"})

    def second(call, _):
        calls.append(call.payload.text_key)
        return StageResult({})

    for version in ("1", "2"):
        stages = (stage(first, version=version, name="first"), stage(second, reads=("text_key",), name="second"))
        list(runner(world, services, *stages).run(ids.values()))
    assert calls == ["texts/1"]


def test_an_error_nobody_foresaw_stops_one_object_only(world: World) -> None:
    services, ids = registered(world, "a/x.txt", "a/y.txt")

    def run(call, _):
        if call.payload.object_id == ids["a/x.txt"]:
            raise KeyError("colour")
        return StageResult({})

    found = {o.path: (o.outcome, o.error) for o in runner(world, services, stage(run)).run(ids.values())}
    assert found == {"a/x.txt": (Outcome.QUARANTINED, "KeyError"), "a/y.txt": (Outcome.REFRESHED, None)}


def test_an_object_that_waits_lets_the_others_go_first(world: World) -> None:
    services, ids = registered(world, "a/x.txt", "a/y.txt")
    failed = []

    def run(call, _):
        if call.payload.object_id == ids["a/x.txt"] and not failed:
            failed.append(1)
            raise EngineUnavailableError("away")
        return StageResult({})

    paths = [outcome.path for outcome in runner(world, services, stage(run)).run(ids.values())]
    assert paths == ["a/y.txt", "a/x.txt"]


def test_what_is_wrong_with_the_installation_ends_the_run(world: World) -> None:
    services, ids = registered(world, "a/x.txt")

    def run(call, _):
        raise MisconfiguredError("no model")

    with pytest.raises(MisconfiguredError):
        list(runner(world, services, stage(run)).run(ids.values()))
    assert world.rows(sa.select(quarantine)) == []


def test_an_object_that_another_worker_holds_is_waited_for(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with world.engine.connect() as plain:
            connection = plain.execution_options(isolation_level="AUTOCOMMIT")
            with object_lock(connection, ids["a/x.txt"]) as got:
                assert got
                held.set()
                release.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(30)
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        release.set()
        other.join(30)
        world.clock.wait(seconds)

    working = Runner(services, [stage(lambda *_: StageResult({}))], now=world.clock.now, wait=wait)
    [outcome] = working.run(ids.values())
    assert outcome.outcome is Outcome.REFRESHED
    assert waits


def test_two_workers_at_one_source_make_each_version_once(world: World) -> None:
    files = {f"a/{number}.txt": f"Schreiben Nummer {number}." for number in range(12)}
    files["a/kopie.txt"] = files["a/0.txt"]
    found = []
    threads = [threading.Thread(target=lambda: found.append(world.ingest(files, writer=None))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 2
    count = sa.select(sa.func.count()).select_from(sa.text("document_versions"))
    assert world.scalar(count) == 12
    assert world.scalar(sa.select(sa.func.count()).select_from(sa.text("version_sources"))) == 13
    assert {file.outcome for report in found for file in report.files} <= {
        Outcome.NEW,
        Outcome.COPY,
        Outcome.UNCHANGED,
    }


def test_a_payload_holds_ids_and_keys_and_stays_small() -> None:
    payload = Payload(SourceObjectId(uuid4()), sha256="0" * 64, text_key="texts/1")
    assert Payload.from_json(payload.to_json()) == payload
    with pytest.raises(LimitExceededError):
        payload.with_result({"place": "x" * MAX_PAYLOAD_BYTES})


def test_the_pipeline_has_each_stage_once_in_order(world: World) -> None:
    stages = pipeline.stages(world.settings)
    assert " ".join(one.name for one in stages) == (
        "fetch convert extract_metadata classify_matter relate extract_decisions index"
    )
    assert [one.name for one in stages if one.always] == ["fetch"]


def test_other_chunk_sizes_cut_again_and_convert_nothing(world: World) -> None:
    files = {"a/x.txt": "Ein Satz in einem langen Schreiben.\n" * 100}
    world.ingest(files)
    retrieval = world.settings.retrieval.model_copy(update={"chunk_chars": 600})
    settings = replace_settings(world, retrieval)

    class Refusing:
        def convert(self, *_, **__):
            raise AssertionError("the file was converted again")

    report = world.ingest(files, settings=settings, converter=Refusing())
    assert [file.outcome for file in report.files] == [Outcome.REFRESHED]
    longest = world.scalar(sa.text("select max(length(text)) from chunks where kind = 'chunk'"))
    assert longest <= 600


def replace_settings(world: World, retrieval):
    return world.settings.model_copy(update={"retrieval": retrieval})


def test_a_quarantined_object_can_be_tried_again(world: World) -> None:
    class Broken:
        def convert(self, *_, **__):
            raise UnreadableFileError("the converter crashed")

    documents = [GivenDocument("a/x.txt", "a/x.txt", b"Ein Schreiben.")]
    source = GivenDocuments("ablage", documents, CONFIG)
    [stopped] = world.service(converter=Broken()).ingest(source).files
    assert stopped.outcome is Outcome.QUARANTINED
    [kept] = world.service().ingest(source).files
    assert kept.outcome is Outcome.QUARANTINED
    [mended] = world.service().retry(source, [stopped.object_id]).files
    assert mended.outcome is Outcome.NEW
