"""A file of ACLs or memberships is checked to its end, applied in parts, and never older than what is in force."""

from __future__ import annotations

import gc
import io
import json
import os
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from local.cli import acl
from shared.access import snapshot_files, sync
from shared.access.caller import Caller
from shared.access.explain import explain
from shared.access.predicate import Viewer
from shared.access.snapshots import AclSnapshot, FileKind, MembershipSnapshot, schemas
from shared.access.sync import AccessSync, FileReport
from shared.db.engine import make_engine
from shared.db.rights import SYNC
from shared.db.tables.access import scope_log, source_group_members, source_object_grants
from shared.db.tables.audit import audit_events
from shared.db.tables.sources import source_objects, sources
from shared.errors import ConflictError, InvalidRequestError, NotVisibleError
from shared.ingest.acl_uploads import AclUploads
from shared.ingest.events import Change, EventIntake, ObjectEvent
from shared.settings import load_settings
from shared.types import AclMode, DocumentId, Principal, SourceId
from tests.access.world import World, id_of, write
from tests.golden_files import WRITE

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROBOT = Caller("robot", frozenset())
BATCH = 10
OBJECTS = 25


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "MAX_OBJECTS", BATCH)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    yield made
    made.dispose()


def made_source(engine: sa.Engine, kind: str, count: int) -> SourceId:
    """A source with so many objects, o0 and so on, of which o0 holds another one."""
    source_id, first = uuid4(), uuid4()
    rows = [
        {"id": first if number == 0 else uuid4(), "external_id": f"o{number}", "path": f"p{number}", "name": "n"}
        for number in range(count)
    ]
    with engine.begin() as connection:
        connection.execute(sa.insert(sources).values(id=source_id, name=f"s-{source_id}", kind=kind))
        for start in range(0, count, 5_000):
            part = [{"source_id": source_id, **row} for row in rows[start : start + 5_000]]
            connection.execute(sa.insert(source_objects).values(part))
        connection.execute(
            sa.insert(source_objects).values(
                source_id=source_id, parent_id=first, external_id="o0!/1", path="p0/a", name="a"
            )
        )
    return SourceId(source_id)


@pytest.fixture
def source(engine: sa.Engine) -> SourceId:
    return made_source(engine, "external", OBJECTS)


def entries(*principals: str) -> list[dict[str, str]]:
    return [{"principal": principal} for principal in principals]


def acl_line(number: int, *principals: str) -> dict[str, Any]:
    return {"external_id": f"o{number}", "entries": entries(*principals)}


def written(*lines: object, kind: str = "acl", as_of: datetime = NOW, **header: Any) -> io.BytesIO:
    head = {"kind": kind, "as_of": as_of.isoformat(), "complete": True, "count": len(lines), **header}
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in (head, *lines)))


def all_lines(*principals: str, count: int = OBJECTS) -> list[dict[str, Any]]:
    return [acl_line(number, *principals) for number in range(count)]


def apply(engine: sa.Engine, source: SourceId, file: io.BytesIO) -> FileReport:
    return AccessSync(engine).file(ROBOT, source, file)


def count(engine: sa.Engine, table: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def rights(engine: sa.Engine, external_id: str) -> list[str] | None:
    """The principals of an object's ACL; None if it was never mirrored."""
    with engine.connect() as connection:
        row = connection.execute(
            sa.select(source_objects.c.id, source_objects.c.acl_state).where(
                source_objects.c.external_id == external_id
            )
        ).one()
        listed = sa.select(source_object_grants.c.principal).where(source_object_grants.c.source_object_id == row.id)
        principals = sorted(connection.execute(listed).scalars())
        return principals if row.acl_state == "known" else None


def watermark(engine: sa.Engine, source: SourceId) -> tuple[datetime | None, datetime | None]:
    with engine.connect() as connection:
        statement = sa.select(sources.c.acls_as_of, sources.c.memberships_as_of).where(sources.c.id == source)
        row = connection.execute(statement).one()
        return row.acls_as_of, row.memberships_as_of


def test_a_file_that_names_every_object_moves_the_watermark_and_the_same_again_writes_no_rights(
    engine: sa.Engine, source: SourceId
) -> None:
    seen: list[tuple[int, int]] = []
    file = written(*all_lines("user:a@x.example"))
    report = AccessSync(engine).file(ROBOT, source, file, progress=lambda done, total: seen.append((done, total)))
    assert (report.changed, report.unchanged, report.unknown, report.unnamed) == (OBJECTS, 0, 0, 0)
    assert report.settles_all
    assert seen == [(10, 25), (20, 25), (25, 25)]
    assert rights(engine, "o0") == rights(engine, "o0!/1") == rights(engine, "o24") == ["user:a@x.example"]
    assert watermark(engine, source) == (NOW, None)
    logged = count(engine, scope_log)
    again = apply(engine, source, written(*all_lines("user:a@x.example"), as_of=NOW + HOUR))
    assert (again.changed, again.unchanged, again.rights_as_of) == (0, OBJECTS, NOW + HOUR)
    assert count(engine, scope_log) == logged
    assert watermark(engine, source) == (NOW + HOUR, None)


def test_each_part_of_a_file_leaves_an_audit_row_with_the_hash_of_the_file(engine: sa.Engine, source: SourceId) -> None:
    apply(engine, source, written(*all_lines("user:a")))
    with engine.connect() as connection:
        rows = connection.execute(sa.select(audit_events.c.action, audit_events.c.detail)).all()
    assert [(row.action, row.detail["changed"]) for row in rows] == [
        ("access.acl", 10),
        ("access.acl", 10),
        ("access.acl", 5),
    ]
    assert {len(row.detail["file_sha256"]) for row in rows} == {64}


def cut(file: io.BytesIO, bytes_left_out: int) -> io.BytesIO:
    return io.BytesIO(file.getvalue()[:-bytes_left_out])


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (written(*all_lines("user:a", count=15), count=16), "16 lines, and 15 follow"),
        (written(*all_lines("user:a", count=15), count=14), "14 lines, and 15 follow"),
        (cut(written(*all_lines("user:a", count=15)), 30), "line 16: no JSON object"),
        (written(*all_lines("user:a", count=15), acl_line(7, "user:b")), "line 17: 'o7' stands there twice, first on line 9"),
        (written(acl_line(0), {"external_id": "o1"}), "line 3: entries"),
        (written(acl_line(0), {"external_id": "o1", "entries": [], "efect": 1}), "line 3: efect"),
        (written(acl_line(0), {"path": "p1", "entries": []}), "line 3: .*all in the same way"),
        (written({"path": "\u00fc", "entries": []}, {"path": "u\u0308", "entries": None}), "line 3: .*twice"),
        (written(acl_line(0), [1]), "line 3: no JSON object"),
        (written(acl_line(0), kind="memberships"), "line 2: "),
        (written({"group": "group:a", "members": []}, {"group": "group:a", "members": []}, kind="memberships"), "line 3: .*twice"),
        (written(acl_line(0), complete=False), "line 1: complete"),
        (written(acl_line(0), as_of=NOW.replace(tzinfo=None)), "line 1: as_of"),
        (written(acl_line(0), kind="groups"), "line 1: kind"),
        (io.BytesIO(), "line 1: the file is empty"),
        (io.BytesIO(b"\xff\xfe\n"), "line 1: no JSON object"),
        (io.BytesIO(b'{"kind": "acl", "kind": "acl"}\n'), "line 1: .*twice"),
        (io.BytesIO(b"[" * 100_000), "line 1: "),
        (io.BytesIO(written(acl_line(0)).getvalue() + b"\n"), "line 3: no JSON object"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_anywhere_is_refused_and_the_line_is_named(file: io.BytesIO, told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        snapshot_files.checked(file)


@pytest.mark.parametrize(
    "file",
    [
        written(*all_lines("user:a"), acl_line(7, "user:b")),
        written(*all_lines("user:a"), count=26),
        written(acl_line(0), as_of=datetime.now(UTC) + HOUR),
    ],
    ids=["doubled", "cut off", "ahead of time"],
)
def test_a_file_that_is_refused_changes_nothing_and_shuts_nothing_out(
    engine: sa.Engine, source: SourceId, file: io.BytesIO
) -> None:
    with pytest.raises(InvalidRequestError):
        apply(engine, source, file)
    assert rights(engine, "o0") is None
    assert count(engine, audit_events) == 0
    assert apply(engine, source, written(acl_line(0), as_of=NOW - HOUR)).changed == 1


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "MAX_LINE_BYTES", 100)
    with pytest.raises(InvalidRequestError, match="line 2: the line is longer"):
        snapshot_files.checked(written(acl_line(0, "user:" + "a" * 100)))


def test_two_names_with_one_digest_are_two_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "_digest", lambda _: 1)
    assert snapshot_files.checked(written(acl_line(0), acl_line(1))).header.count == 2
    with pytest.raises(InvalidRequestError, match="line 4: 'o1' stands there twice, first on line 3"):
        snapshot_files.checked(written(acl_line(0), acl_line(1), acl_line(1)))


def test_a_file_that_does_not_name_all_objects_changes_those_and_says_how_many_it_leaves(
    engine: sa.Engine, source: SourceId
) -> None:
    apply(engine, source, written(*all_lines("user:a")))
    report = apply(engine, source, written(acl_line(0, "user:b"), as_of=NOW + HOUR))
    assert (report.changed, report.unnamed, report.rights_as_of) == (1, OBJECTS - 1, None)
    assert not report.settles_all
    assert rights(engine, "o0") == ["user:b"]
    assert watermark(engine, source)[0] == NOW


def test_objects_that_have_gone_need_no_line_and_lines_for_them_are_kept_for_their_return(
    engine: sa.Engine, source: SourceId
) -> None:
    with engine.begin() as connection:
        gone = source_objects.c.external_id.in_(["o1", "o2"])
        connection.execute(sa.update(source_objects).where(gone).values(deleted_at=NOW))
    lines = [line for line in all_lines("user:a") if line["external_id"] != "o1"]
    assert apply(engine, source, written(*lines)).unnamed == 0
    assert (rights(engine, "o1"), rights(engine, "o2")) == (None, ["user:a"])


def test_an_object_that_is_unknown_at_an_external_source_is_left_out_and_closed_when_it_comes(
    engine: sa.Engine, source: SourceId
) -> None:
    lines = [
        *all_lines("user:a"),
        {"external_id": "new", "entries": entries("user:a")},
        {"external_id": "o0!/1", "entries": entries("user:b")},
    ]
    report = apply(engine, source, written(*lines))
    assert (report.changed, report.unknown, report.unnamed) == (OBJECTS, 2, 0)
    assert not report.settles_all
    assert "'new'" in report.warnings[0]
    assert rights(engine, "o0!/1") == ["user:a"]
    with engine.begin() as connection:
        connection.execute(
            sa.insert(source_objects).values(source_id=source, external_id="new", path="new", name="new")
        )
    # Never mirrored: at an external source nobody but administrators sees it.
    assert rights(engine, "new") is None
    # The same file again is not older than itself.
    assert (apply(engine, source, written(*lines)).changed, rights(engine, "new")) == (1, ["user:a"])


def test_an_object_that_is_unknown_at_a_local_folder_refuses_the_file_because_it_would_be_open(
    engine: sa.Engine,
) -> None:
    source = made_source(engine, "local_fs", 12)
    lines = [*all_lines("user:a", count=12), {"external_id": "new", "entries": []}]
    with pytest.raises(InvalidRequestError, match="line 14: the source has no object 'new'"):
        apply(engine, source, written(*lines))
    assert rights(engine, "o0") is None
    assert apply(engine, source, written(*lines[:-1])).settles_all


def test_after_a_file_nothing_older_comes_into_force_not_even_where_it_changed_nothing(
    engine: sa.Engine, source: SourceId
) -> None:
    robot = AccessSync(engine)
    apply(engine, source, written(*all_lines("user:a")))
    apply(engine, source, written(*all_lines("user:a"), as_of=NOW + HOUR))
    with pytest.raises(ConflictError, match="is in force"):
        apply(engine, source, written(*all_lines("user:b"), as_of=NOW))
    late = {"as_of": NOW, "complete": True, "objects": [acl_line(5, "user:b")]}
    with pytest.raises(ConflictError, match="is in force"):
        robot.acls(ROBOT, str(source), AclSnapshot.model_validate(late))
    assert rights(engine, "o5") == ["user:a"]


def test_after_an_unchanged_message_nothing_older_comes_into_force(engine: sa.Engine, source: SourceId) -> None:
    robot = AccessSync(engine)
    for as_of in (NOW, NOW + 2 * HOUR):
        message = {"as_of": as_of, "complete": True, "objects": [acl_line(5, "user:a")]}
        robot.acls(ROBOT, str(source), AclSnapshot.model_validate(message))
        members = {"as_of": as_of, "complete": True, "groups": [{"group": "group:g", "members": ["user:a"]}]}
        robot.memberships(ROBOT, str(source), MembershipSnapshot.model_validate(members))
    late = {"as_of": NOW + HOUR, "complete": True, "objects": [acl_line(5, "user:a", "user:left")]}
    with pytest.raises(ConflictError):
        robot.acls(ROBOT, str(source), AclSnapshot.model_validate(late))
    late = {"as_of": NOW + HOUR, "complete": True, "groups": [{"group": "group:g", "members": ["user:left"]}]}
    with pytest.raises(ConflictError):
        robot.memberships(ROBOT, str(source), MembershipSnapshot.model_validate(late))
    assert rights(engine, "o5") == ["user:a"]


def test_an_acl_that_is_newer_than_the_file_is_kept(engine: sa.Engine, source: SourceId) -> None:
    message = {"as_of": NOW + HOUR, "complete": True, "objects": [acl_line(5)]}
    AccessSync(engine).acls(ROBOT, str(source), AclSnapshot.model_validate(message))
    report = apply(engine, source, written(*all_lines("user:a")))
    assert (report.changed, report.kept, report.rights_as_of) == (OBJECTS - 1, 1, NOW)
    assert (rights(engine, "o5"), rights(engine, "o6")) == ([], ["user:a"])


def test_a_newer_file_stops_an_older_one_in_its_midst(engine: sa.Engine, source: SourceId) -> None:
    started, go_on = threading.Event(), threading.Event()
    refused: list[ConflictError] = []

    def pause(done: int, total: int) -> None:
        started.set()
        assert go_on.wait(60)

    def older() -> None:
        try:
            AccessSync(engine).file(ROBOT, source, written(*all_lines("user:old")), progress=pause)
        except ConflictError as error:
            refused.append(error)

    thread = threading.Thread(target=older)
    thread.start()
    assert started.wait(60)
    apply(engine, source, written(*all_lines("user:new"), as_of=NOW + HOUR))
    go_on.set()
    thread.join()
    assert len(refused) == 1
    assert {tuple(rights(engine, f"o{number}") or ()) for number in (0, 9, 10, 24)} == {("user:new",)}
    assert watermark(engine, source)[0] == NOW + HOUR


def test_what_cannot_be_read_or_is_too_large_closes_its_object_alone(engine: sa.Engine, source: SourceId) -> None:
    apply(engine, source, written(*all_lines("user:a")))
    lines = all_lines("user:a")
    lines[1]["entries"] = None
    lines[2]["entries"] = [{"principal": "user:a"}, {"principal": "noted: somebody", "effect": "deny"}]
    lines[3]["entries"] = entries(*(f"user:{number}" for number in range(10_001)))
    report = apply(engine, source, written(*lines, as_of=NOW + HOUR))
    assert (report.changed, report.unchanged, len(report.warnings)) == (3, OBJECTS - 3, 3)
    assert [rights(engine, f"o{number}") for number in (1, 2, 3, 4)] == [[], [], [], ["user:a"]]


def test_a_file_of_memberships_is_all_of_them_and_an_empty_one_revokes(engine: sa.Engine, source: SourceId) -> None:
    lines = [{"group": f"group:g{number}", "members": ["user:a", "user:b"]} for number in range(10)]
    report = apply(engine, source, written(*lines, kind="memberships"))
    assert (report.kind, report.changed, report.rights_as_of) == (FileKind.MEMBERSHIPS, 1, NOW)
    assert count(engine, source_group_members) == 20
    assert apply(engine, source, written(*lines, kind="memberships", as_of=NOW + HOUR)).unchanged == 1
    assert watermark(engine, source) == (None, NOW + HOUR)
    with pytest.raises(ConflictError):
        apply(engine, source, written(kind="memberships"))
    apply(engine, source, written(kind="memberships", as_of=NOW + HOUR))
    assert count(engine, source_group_members) == 0


def test_a_file_of_memberships_that_changes_while_it_is_read_is_refused_whole(
    engine: sa.Engine, source: SourceId
) -> None:
    class Changing(io.BytesIO):
        reads = 0

        def seek(self, place: int, whence: int = 0, /) -> int:
            self.reads += 1
            if self.reads == 2:
                self.getbuffer()[:] = self.getvalue().replace(b"user:a", b"user:z")
            return super().seek(place, whence)

    file = Changing(written({"group": "group:g", "members": ["user:a"]}, kind="memberships").getvalue())
    with pytest.raises(InvalidRequestError, match="changed while it was read"):
        apply(engine, source, file)
    assert count(engine, source_group_members) == 0


def test_the_login_of_the_synchronisation_may_do_all_that_a_file_needs(engine: sa.Engine, source: SourceId) -> None:
    @sa.event.listens_for(engine, "begin")
    def become(connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"set local role {SYNC}")

    try:
        assert apply(engine, source, written(*all_lines("user:a"))).settles_all
        assert apply(engine, source, written({"group": "group:g", "members": ["user:a"]}, kind="memberships")).changed
    finally:
        sa.event.remove(engine, "begin", become)
    assert rights(engine, "o0!/1") == ["user:a"]


class Bucket:
    name = "uploads"

    def __init__(self, **content: bytes) -> None:
        self.content = content

    def copy_to(self, key: str, file: BinaryIO) -> bool:
        if key in self.content:
            file.write(self.content[key])
        return key in self.content


def event(key: str, change: Change = Change.CREATED, bucket: str = "uploads") -> ObjectEvent:
    return ObjectEvent(bucket, key, change, "1", 10, None)


def test_a_file_below_acl_in_the_bucket_is_applied_and_its_deletion_takes_nothing_back(
    engine: sa.Engine, source: SourceId
) -> None:
    key = f"_acl/{source}/rechte.jsonl"
    uploads = AclUploads(AccessSync(engine), Bucket(**{key: written(*all_lines("user:a")).getvalue()}))
    report = uploads.take(event(key))
    assert report is not None
    assert (report.changed, rights(engine, "o3")) == (OBJECTS, ["user:a"])
    again = uploads.take(event(key))
    assert again is not None
    assert again.unchanged == OBJECTS
    assert uploads.take(event(key, Change.DELETED)) is None
    assert uploads.take(event(f"_acl/{source}/weg.jsonl")) is None
    assert rights(engine, "o3") == ["user:a"]


@pytest.mark.parametrize(
    "key", ["_acl/rechte.jsonl", "_acl/nowhere/a.jsonl", f"_acl/{UUID(int=1)}", f"{UUID(int=1)}/a"]
)
def test_a_file_below_acl_that_names_no_source_is_refused(engine: sa.Engine, key: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not _acl/"):
        AclUploads(AccessSync(engine), Bucket(**{key: b""})).take(event(key))


def test_a_file_of_another_bucket_is_refused(engine: sa.Engine, source: SourceId) -> None:
    with pytest.raises(InvalidRequestError, match="uploads lie in uploads"):
        AclUploads(AccessSync(engine), Bucket()).take(event(f"_acl/{source}/a.jsonl", bucket="other"))


def test_the_pipeline_leaves_files_below_acl_alone(engine: sa.Engine, source: SourceId) -> None:
    class Untouched:
        name = "uploads"

        def exists(self, key: str) -> bool:
            raise AssertionError(key)

        def read(self, key: str, *, max_bytes: int) -> bytes | None:
            raise AssertionError(key, max_bytes)

    before = count(engine, source_objects)
    assert EventIntake(engine, Untouched()).take(event(f"_acl/{source}/a.jsonl"), now=NOW) is None
    assert count(engine, source_objects) == before


@pytest.mark.golden
def test_the_published_schemas_are_those_of_the_models() -> None:
    folder = Path(__file__).parents[2] / "docs" / "schemas"
    wanted = {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas().items()
    }
    if os.environ.get(WRITE) == "1":
        folder.mkdir(exist_ok=True)
        for name, text in wanted.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.json")} == wanted


@dataclass
class Command:
    """`ki acl apply` on this database, with the exit code, what is on stdout and what is on stderr."""

    engine: sa.Engine
    folder: Path
    source: str

    def run(self, content: io.BytesIO, *options: str) -> Any:
        file = self.folder / "rechte.jsonl"
        file.write_bytes(content.getvalue())
        return CliRunner().invoke(acl.command, ["apply", str(file), "--source", self.source, *options])


@pytest.fixture
def command(engine: sa.Engine, source: SourceId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    parts = SimpleNamespace(engine=engine, access_sync=AccessSync(engine))
    monkeypatch.setattr(acl, "running_services", lambda: parts)
    return Command(engine, tmp_path, f"s-{source}")


def test_the_command_says_what_it_did_and_ends_with_one_if_something_is_open(command: Command) -> None:
    done = command.run(written(*all_lines("user:a")))
    assert done.exit_code == 0
    assert done.stdout == (
        "25 objects changed, 0 unchanged, of 25 in the file.\nRights as of 2026-06-01 12:00:00 UTC.\n"
    )
    part = command.run(written(acl_line(0), {"external_id": "neu", "entries": []}, as_of=NOW + HOUR), "--json")
    assert part.exit_code == 1
    told = json.loads(part.stdout)
    assert (told["changed"], told["unknown"], told["unnamed"], told["rights_as_of"]) == (1, 1, 24, None)
    assert "'neu'" in part.stderr
    words = command.run(written(acl_line(0), {"external_id": "neu", "entries": []}, as_of=NOW + HOUR)).stdout
    assert "1 are not at the source" in words
    assert "24 objects of the source are not in the file" in words


def test_the_command_applies_memberships(command: Command) -> None:
    line = {"group": "group:g", "members": ["user:a"]}
    assert command.run(written(line, kind="memberships")).stdout.startswith("The memberships changed: 1 groups")
    again = command.run(written(line, kind="memberships"), "--json")
    assert (again.exit_code, json.loads(again.stdout)["unchanged"]) == (0, 1)


def test_the_command_refuses_a_wrong_file_as_wrong_use_and_an_older_one_as_no(command: Command) -> None:
    wrong = command.run(written(acl_line(0), count=2), "--json")
    assert (wrong.exit_code, json.loads(wrong.stdout)["error"]["type"]) == (2, "InvalidRequestError")
    command.run(written(*all_lines("user:a")))
    older = command.run(written(*all_lines("user:a"), as_of=NOW - HOUR))
    assert (older.exit_code, "is in force" in older.stderr) == (1, True)
    nowhere = Command(command.engine, command.folder, "nowhere").run(written())
    assert (nowhere.exit_code, "there is no source nowhere" in nowhere.stderr) == (2, True)


def test_a_file_for_an_unknown_source_is_not_there(engine: sa.Engine) -> None:
    with pytest.raises(NotVisibleError):
        apply(engine, SourceId(UUID(int=1)), written(acl_line(0)))


def test_the_memory_for_a_file_does_not_grow_with_its_lines(engine: sa.Engine) -> None:
    def peak_of(lines: int) -> int:
        source = made_source(engine, "external", lines)
        file = written(*all_lines(*(f"user:{number}@kanzlei.example" for number in range(20)), count=lines))
        # A process that has served collects its rings of garbage rarely; here they would count as memory.
        rarely = gc.get_threshold()
        gc.set_threshold(700, 10, 10)
        tracemalloc.start()
        try:
            assert AccessSync(engine).file(ROBOT, source, file).settles_all
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            gc.set_threshold(*rarely)

    peak_of(20)
    # The least of some runs: whatever else the process happens to keep at that moment counts as well.
    few, many = min(peak_of(20) for _ in range(3)), min(peak_of(300) for _ in range(3))
    # A name takes some forty bytes until the doubles are found; a line that was kept would take five thousand.
    assert many - few < 1_000 * 300, (few, many)


def test_an_explanation_says_as_of_when_a_right_is_known_also_where_the_file_changed_nothing(
    engine: sa.Engine,
) -> None:
    with engine.begin() as connection:
        write(connection, World().source("dms", "external").document("d", None).file("o", "dms", "d"))
        names = sa.select(source_objects.c.external_id).where(source_objects.c.id == id_of("object/o"))
        external_id = connection.execute(names).scalar_one()
    line = {"external_id": external_id, "entries": entries("user:a")}
    for as_of in (NOW, NOW + HOUR):
        assert apply(engine, SourceId(id_of("source/dms")), written(line, as_of=as_of)).settles_all
    with engine.connect() as connection:
        viewer = Viewer(frozenset({Principal("user:a")}), AclMode.SUFFICIENT)
        [found] = explain(connection, viewer, DocumentId(id_of("document/d")))
    assert {row.as_of for row in found.allowed_by} == {NOW + HOUR}
