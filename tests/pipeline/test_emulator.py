"""From an upload to rows in PostgreSQL: S3, EventBridge, Step Functions and Lambda of an emulator, our functions in
Lambda's own runtime. Run by `make test-emulator`, which makes the emulator's venv.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine
from shared.ingest import objects
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.definition import definition, function_names
from shared.ingest.pipeline import stages
from shared.ingest.service import IngestService
from shared.providers.storage import FileStore
from shared.settings import load_settings
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import SourceId
from tests.pipeline import taken_in
from tests.pipeline.emulator import Account, running
from tests.pipeline.test_moto_machine import CONFIG, STORE, UPLOADS, files

_PATIENCE_S = 180.0


@dataclass
class Deployed:
    """The product in the emulator's account, with a source in its bucket."""

    account: Account
    engine: sa.Engine
    source_id: SourceId
    machine: str

    def put(self, path: str, content: bytes) -> None:
        self.account.client("s3").put_object(Bucket=UPLOADS, Key=f"{self.source_id}/{path}", Body=content)

    def executions(self) -> list[dict[str, Any]]:
        listed = self.account.client("stepfunctions").list_executions(stateMachineArn=self.machine)
        # The items of a map have executions of their own, in a list of their own.
        return [one for one in listed["executions"] if one["stateMachineArn"] == self.machine]

    def finished(self, count: int) -> list[str]:
        """Wait until so many executions have ended and return how."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            states = [one["status"] for one in self.executions()]
            if len(states) >= count and "RUNNING" not in states:
                return states
            time.sleep(0.2)
        raise AssertionError(f"the executions did not end: {self.executions()}")


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with running(Path(os.environ["KI_TEST_EMULATOR"]), tmp_path_factory.mktemp("emulator")) as found:
        yield found


@pytest.fixture(scope="session")
def deployed(account: Account, make_database: Callable[[], str]) -> Iterator[Deployed]:
    s3 = account.client("s3")
    for name in (UPLOADS, STORE):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    environment = {
        "KI_DATABASE__URL": make_database(),
        "KI_STORAGE__KIND": "s3",
        "KI_STORAGE__BUCKET": STORE,
        "KI_STORAGE__UPLOAD_BUCKET": UPLOADS,
        "KI_INGEST__BACKOFF_BASE_S": "1",
    }
    settings = load_settings(environment)
    listed = stages(settings)
    arns = {name: account.function(name, environment) for name in function_names(listed)}
    machine = account.machine("ingest", definition(listed, arns, max_concurrent_members=2))
    start = account.function("ingest_start", {**environment, "KI_INGEST__STATE_MACHINE_ARN": machine})
    account.tell(UPLOADS, start)
    engine = make_engine(settings.database)
    with engine.begin() as connection:
        source_id = objects.ensure_source(connection, "eingang", CONFIG)
    yield Deployed(account, engine, source_id, machine)
    engine.dispose()


def test_uploads_end_in_postgresql_as_the_in_process_runner_would_have_put_them_there(
    deployed: Deployed, make_database: Callable[[], str], converter: ConversionProcess, tmp_path: Path
) -> None:
    given = files()
    # A folder as a console makes it starts nothing.
    deployed.put("Akte 12/", b"")
    for count, (path, content) in enumerate(given.items(), start=1):
        # One after the other: as many at a time would start as many processes of each function.
        deployed.put(path, content)
        assert set(deployed.finished(count)) == {"SUCCEEDED"}
    assert len(deployed.executions()) == len(given)
    left = taken_in.all_of(deployed.engine)
    settings = load_settings({"KI_DATABASE__URL": make_database()})
    engine = make_engine(settings.database)
    documents = [GivenDocument(path, path, content) for path, content in given.items()]
    service = IngestService(engine, FileStore(tmp_path), settings, None, converter=converter)
    service.ingest(GivenDocuments("eingang", documents, CONFIG))
    expected = taken_in.all_of(engine)
    engine.dispose()
    for part, found in left.items():
        assert found == expected[part], part


def test_a_deleted_upload_is_gone(deployed: Deployed) -> None:
    before = len(deployed.executions())
    deployed.put("gleich weg.txt", b"Ein Vertrag.")
    deployed.finished(before + 1)
    deployed.account.client("s3").delete_object(Bucket=UPLOADS, Key=f"{deployed.source_id}/gleich weg.txt")
    deadline = time.monotonic() + _PATIENCE_S
    while {row[-2] for row in taken_in.objects_of(deployed.engine) if row[0] == "gleich weg.txt"} != {True}:
        assert time.monotonic() < deadline, "the object was not buried"
        time.sleep(0.2)


def test_a_failure_in_lambda_s_own_runtime_has_the_name_that_the_machine_tries_again(deployed: Deployed) -> None:
    """The bucket of originals is away: three tries, then quarantine."""
    before = len(deployed.executions())
    account = deployed.account
    s3 = account.client("s3")
    for one in s3.list_objects_v2(Bucket=STORE).get("Contents", ()):
        s3.delete_object(Bucket=STORE, Key=one["Key"])
    s3.delete_bucket(Bucket=STORE)
    deployed.put("spaeter.txt", b"Ein anderer Vertrag.")
    assert set(deployed.finished(before + 1)) == {"SUCCEEDED"}
    stage, error, _, _, tries = taken_in.quarantine_of(deployed.engine)["spaeter.txt"]
    assert (stage, error, tries) == ("fetch", "EngineUnavailableError", 3)
