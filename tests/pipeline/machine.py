"""The state machine of the product in moto's interpreter, over functions of ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto import mock_aws

from tests.pipeline.lambda_endpoint import Functions, serving

REGION = "eu-central-1"
# The test itself has less time.
_PATIENCE_S = 3600.0


@dataclass
class Machine:
    """A state machine and the functions behind it."""

    client: Any
    functions: Functions
    arn: str = ""

    def define(self, document: dict[str, Any]) -> str:
        made = self.client.create_state_machine(
            name=f"machine-{uuid4().hex[:8]}",
            definition=json.dumps(document),
            roleArn="arn:aws:iam::000000000000:role/machine",
        )
        self.arn = made["stateMachineArn"]
        return self.arn

    def run(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the execution's description once it has ended."""
        started = self.client.start_execution(stateMachineArn=self.arn, input=json.dumps(payload))
        return self.finished(started["executionArn"])

    def finished(self, arn: str) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            found = self.client.describe_execution(executionArn=arn)
            if found["status"] != "RUNNING":
                return found
            time.sleep(0.02)
        raise AssertionError("the execution did not end")

    def history(self, arn: str) -> list[dict[str, Any]]:
        return [
            event
            for page in self.client.get_paginator("get_execution_history").paginate(executionArn=arn)
            for event in page["events"]
        ]


@contextmanager
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """An AWS account of moto's, whose state machines call our functions."""
    with serving(Functions()) as functions:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", functions.address)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
            yield Machine(boto3.client("stepfunctions", region_name=REGION), functions)
