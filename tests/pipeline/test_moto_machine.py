"""The whole machine, run for real: moto's interpreter, our functions, PostgreSQL and OpenSearch, files in a bucket."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import boto3
import pytest
import sqlalchemy as sa
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl

from shared.db.engine import make_engine
from shared.db.tables.sources import source_objects
from shared.errors import EngineUnavailableError, MisconfiguredError
from shared.index import fields
from shared.index.ensure import ensure_index
from shared.ingest import members, objects, state
from shared.ingest.contract import MAX_PAYLOAD_BYTES
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.definition import definition, function_names
from shared.ingest.events import EventIntake
from shared.ingest.execution import StageWorker
from shared.ingest.objects import MemberRow
from shared.ingest.pipeline import stages
from shared.ingest.runner import utc_now
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.runtime.executions import run_stage
from shared.settings import Settings, load_settings
from shared.sources.config import ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceId, SourceKind, SourceObjectId
from tests.pipeline import taken_in
from tests.pipeline.machine import REGION, Machine, interpreter
from tests.stub_embedding import StubEmbedding

REAL = Path(os.environ.get("KI_TEST_SHARED") or Path(__file__).parents[3] / "shared") / "realfiles"
CONFIG = SourceConfig(kind=SourceKind.S3, project=ProjectRef(key="nord", title="Projekt Nord"))
UPLOADS, STORE, WIDTH = "eingang", "ablage", 32


def mail(subject: str, *attachments: tuple[str, bytes]) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "anna@kanzlei.example", "ben@kanzlei.example", subject
    message["Date"], message["Message-ID"] = "Mon, 12 Feb 2024 09:30:00 +0000", f"<{len(subject)}@kanzlei.example>"
    message.set_content(f"Anbei zu {subject} wie besprochen.")
    for name, content in attachments:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def archive(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, content in files.items():
            opened.writestr(f"{name}.txt", content)
    return made.getvalue()


def files() -> dict[str, bytes]:
    anlagen = archive(eins=b"Erste Anlage zum Vertrag.", zwei=b"Zweite Anlage zum Vertrag.")
    return {
        "Akte 12/Kündigung + Anlage (1).txt": "Kündigung des Mietvertrags zum 31.12.2024.".encode(),
        "Gutachten.docx": (REAL / "F01_delins.docx").read_bytes(),
        "Post/zwei.eml": mail("zwei Anlagen", ("K1.txt", b"Anlage K1."), ("K2.txt", b"Anlage K2.")),
        "Post/archiv.eml": mail("ein Archiv", ("Anlagen.zip", anlagen)),
        "kaputt.docx": (REAL / "F25_truncated62886.docx").read_bytes(),
        "geheim.docx": (REAL / "F23_bug53475-password-is-pass.docx").read_bytes(),
        "leer.txt": b"",
    }


@dataclass
class Cloud:
    """The product in an account of moto's, and a source in its bucket."""

    machine: Machine
    parts: Services
    source_id: SourceId
    s3: Any
    events: int = 0

    def define(self) -> None:
        listed = stages(self.parts.settings)
        arns = self.machine.functions.arns(function_names(listed))
        self.machine.define(definition(listed, arns, max_concurrent_members=2))
        self.change("ingest", state_machine_arn=self.machine.arn)

    def change(self, section: str, **values: Any) -> None:
        """Put services with other settings in force; the parts that are made stay."""
        settings = self.parts.settings
        changed = getattr(settings, section).model_copy(update=values)
        self.parts = Services(settings.model_copy(update={section: changed}), dict(self.parts._made))
        bootstrap.install(self.parts)

    def put(self, path: str, content: bytes) -> list[dict[str, Any]]:
        """Upload a file, tell of it, and return the executions that this has started, ended."""
        self.s3.put_object(Bucket=UPLOADS, Key=f"{self.source_id}/{path}", Body=content)
        return self.tell("Object Created", path, size=len(content))

    def tell(self, kind: str, path: str, **thing: Any) -> list[dict[str, Any]]:
        self.events += 1
        about = {"key": f"{self.source_id}/{path}", "sequencer": f"{self.events:016X}", **thing}
        event = {"detail-type": kind, "source": "aws.s3", "detail": {"bucket": {"name": UPLOADS}, "object": about}}
        before = self._executions()
        body, error = self.machine.functions.invoke("ingest_start", event)
        assert error is None, body
        return [self.machine.finished(arn) for arn in self._executions() - before]

    def _executions(self) -> set[str]:
        listed = self.machine.client.list_executions(stateMachineArn=self.machine.arn)
        return {one["executionArn"] for one in listed["executions"]}

    def id_of(self, path: str) -> str:
        with self.parts.engine.connect() as connection:
            found = connection.execute(sa.select(source_objects.c.id).where(source_objects.c.path == path))
            return str(found.scalar_one())

    def called(self, function: str, path: str) -> list[Any]:
        """What the function answered for the object, or the names of its errors."""
        object_id = self.id_of(path)
        return [
            answer
            for name, event, answer in self.machine.functions.calls
            if name == function and event.get("object_id") == object_id
        ]


def settings_for(database_url: str) -> Settings:
    return load_settings(
        {
            "KI_DATABASE__URL": database_url,
            "KI_DATABASE__POOL_SIZE": "16",
            "KI_RETRIEVAL__INDEX_NAME": f"m{uuid4().hex}",
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(WIDTH),
            "KI_STORAGE__KIND": "s3",
            "KI_STORAGE__BUCKET": STORE,
            "KI_STORAGE__UPLOAD_BUCKET": UPLOADS,
            "KI_INGEST__BACKOFF_BASE_S": "1",
        }
    )


@pytest.fixture
def cloud(database_url: str, converter: ConversionProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    with interpreter(monkeypatch) as machine:
        s3 = boto3.client("s3", region_name=REGION)
        for name in (UPLOADS, STORE):
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        settings = settings_for(database_url)
        parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH), converter=converter)
        with parts.engine.begin() as connection:
            source_id = objects.ensure_source(connection, "eingang", CONFIG)
        cloud = Cloud(machine, parts, source_id, s3)
        # Made for the account, not for one machine: the next definition keeps them.
        for part in ("uploads", "store", "stage_worker", "intake"):
            getattr(parts, part)
        cloud.define()
        yield cloud
        bootstrap.forget()
        parts.engine.dispose()


def in_process(url: str, cloud: Cloud, given: dict[str, bytes]) -> dict[str, Any]:
    """What the in-process runner leaves of the same files."""
    settings = cloud.parts.settings.model_copy(
        update={"database": cloud.parts.settings.database.model_copy(update={"url": url})}
    )
    engine = make_engine(settings.database)
    parts = build(settings, engine=engine, converter=cloud.parts.converter, store=cloud.parts.store)
    documents = [GivenDocument(path, path, content) for path, content in given.items()]
    parts.ingest_service(index=False).ingest(GivenDocuments("eingang", documents, CONFIG))
    left = taken_in.all_of(engine)
    engine.dispose()
    return left


def test_the_machine_leaves_what_the_in_process_runner_leaves(
    cloud: Cloud, make_database: Callable[[], str], opensearch_url: str
) -> None:
    given = files()
    for path, content in given.items():
        [execution] = cloud.put(path, content)
        assert execution["status"] == "SUCCEEDED", execution
    left = taken_in.all_of(cloud.parts.engine)
    expected = in_process(make_database(), cloud, given)
    for part, found in left.items():
        assert found == expected[part], part
    # Derived by hand: two mails with 2 and 1 attachments, an archive of 2, and 4 more files that hold none.
    assert len(left["objects"]) == len(given) + 3 + 2
    assert {path: row[1] for path, row in left["quarantine"].items()} == {
        "kaputt.docx": "UnreadableFileError",
        "geheim.docx": "EncryptedFileError",
        "leer.txt": "EmptyFileError",
    }
    assert cloud.machine.functions.largest_bytes < MAX_PAYLOAD_BYTES
    # And what is queued is found once the index has been swept.
    cloud.change("opensearch", url=opensearch_url)
    parts = cloud.parts
    ensure_index(parts.index, parts.settings.retrieval, embedding_signature=parts.embedding.signature)
    assert taken_in.queued_for_the_index(cloud.parts.engine) > 0
    body, error = cloud.machine.functions.invoke("index_sweep", {})
    assert error is None, body
    assert json.loads(body)["indexed"] == len(left["versions"])
    assert taken_in.queued_for_the_index(cloud.parts.engine) == 0
    index = parts.settings.retrieval.index_name
    parts.index.refresh(index)
    live = {"bool": {"must_not": [{"term": {fields.DELETED: True}}]}}
    found = parts.index.count(index, live)
    assert found >= len(left["chunks"])
    # What the index has lost is found out by the repair, and written again.
    parts.index.request("POST", f"/{index}/_delete_by_query?refresh=true", {"query": {"match_all": {}}})
    body, error = cloud.machine.functions.invoke("index_sweep", {"repair": True})
    assert error is None, body
    assert json.loads(body)["repaired"] == json.loads(body)["indexed"] == len(left["versions"])
    parts.index.refresh(index)
    assert parts.index.count(index, live) == found
    parts.index.request("DELETE", f"/{index}-*?ignore_unavailable=true")
    parts.index.close()


def test_a_failure_that_passes_is_tried_again_and_leaves_no_trace(cloud: Cloud, monkeypatch: Any) -> None:
    waits = waits_of(monkeypatch)
    fail(cloud, "ingest_fetch", EngineUnavailableError("the bucket is away"), times=2)
    [execution] = cloud.put("a.txt", b"Ein Vertrag.")
    assert execution["status"] == "SUCCEEDED"
    # One second and two: the setting's base, doubled.
    assert waits == [1, 2]
    assert cloud.called("ingest_fetch", "a.txt")[:2] == ["TransientError", "TransientError"]
    assert {(status, tries) for _, status, _, tries in taken_in.trace(cloud.parts.engine)["a.txt"]} == {("done", 0)}


def test_after_the_last_try_the_object_is_in_quarantine_as_the_in_process_runner_puts_it_there(
    cloud: Cloud, monkeypatch: Any
) -> None:
    waits = waits_of(monkeypatch)
    fail(cloud, "ingest_fetch", EngineUnavailableError("the bucket is away"), times=99)
    [execution] = cloud.put("a.txt", b"Ein Vertrag.")
    assert execution["status"] == "SUCCEEDED"
    assert waits == [1, 2]
    assert taken_in.quarantine_of(cloud.parts.engine) == {
        "a.txt": ("fetch", "EngineUnavailableError", "the bucket is away", None, 3)
    }
    assert taken_in.trace(cloud.parts.engine) == {"a.txt": {("fetch", "failed", "EngineUnavailableError", 3)}}


def test_a_function_that_is_killed_has_its_object_quarantined_for_it(cloud: Cloud) -> None:
    def killed(_: Any, __: Any) -> None:
        raise type("Runtime.ExitError", (Exception,), {})("RequestId: 1 Error: Runtime exited")

    cloud.machine.functions.instead["ingest_convert"] = killed
    [execution] = cloud.put("a.txt", b"Ein Vertrag.")
    assert execution["status"] == "SUCCEEDED"
    [(path, row)] = taken_in.quarantine_of(cloud.parts.engine).items()
    assert (path, row[:3]) == ("a.txt", ("convert", "Runtime.ExitError", "RequestId: 1 Error: Runtime exited"))
    # The file may be innocent: the next time it is taken in, it is tried again, and leaves quarantine.
    cloud.machine.functions.instead.clear()
    cloud.put("a.txt", b"Ein Vertrag.")
    assert taken_in.quarantine_of(cloud.parts.engine) == {}


def test_a_wrong_installation_fails_the_execution_and_quarantines_nothing(cloud: Cloud) -> None:
    fail(cloud, "ingest_convert", MisconfiguredError("no model"), times=99)
    [execution] = cloud.put("a.txt", b"Ein Vertrag.")
    assert (execution["status"], execution["error"]) == ("FAILED", "MisconfiguredError")
    assert taken_in.quarantine_of(cloud.parts.engine) == {}


def test_a_wrong_installation_met_in_a_file_in_a_file_quarantines_nothing_either(cloud: Cloud) -> None:
    """In AWS it fails the map; this interpreter knows no tolerance of failures, so the document's test says that."""

    def only_members(event: dict[str, Any], context: Any) -> Any:
        if event["mime"] == "text/plain":
            raise MisconfiguredError("no model")
        return run_stage("convert", event, context)

    cloud.machine.functions.instead["ingest_convert"] = only_members
    cloud.put("Post.eml", mail("eine Anlage", ("K1.txt", b"Anlage K1.")))
    assert cloud.called("ingest_convert", "Post.eml/K1.txt") == ["MisconfiguredError"]
    assert taken_in.quarantine_of(cloud.parts.engine) == {}


def test_an_object_that_changes_under_an_execution_is_left_to_the_newer_one(cloud: Cloud) -> None:
    """The slower of two executions must not write the older bytes after the newer ones."""
    functions = cloud.machine.functions

    def overtaken(event: dict[str, Any], context: Any) -> Any:
        functions.instead.clear()
        cloud.put("a.txt", b"Zweite Fassung.")
        return run_stage("convert", event, context)

    functions.instead["ingest_convert"] = overtaken
    cloud.put("a.txt", b"Erste Fassung.")
    assert "SupersededError" in cloud.called("ingest_convert", "a.txt")
    assert [row[3] for row in taken_in.chunks_of(cloud.parts.engine) if row[1] == "chunk"] == ["Zweite Fassung."]
    assert taken_in.quarantine_of(cloud.parts.engine) == {}


def test_an_object_that_goes_under_an_execution_is_in_no_quarantine(cloud: Cloud) -> None:
    functions = cloud.machine.functions

    def too_late(event: dict[str, Any], context: Any) -> Any:
        functions.instead.clear()
        cloud.tell("Object Deleted", "a.txt")
        return run_stage("fetch", event, context)

    functions.instead["ingest_fetch"] = too_late
    [execution] = [one for one in cloud.put("a.txt", b"Ein Vertrag.") if one]
    assert execution["status"] == "SUCCEEDED"
    assert taken_in.quarantine_of(cloud.parts.engine) == {}
    assert taken_in.versions_of(cloud.parts.engine) == set()


def test_late_and_doubled_events_end_with_the_object_deleted_and_one_document(cloud: Cloud) -> None:
    first = cloud.put("a.txt", b"Erste Fassung.")
    second = cloud.put("a.txt", b"Zweite Fassung.")
    assert len(first) == len(second) == 1
    cloud.s3.delete_object(Bucket=UPLOADS, Key=f"{cloud.source_id}/a.txt")
    assert cloud.tell("Object Deleted", "a.txt") == []
    for late in (2, 1, 2):
        assert cloud.tell("Object Created", "a.txt", sequencer=f"{late:016X}", size=15) == []
    [(path, *_, gone, _)] = taken_in.objects_of(cloud.parts.engine)
    assert (path, gone) == ("a.txt", True)
    # Two versions of one document, as there were.
    assert sorted(row[4] for row in taken_in.versions_of(cloud.parts.engine)) == [1, 2]


def test_a_redelivered_event_starts_no_second_execution(cloud: Cloud) -> None:
    [_] = cloud.put("a.txt", b"Ein Vertrag.")
    assert cloud.tell("Object Created", "a.txt", sequencer=f"{1:016X}", size=12) == []


def test_a_scan_of_the_source_finds_the_very_objects_that_events_told_of(cloud: Cloud) -> None:
    for name in function_names(stages(cloud.parts.settings)):
        cloud.machine.functions.instead[name] = lambda event, _: {"object_id": event["object_id"], "members": []}
    for path in ("Akte 12/Kündigung + Anlage (1).txt", "K\u0308.txt", "a.txt", "a.txt.acl.json"):
        cloud.put(path, b"[]")
    with cloud.parts.engine.connect() as connection:
        columns = [source_objects.c[name] for name in ("external_id", "path", "name", "size_bytes")]
        told = {tuple(row) for row in connection.execute(sa.select(*columns))}
        states = set(connection.execute(sa.select(source_objects.c.path, source_objects.c.acl_state)))
    source = cloud.parts.source_of(cloud.source_id)
    scanned = list(source.scan())
    assert {(one.external_id, one.path, one.name, one.size_bytes) for one in scanned} == told
    assert {source.open(one.external_id).read() for one in scanned} == {b"[]"}
    # The ACL beside an object was read from the bucket, and is no object in either.
    assert ("a.txt", "known") in states
    assert len(told) == 3


def test_an_acl_of_more_bytes_than_anybody_writes_closes_its_object(cloud: Cloud) -> None:
    intake = EventIntake(cloud.parts.engine, cloud.parts.uploads, max_sidecar_bytes=100)
    cloud.parts._made["intake"] = intake
    for name in function_names(stages(cloud.parts.settings)):
        cloud.machine.functions.instead[name] = lambda event, _: {"object_id": event["object_id"], "members": []}
    cloud.put("a.txt.acl.json", b'[{"principal": "' + b"x" * 100 + b'"}]')
    cloud.put("a.txt", b"Ein Vertrag.")
    with cloud.parts.engine.connect() as connection:
        [row] = connection.execute(sa.select(source_objects.c.acl_state, source_objects.c.acl_warning))
    assert row.acl_state == "known"
    assert "larger than 100 bytes" in row.acl_warning


def test_the_same_bytes_as_one_part_and_as_many_are_one_content(cloud: Cloud) -> None:
    """An ETag of parts is a hash of hashes; only what was read is compared."""
    for name in function_names(stages(cloud.parts.settings))[1:]:
        cloud.machine.functions.instead[name] = lambda event, _: {"object_id": event["object_id"], "members": []}
    content = b"Ein langer Vertrag. " * 300_000
    cloud.put("einmal.txt", content)
    key = f"{cloud.source_id}/geteilt.txt"
    upload = cloud.s3.create_multipart_upload(Bucket=UPLOADS, Key=key)["UploadId"]
    parts = []
    for number, start in enumerate(range(0, len(content), 5_500_000), start=1):
        piece = content[start : start + 5_500_000]
        made = cloud.s3.upload_part(Bucket=UPLOADS, Key=key, UploadId=upload, PartNumber=number, Body=piece)
        parts.append({"ETag": made["ETag"], "PartNumber": number})
    done = cloud.s3.complete_multipart_upload(
        Bucket=UPLOADS, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
    )
    assert done["ETag"].strip('"').endswith("-2")
    cloud.tell("Object Created", "geteilt.txt", size=len(content))
    hashes = {row[3] for row in taken_in.objects_of(cloud.parts.engine)}
    assert hashes == {hashlib.sha256(content).hexdigest()}


def test_many_bad_files_in_a_file_end_with_small_payloads(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-members` runs this with 5,000 files and pages as they are: some minutes."""
    count = int(os.environ.get("KI_TEST_MEMBERS", "25"))
    if count < members.PAGE:
        monkeypatch.setattr(members, "PAGE", 10)
    pages = -(-count // members.PAGE)
    [_] = cloud.put("Post.eml", mail("viele Anlagen"))
    register_bad_members(cloud, "Post.eml", count)
    functions = cloud.machine.functions
    functions.calls.clear()
    execution = cloud.machine.run({"object_id": cloud.id_of("Post.eml")})
    assert execution["status"] == "SUCCEEDED"
    assert len(taken_in.quarantine_of(cloud.parts.engine)) == count
    assert len(cloud.called("ingest_members", "Post.eml")) == pages + 1
    assert functions.largest_bytes < MAX_PAYLOAD_BYTES
    sizes = payload_sizes(cloud.machine.history(execution["executionArn"]))
    # At least what goes into and comes out of each call: the stages, the pages and the end.
    assert len(sizes) > 2 * (len(stages(cloud.parts.settings)) + pages + 1)
    assert max(sizes) < MAX_PAYLOAD_BYTES


def payload_sizes(history: list[dict[str, Any]]) -> list[int]:
    """The sizes of what went into and came out of every state and call."""
    details = [value for event in history for value in event.values() if isinstance(value, dict)]
    return [
        len(detail[part].encode()) for detail in details for part in ("input", "output", "cause") if detail.get(part)
    ]


def register_bad_members(cloud: Cloud, path: str, count: int) -> None:
    """Files in the file at `path` whose bytes are not stored."""
    with cloud.parts.engine.begin() as connection:
        parent = state.load(connection, SourceObjectId(UUID(cloud.id_of(path)))).row
        bad = [MemberRow(n, f"Anlage {n}.txt", hashlib.sha256(str(n).encode()).hexdigest()) for n in range(count)]
        objects.register_members(connection, parent, bad, most=count)


def fail(cloud: Cloud, function: str, error: Exception, *, times: int) -> None:
    """Let the stage itself fail so often, inside its function."""
    name = function.removeprefix("ingest_")
    listed = stages(cloud.parts.settings)
    left = [times]

    def failing(run: Any) -> Any:
        def call(given: Any, services: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise error
            return run(given, services)

        return call

    changed = [replace(one, run=failing(one.run)) if one.name == name else one for one in listed]
    worker = cloud.parts.stage_worker
    broken = StageWorker(cloud.parts.engine, worker._services_of, changed, now=utc_now)
    cloud.parts._made["stage_worker"] = broken


def waits_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the interpreter wait for nothing, and return for how long it would have."""
    waits: list[int] = []
    monkeypatch.setattr(retrier_decl, "time", SimpleNamespace(sleep=waits.append))
    return waits
