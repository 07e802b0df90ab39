"""An AWS account in one process of this machine, with our handlers in Lambda's own runtime."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import urllib3

from local.paths import CHECKOUT
from local.ports import choose_port

REGION = "eu-central-1"
_READY_S = 30.0
# The project's own interpreter and libraries; the emulator's are looked at last, and lend it the runtime client alone.
_BOOTSTRAP = """#!/bin/sh
cd "{checkout}"
exec "{python}" -c '
import sys
sys.path.append("{site}")
from awslambdaric.__main__ import main
main(["awslambdaric", "'"$_HANDLER"'"])
'
"""


@dataclass
class Account:
    """The emulator's address, and clients for it."""

    url: str
    venv: Path

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def function(self, name: str, environment: Mapping[str, str]) -> str:
        """Deploy one of our functions where it lies and return its ARN."""
        [site] = self.venv.glob("lib/python*/site-packages")
        script = _BOOTSTRAP.format(checkout=CHECKOUT, python=sys.executable, site=site.resolve())
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            entry = zipfile.ZipInfo("bootstrap")
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, script)
        made = self.client("lambda").create_function(
            FunctionName=name,
            Runtime="provided.al2023",
            Role="arn:aws:iam::000000000000:role/function",
            Handler=f"functions.{name}.handler.handler",
            Code={"ZipFile": code.getvalue()},
            Timeout=120,
            MemorySize=1024,
            Environment={"Variables": dict(environment)},
        )
        return str(made["FunctionArn"])

    def machine(self, name: str, document: Mapping[str, Any]) -> str:
        made = self.client("stepfunctions").create_state_machine(
            name=name, definition=json.dumps(document), roleArn="arn:aws:iam::000000000000:role/machine"
        )
        return str(made["stateMachineArn"])

    def tell(self, bucket: str, function_arn: str) -> None:
        """Have the bucket's events of created and deleted objects sent to the function."""
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        pattern = {
            "source": ["aws.s3"],
            "detail-type": ["Object Created", "Object Deleted"],
            "detail": {"bucket": {"name": [bucket]}},
        }
        events = self.client("events")
        events.put_rule(Name="uploads", EventPattern=json.dumps(pattern))
        events.put_targets(Rule="uploads", Targets=[{"Id": "start", "Arn": function_arn}])


@contextmanager
def running(venv: Path, folder: Path) -> Iterator[Account]:
    """The emulator from `venv`, until the block ends; its functions end with it."""
    port = choose_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            [str((venv / "bin" / "ministack").absolute())],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, url, folder)
            yield Account(url, venv)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    deadline = time.monotonic() + _READY_S
    with urllib3.PoolManager(retries=False) as pool:
        while time.monotonic() < deadline:
            assert process.poll() is None, (folder / "emulator.log").read_text()
            try:
                if pool.request("GET", f"{url}/_ministack/health").status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.1)
    raise AssertionError("the emulator is not ready")
