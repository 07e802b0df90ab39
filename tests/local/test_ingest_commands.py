"""`ki ingest`, `ki quarantine` and `ki status` say what went in, what did not and why, and what is held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from local.cli import sources as cli_sources
from local.cli.completeness import as_text
from local.cli.main import main
from local.known_folders import folder_of, place_of, remember
from local.paths import Layout
from local.stack import PartStatus
from shared.db.engine import make_engine
from shared.db.tables.audit import audit_events
from shared.errors import InvalidRequestError
from shared.ingest.completeness import Reason, SourceCompleteness
from shared.ingest.convert.process import conversion_process
from shared.ingest.service import IngestService
from shared.providers.storage import FileStore
from shared.settings import load_settings
from shared.sources.config import SourceConfig
from shared.sources.s3 import S3Source
from shared.types import SourceKind
from tests.ingest.conftest import RememberingWriter


@dataclass
class Machine:
    """A machine on which the stack runs, but for the index; and a folder on it."""

    folder: Path
    services: Any

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(main, words)

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def write(self, *names: str) -> None:
        for name in names:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(f"Ein Schreiben: {name}.")

    def ingest(self, *more: str, path: Path | None = None) -> Result:
        return self.run("ingest", str(path or self.folder), "--source", "ablage", "--project", "nord", *more)


@pytest.fixture
def machine(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    layout = replace(Layout.of(), state=tmp_path / "local", cache=tmp_path / "cache")
    monkeypatch.setattr(Layout, "of", classmethod(lambda _cls, *_args: layout))
    layout.state.mkdir()
    settings = load_settings(
        {"KI_DATABASE__URL": database_url, "KI_STORAGE__KIND": "file", "KI_STORAGE__ROOT": str(tmp_path / "store")}
    )
    engine, store = make_engine(settings.database), FileStore(tmp_path / "store")
    with conversion_process(settings.ingest, store) as converter:
        services = SimpleNamespace(
            engine=engine,
            store=store,
            settings=settings,
            index=SimpleNamespace(refresh=lambda _: None),
            ingest_service=lambda: IngestService(
                engine, store, settings, RememberingWriter(engine), converter=converter
            ),
        )
        for module in ("ingest", "quarantine", "status"):
            monkeypatch.setattr(f"local.cli.{module}.running_services", lambda: services)
        parts = [PartStatus("postgres", "up", pid=1, healthy=True)]
        monkeypatch.setattr("local.cli.status.stack.status", lambda: parts)
        yield Machine(tmp_path / "ablage", services)
    engine.dispose()


def test_what_is_gone_and_what_is_held_stand_in_the_closing_table(machine: Machine) -> None:
    names = [f"a/{number:02}.txt" for number in range(22)]
    machine.write(*names)
    assert machine.ingest().exit_code == 0
    (machine.folder / names[0]).unlink()
    one = machine.ingest("--json")
    assert json.loads(one.stdout)["counts"]["deleted"] == 1
    for name in names[1:14]:
        (machine.folder / name).unlink()
    held = machine.ingest()
    assert "held" in held.stdout
    assert "13 of 21 files are not there any more, seen so by 1 scans in a row" in held.stdout
    assert names[1] in held.stdout
    answer = json.loads(machine.ingest("--json").stdout)
    assert (answer["counts"]["held"], answer["held"]["scans"], answer["held"]["paths"]) == (13, 2, names[1:14])
    [status] = machine.json("status")["sources"]
    assert (status["found"], status["held"], status["held_scans"], status["complete"]) == (21, 13, 2, False)
    assert "--allow-deletes" in machine.run("status").stdout
    answer = json.loads(machine.ingest("--allow-deletes", "--json").stdout)
    assert (answer["counts"]["deleted"], answer["held"]) == (13, None)
    with machine.services.engine.connect() as connection:
        [event] = connection.execute(sa.select(audit_events).where(audit_events.c.action == "deletes_allowed")).all()
    assert (event.subject[:6], event.detail) == ("local:", {"source": "ablage"})


def test_changed_only_opens_what_has_changed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    later = __import__("time").time_ns() + 60 * 10**9
    monkeypatch.setattr("shared.sources.local_fs.time.time_ns", lambda: later)
    machine.write("a/x.txt", "a/y.txt")
    machine.ingest()
    opened = []
    monkeypatch.setattr("shared.sources.local_fs.LocalFolder.open", lambda _, id_: opened.append(id_))
    assert json.loads(machine.ingest("--changed-only", "--json").stdout)["counts"]["unchanged"] == 2
    assert opened == []


def test_a_part_of_a_source_keeps_its_place_and_a_folder_beside_it_is_refused(machine: Machine) -> None:
    machine.write("a/x.txt", "b/y.txt")
    machine.ingest()
    part = json.loads(machine.ingest("--json", path=machine.folder / "a").stdout)
    assert [(file["path"], file["outcome"]) for file in part["files"]] == [("a/x.txt", "unchanged")]
    one = json.loads(machine.ingest("--json", path=machine.folder / "b" / "y.txt").stdout)
    assert [(file["path"], file["outcome"]) for file in one["files"]] == [("b/y.txt", "unchanged")]
    beside = machine.folder.parent / "anders"
    beside.mkdir()
    refused = machine.ingest(path=beside)
    assert refused.exit_code == 2
    assert "another name" in refused.stderr
    assert folder_of("ablage") == machine.folder
    assert machine.json("status")["sources"][0]["tombstoned"] == 0


def test_a_path_that_is_not_there_is_wrong_use(machine: Machine) -> None:
    assert machine.ingest(path=machine.folder / "nie").exit_code == 2


def test_a_quarantined_object_is_shown_with_reason_stage_tries_time_and_original(machine: Machine) -> None:
    machine.write("a/x.txt")
    (machine.folder / "a" / "plan.dwg").write_bytes(b"AC1032" + bytes(100))
    (machine.folder / "a" / "leer.txt").write_bytes(b"")
    assert machine.ingest().exit_code == 1
    [shown] = machine.json("quarantine", "show", "a/plan.dwg")
    assert (shown["stage"], shown["error"], shown["attempts"]) == ("convert", "UnsupportedFileError", 1)
    assert Path(shown["original"]).read_bytes() == b"AC1032" + bytes(100)
    text = machine.run("quarantine", "show", "ablage/a/plan.dwg").stdout
    for part in ("stage", "convert", "no converter reads", "tries", "since", "106", shown["original"]):
        assert part in text
    [by_id] = machine.json("quarantine", "show", shown["source_object_id"])
    assert by_id == shown
    assert machine.run("quarantine", "show", "a/x.txt").exit_code == 1
    listed = machine.json("quarantine", "list")
    assert [row["path"] for row in listed] == ["a/leer.txt", "a/plan.dwg"]
    [retried] = machine.json("quarantine", "retry")
    assert retried["counts"]["quarantined"] == 2
    (machine.folder / "a" / "plan.dwg").unlink()
    machine.ingest()
    assert [row["path"] for row in machine.json("quarantine", "list")] == ["a/leer.txt"]


def test_the_table_of_sources_names_what_stopped_and_since_when_files_wait() -> None:
    from datetime import UTC, datetime

    one = SourceCompleteness(
        source="ablage",
        kind="local_fs",
        found=12,
        indexed=7,
        waiting=1,
        empty=1,
        quarantined=3,
        reasons=(Reason("convert", "UnsupportedFileError", 3, "no converter reads image/vnd.dwg yet"),),
        tombstoned=4,
        held=0,
        held_scans=0,
        oldest_pending=datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        rights_as_of=datetime(2026, 12, 1, 6, 15, tzinfo=UTC),
    )
    assert as_text([one]).splitlines() == [
        "source  found  indexed  waiting  empty  quarantined  tombstoned  held      rights as of",
        "ablage     12        7        1      1            3           4     0  2026-12-01 06:15",
        "  ! ablage: 3 stopped at convert: no converter reads image/vnd.dwg yet (UnsupportedFileError)",
        "  ! ablage: the longest waiting file waits since 2026-12-01 09:30:00 UTC",
    ]


def test_a_bucket_is_a_source_of_its_kind_and_is_remembered(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_sources, "_client", object)
    config = cli_sources.placed_config("s3://akten/2024/", SourceConfig())
    assert config.kind is SourceKind.S3
    source = cli_sources.source_at("s3://akten/2024/", "eimer", config)
    assert isinstance(source, S3Source)
    assert source.listed_below == "2024"
    assert (place_of("eimer"), folder_of("eimer")) == ("s3://akten/2024/", None)
    remember("fort", machine.folder.parent / "fort")
    assert place_of("fort") is None
    with pytest.raises(InvalidRequestError):
        cli_sources.source_at(str(machine.folder / "nie"), "neu", SourceConfig())
