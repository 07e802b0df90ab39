"""Who is at an object, what a worker leaves that died, and what a fault in mid-run costs: time, and nothing else."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from local import postgres
from shared.db.engine import make_engine
from shared.db.migrate import upgrade
from shared.db.tables.ingest import ingest_state, quarantine
from shared.errors import EngineUnavailableError, MisconfiguredError
from shared.ingest import pipeline
from shared.ingest.contract import Services, StageResult
from shared.ingest.convert import formats
from shared.ingest.convert.process import ConversionProcess, conversion_process
from shared.ingest.locks import lock_key, object_lock
from shared.ingest.report import Outcome
from shared.ingest.runner import Runner
from shared.ingest.service import IngestService
from shared.providers.storage import FileStore
from shared.settings import load_settings
from shared.sources.given import GivenDocument, GivenDocuments
from tests.engines import running_postgres, temporary_folder
from tests.ingest.conftest import CONFIG, Clock, RememberingWriter, World
from tests.ingest.test_members import mail
from tests.ingest.test_runner import registered, runner, stage, state_of

# The driver leaves the sockets of a server that has gone to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def leave_no_sockets() -> Iterator[None]:
    """Collect them here, before a test of others meets them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class DiedError(BaseException):
    """Ends a worker as a kill does: nothing of it runs any more."""


def dead_worker(world: World, services: Services, ids, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker die while it is at the first of the objects."""

    def dies(*_):
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_release", lambda *_: None)
        with pytest.raises(DiedError):
            list(runner(world, services, stage(dies)).run(ids))


def test_a_worker_marks_what_it_is_at_and_leaves_no_mark(world: World) -> None:
    services, ids = registered(world, "a/x.txt")
    seen = []

    def look(*_):
        seen.append(state_of(world)["try"])
        return StageResult({})

    list(runner(world, services, stage(look)).run(ids.values()))
    assert (seen[0].status, seen[0].claimed_at) == ("running", world.clock.time)
    assert seen[0].claimed_by
    after = state_of(world)["try"]
    assert (after.status, after.claimed_at, after.claimed_by) == ("done", None, None)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MisconfiguredError])
def test_a_run_that_is_ended_takes_its_mark_back(world: World, error: type[BaseException]) -> None:
    services, ids = registered(world, "a/x.txt")

    def ends(*_):
        raise error

    with pytest.raises(error):
        list(runner(world, services, stage(ends)).run(ids.values()))
    left = state_of(world)["try"]
    assert (left.status, left.claimed_at, left.claimed_by) == ("pending", None, None)


def test_an_object_at_which_a_worker_died_lets_all_others_go_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, ids = registered(world, "a/1.txt", "a/2.txt", "a/3.txt")
    dead_worker(world, services, [ids["a/1.txt"]], monkeypatch)
    outcomes = list(runner(world, services, stage(lambda *_: StageResult({}))).run(ids.values()))
    assert [one.path for one in outcomes] == ["a/2.txt", "a/3.txt", "a/1.txt"]
    assert {row.status for row in world.rows(sa.select(ingest_state))} == {"done"}


def test_a_file_that_kills_its_workers_is_quarantined_after_three_and_stops_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, ids = registered(world, "a/1.txt", "a/2.txt")
    for _ in range(3):
        dead_worker(world, services, [ids["a/1.txt"]], monkeypatch)
    ran = []

    def run(call, _):
        ran.append(call.row.path)
        return StageResult({})

    found = {one.path: (one.outcome, one.error) for one in runner(world, services, stage(run)).run(ids.values())}
    assert found == {"a/1.txt": (Outcome.QUARANTINED, "WorkerLostError"), "a/2.txt": (Outcome.REFRESHED, None)}
    assert ran == ["a/2.txt"]
    [row] = world.rows(sa.select(quarantine))
    assert "3 workers" in row.reason


def test_two_dead_workers_are_forgiven(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    services, ids = registered(world, "a/1.txt")
    for _ in range(2):
        dead_worker(world, services, ids.values(), monkeypatch)
    [outcome] = runner(world, services, stage(lambda *_: StageResult({}))).run(ids.values())
    assert outcome.outcome is Outcome.REFRESHED


@pytest.mark.parametrize(("age_s", "outcome"), [(3599, Outcome.BUSY), (3601, Outcome.REFRESHED)])
def test_an_object_that_a_worker_holds_for_too_long_is_taken_over(
    world: World, age_s: int, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, ids = registered(world, "a/x.txt")
    monkeypatch.setattr("shared.ingest.runner._BUSY_WAIT_S", 0.0)
    held, release = threading.Event(), threading.Event()

    def hangs(*_):
        held.set()
        release.wait(60)
        return StageResult({})

    hanging = threading.Thread(target=lambda: list(runner(world, services, stage(hangs)).run(ids.values())))
    hanging.start()
    assert held.wait(60)
    world.clock.time += timedelta(seconds=age_s)
    try:
        [found] = runner(world, services, stage(lambda *_: StageResult({}))).run(ids.values())
        assert found.outcome is outcome
    finally:
        release.set()
        hanging.join(60)
    # Both have written the same; the one that hung has taken nothing back.
    assert state_of(world)["try"].status == "done"


def test_the_lock_of_a_session_that_ends_is_free(world: World) -> None:
    _, ids = registered(world, "a/x.txt")
    held = sa.select(sa.func.pg_try_advisory_lock(lock_key("object", str(ids["a/x.txt"]))))
    first = world.engine.connect()
    assert first.execute(held).scalar_one()
    with world.engine.connect() as plain:
        second = plain.execution_options(isolation_level="AUTOCOMMIT")

        def is_free() -> bool:
            with object_lock(second, ids["a/x.txt"]) as got:
                return got

        assert not is_free()
        first.invalidate()
        first.close()
        assert any(is_free() for _ in range(2000))


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Count which stage runs for which file."""
    runs: Counter[tuple[str, str]] = Counter()
    real = pipeline.stages

    def counting(settings):
        def watched(one):
            def run(call, services):
                runs[one.name, call.row.path] += 1
                return one.run(call, services)

            return replace(one, run=run)

        return tuple(watched(one) for one in real(settings))

    monkeypatch.setattr("shared.ingest.service.stages", counting)
    return runs


def test_a_new_version_of_one_converter_runs_again_exactly_for_its_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = counted(monkeypatch)
    post = mail("Post", ("Anlage.txt", b"Inhalt der Anlage")).as_bytes()
    files: dict[str, bytes | str] = {"a/x.txt": "Ein Schreiben.", "a/y.html": "<p>Eine Seite.</p>", "a/z.eml": post}
    world.ingest(files)
    texts = ("a/x.txt", "a/z.eml/Anlage.txt")
    always = {("fetch", path): 1 for path in (*files, "a/z.eml/Anlage.txt")}
    runs.clear()
    world.ingest(files)
    assert dict(runs) == always
    text = formats.FORMATS["text/plain"]
    for mime, known in list(formats.FORMATS.items()):
        if known is text:
            monkeypatch.setitem(formats.FORMATS, mime, replace(text, version=f"{text.version}.1"))
    runs.clear()
    world.ingest(files)
    # The new version gives the same text, and so nothing after it has work.
    assert dict(runs) == {**always, **{("convert", path): 1 for path in texts}}


def test_a_new_version_of_one_stage_runs_it_again_for_every_file_and_nothing_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a/x.txt": "Ein Schreiben.", "a/y.txt": "Ein anderes."}
    world.ingest(files)
    monkeypatch.setattr("shared.ingest.pipeline._METADATA", "next")
    runs = counted(monkeypatch)
    world.ingest(files)
    assert {name for name, _ in runs} == {"fetch", "extract_metadata"}
    assert set(runs.values()) == {1}
    runs.clear()
    world.ingest(files)
    assert {name for name, _ in runs} == {"fetch"}


def _ingest_in_process(url: str, store: str, files: dict[str, str]) -> None:
    settings = load_settings({"KI_DATABASE__URL": url})
    engine, kept = make_engine(settings.database), FileStore(Path(store))
    given = [GivenDocument(path, path, body.encode()) for path, body in files.items()]
    with conversion_process(settings.ingest, kept) as converter:
        service = IngestService(engine, kept, settings, None, converter=converter)
        report = service.ingest(GivenDocuments("ablage", given, CONFIG))
    engine.dispose()
    assert {file.outcome for file in report.files} <= {Outcome.NEW, Outcome.COPY, Outcome.UNCHANGED}


def test_two_processes_at_one_source_make_each_version_once(world: World, database_url: str, tmp_path: Path) -> None:
    files = {f"a/{number}.txt": f"Schreiben Nummer {number}." for number in range(10)} | {
        "a/kopie.txt": "Schreiben Nummer 0."
    }
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_ingest_in_process, args=(database_url, str(tmp_path / "store"), files))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert world.scalar(sa.text("select count(*) from document_versions")) == 10
    assert world.scalar(sa.text("select count(*) from version_sources")) == 11
    assert {row.status for row in world.rows(sa.select(ingest_state))} == {"done"}


def test_a_database_that_restarts_in_mid_run_loses_nothing_and_the_run_goes_on(
    tmp_path: Path, converter: ConversionProcess
) -> None:
    with temporary_folder() as folder, running_postgres(folder) as cluster:
        upgrade(cluster.url())
        settings = load_settings({"KI_DATABASE__URL": cluster.url()})
        engine, clock, converted, waits = make_engine(settings.database), Clock(), [], []

        class Restarting:
            def convert(self, *args, **options):
                converted.append(1)
                if len(converted) == 4:
                    postgres.shut_down(cluster)
                return converter.convert(*args, **options)

        def wait(seconds: float) -> None:
            waits.append(seconds)
            clock.wait(seconds)
            if len(waits) == 2:
                postgres.start(cluster)

        service = IngestService(
            engine,
            FileStore(tmp_path),
            settings,
            RememberingWriter(engine),
            converter=Restarting(),
            now=clock.now,
            wait=wait,
        )
        given = [
            GivenDocument(f"a/{number}.txt", f"a/{number}.txt", f"Brief {number}.".encode()) for number in range(8)
        ]
        report = service.ingest(GivenDocuments("ablage", given, CONFIG))
        assert waits == [5.0, 10.0]
        assert [file.outcome for file in report.files] == [Outcome.NEW] * 8
        assert report.complete
        with engine.connect() as connection:
            assert connection.execute(sa.text("select count(*) from document_versions")).scalar_one() == 8
            assert connection.execute(sa.text("select count(*) from quarantine")).scalar_one() == 0
        engine.dispose()


def test_a_database_that_stays_away_ends_the_run_and_the_next_one_goes_on(world: World) -> None:
    services, ids = registered(world, "a/1.txt", "a/2.txt")
    calls = []

    def away(*_):
        calls.append(1)
        world.engine.dispose()
        raise EngineUnavailableError("the database is away")

    working = runner(world, services, stage(away))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.ingest.state.write", away)
        with pytest.raises(EngineUnavailableError):
            list(working.run(ids.values()))
    assert world.clock.waits == [5.0, 10.0]
    outcomes = list(runner(world, services, stage(lambda *_: StageResult({}))).run(ids.values()))
    assert [one.outcome for one in outcomes] == [Outcome.REFRESHED] * 2


def test_an_index_that_is_away_in_mid_run_stops_no_file_and_gets_all_later(world: World) -> None:
    class Away(RememberingWriter):
        def drain(self, limit: int) -> None:
            raise EngineUnavailableError(f"the index is away and takes none of {limit}")

    files = {f"a/{number}.txt": f"Schreiben Nummer {number}." for number in range(3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.ingest.service._OBJECTS_PER_DRAIN", 1)
        report = world.ingest(files, writer=Away(world.engine))
    assert [file.outcome for file in report.files] == [Outcome.NEW] * 3
    assert (report.waiting, report.complete) == (3, False)
    assert world.scalar(sa.text("select count(*) from document_versions")) == 3
    report = world.ingest(files)
    assert [file.outcome for file in report.files] == [Outcome.UNCHANGED] * 3
    assert report.complete
    assert world.scalar(sa.text("select count(*) from document_versions where indexed_at is null")) == 0


def test_a_store_whose_disk_is_full_is_tried_again_and_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, full = tempfile.mkstemp, [True]

    def mkstemp(*args, **options):
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return made(*args, **options)

    monkeypatch.setattr("shared.providers.storage.files.tempfile.mkstemp", mkstemp)
    files = {"a/x.txt": "Ein Schreiben.", "a/y.txt": "Ein anderes."}
    report = world.ingest(files)
    assert {(file.outcome, file.error) for file in report.files} == {(Outcome.QUARANTINED, "EngineUnavailableError")}
    assert all("No space left" in str(file.reason) for file in report.files)
    full[0] = False
    # No one has to ask: what may pass is tried by the next run.
    report = world.ingest(files)
    assert [file.outcome for file in report.files] == [Outcome.NEW] * 2
    assert world.rows(sa.select(quarantine)) == []
    assert not list(world.store._root.rglob(".writing-*"))
