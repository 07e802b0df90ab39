"""What a request leaves in the logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.runtime import bootstrap
from shared.runtime.bootstrap import build
from tests.functions.api import Api
from tests.functions.firm import CONTROL, PERSONAS, Firm


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Returns all that was logged and printed so far."""
    return lambda: "".join(capsys.readouterr())


def lines(captured: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.splitlines() if line.startswith("{")]


def test_a_request_is_one_line_and_one_set_of_metrics_without_texts_and_addresses(
    api: Api, firm: Firm, token_of: Callable[[str], str], written: Callable[[], str]
) -> None:
    token = token_of("anna")
    found = api.post("/search", token, {"query": "Kündigungsfrist zzprivat"})
    api.get(f"/documents/{firm.documents[CONTROL]}", token)
    said = written()
    logged = lines(said)
    requests = [line for line in logged if line.get("message") == "request"]
    metrics = [line for line in logged if "_aws" in line]
    assert [line["route"] for line in requests] == ["POST /search", "GET /documents/{document_id}"]
    assert requests[0]["correlation_id"] == found.headers["x-correlation-id"]
    assert [(line["route"], line["outcome"]) for line in metrics] == [
        ("POST /search", "2xx"),
        ("GET /documents/{document_id}", "2xx"),
    ]
    for private in ("zzprivat", "Kündigungsfrist", "Kontrollbau", PERSONAS["anna"][0], token):
        assert private not in said


def test_a_fault_is_logged_by_kind_and_place_and_not_by_message(
    api: Api, firm: Firm, token_of: Callable[[str], str], written: Callable[[], str]
) -> None:
    class Broken:
        def search(self, *_: Any, **__: Any) -> None:
            raise ValueError("zzprivat")

    bootstrap.install(build(firm.parts.settings, search=Broken()))
    reply = api.post("/search", token_of("anna"), {"query": "zzprivat"})
    said = written()
    assert reply.status == 500
    [failure] = [line for line in lines(said) if line.get("message") == "request_failed"]
    assert failure["errors"] == ["ValueError"]
    assert failure["correlation_id"] == reply.json["correlation_id"]
    assert any("test_logs.py" in frame for frame in failure["frames"])
    assert "zzprivat" not in said + reply.everything
