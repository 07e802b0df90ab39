"""Requests of many people at once in one process never mix."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.functions.api import Api
from tests.functions.firm import CONTROL, Firm

PERSONAS = ("anna", "clara", "dora", "paula")
ROUNDS = 6


def test_callers_at_once_get_what_each_gets_alone(
    api: Api, firm: Firm, token_of: Callable[[str], str], capsys: Any
) -> None:
    tokens = {persona: token_of(persona) for persona in PERSONAS}

    def ask(persona: str) -> tuple[Any, ...]:
        found = api.post("/search", tokens[persona], {"query": "Kündigungsfrist", "limit": 100})
        scope = api.get("/access/scope", tokens[persona])
        document = api.get(f"/documents/{firm.documents[CONTROL]}", tokens[persona])
        assert found.status == scope.status == 200
        return (
            sorted(result["document_id"] for result in found.json["results"]),
            scope.json["fingerprint"],
            scope.json["documents"]["ids"],
            document.status,
        )

    alone = {persona: ask(persona) for persona in PERSONAS}
    assert len({answer[1] for answer in alone.values()}) == len(PERSONAS)
    capsys.readouterr()

    start = threading.Barrier(len(PERSONAS))

    def ask_again(persona: str) -> list[tuple[Any, ...]]:
        start.wait(timeout=20)
        return [ask(persona) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(len(PERSONAS)) as pool:
        together = dict(zip(PERSONAS, pool.map(ask_again, PERSONAS), strict=True))
    assert together == {persona: [alone[persona]] * ROUNDS for persona in PERSONAS}
