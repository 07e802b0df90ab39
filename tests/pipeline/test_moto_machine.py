"""The whole machine, run for real: moto's interpreter, our functions, PostgreSQL and OpenSearch, files in a bucket."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine
from shared.db.tables.sources import source_objects
from shared.index.ensure import ensure_index
from shared.ingest import objects
from shared.ingest.contract import MAX_PAYLOAD_BYTES
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.definition import definition, function_names
from shared.ingest.pipeline import stages
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.settings import Settings, load_settings
from shared.sources.config import ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceId, SourceKind
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

    def define(self, **changes: Any) -> None:
        listed = stages(self.parts.settings)
        names = function_names(listed)
        document = definition(listed, self.machine.functions.arns(names), max_concurrent_members=2)
        self.machine.define(changes.get("document", document))
        settings = self.parts.settings
        ingest = settings.ingest.model_copy(update={"state_machine_arn": self.machine.arn})
        parts = self.parts
        bootstrap.install(Services(settings.model_copy(update={"ingest": ingest}), dict(parts._made)))

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


def settings_for(database_url: str, opensearch_url: str, **more: str) -> Settings:
    return load_settings(
        {
            "KI_DATABASE__URL": database_url,
            "KI_DATABASE__POOL_SIZE": "16",
            "KI_OPENSEARCH__URL": opensearch_url,
            "KI_RETRIEVAL__INDEX_NAME": f"m{uuid4().hex}",
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(WIDTH),
            "KI_STORAGE__KIND": "s3",
            "KI_STORAGE__BUCKET": STORE,
            "KI_STORAGE__UPLOAD_BUCKET": UPLOADS,
            "KI_INGEST__BACKOFF_BASE_S": "1",
            **more,
        }
    )


@pytest.fixture
def cloud(
    database_url: str, opensearch_url: str, converter: ConversionProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cloud]:
    with interpreter(monkeypatch) as machine:
        s3 = boto3.client("s3", region_name=REGION)
        for name in (UPLOADS, STORE):
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        settings = settings_for(database_url, opensearch_url)
        parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH), converter=converter)
        ensure_index(parts.index, settings.retrieval, embedding_signature=parts.embedding.signature)
        with parts.engine.begin() as connection:
            source_id = objects.ensure_source(connection, "eingang", CONFIG)
        cloud = Cloud(machine, parts, source_id, s3)
        for part in ("uploads", "store", "stage_worker", "intake", "writer", "index_repair"):
            getattr(parts, part)
        cloud.define()
        yield cloud
        bootstrap.forget()
        parts.index.request("DELETE", f"/{settings.retrieval.index_name}-*?ignore_unavailable=true")
        parts.engine.dispose()
        parts.index.close()


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


def test_the_machine_leaves_what_the_in_process_runner_leaves(cloud: Cloud, make_database: Callable[[], str]) -> None:
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
    assert taken_in.queued_for_the_index(cloud.parts.engine) > 0
    body, error = cloud.machine.functions.invoke("index_sweep", {})
    assert error is None, body
    assert json.loads(body)["indexed"] == len(left["versions"])
    assert taken_in.queued_for_the_index(cloud.parts.engine) == 0
    index = cloud.parts.settings.retrieval.index_name
    cloud.parts.index.request("POST", f"/{index}/_refresh")
    counted = cloud.parts.index.request("GET", f"/{index}/_count")
    assert counted["count"] >= len(left["chunks"])
