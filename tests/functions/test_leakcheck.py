"""The check that a firm runs against its own instance: it passes on a tight one, and each kind of hole fails it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from local.leakcheck import LeakReport, Plan, check
from tests.functions.api import Api, Reply
from tests.functions.firm import PERSONAS, WALLS, Firm

CONTROLS = {name: "Kontrollbau" for name in PERSONAS if name not in {"clara", "dora"}}


def plan_of(**changes: Any) -> Plan:
    """The firm of these tests as its own IT would write it down."""
    personas = {
        name: {"email": email, "groups": list(groups), "admin": admin}
        for name, (email, groups, admin) in PERSONAS.items()
    }
    seeing = {name: one for name, one in personas.items() if name != "dora"}
    controls = {**CONTROLS, "clara": "Landgericht"}
    walls = [
        {"name": wall.name, "canaries": list(wall.canaries), "open_to": sorted(wall.open_to - {"dora"})}
        for wall in WALLS
    ]
    body = {"personas": seeing, "administrator": "root", "walls": walls, "controls": controls}
    return Plan.model_validate({**body, **changes})


@pytest.fixture
def run(firm: Firm, api: Api, token_of: Callable[[str], str]) -> Callable[..., LeakReport]:
    def checked(plan: Plan, send: Callable[..., Reply] | None = None) -> LeakReport:
        tokens = {name: token_of(name) for name in plan.personas}
        return check(plan, tokens, send or api.send)

    return checked


def test_the_firm_is_tight(run: Callable[..., LeakReport]) -> None:
    report = run(plan_of())
    assert report.is_clean, report.to_json()
    assert report.requests > 500
    assert {one["persona"] for one in report.timings} >= {"anna", "bruno", "clara"}


@dataclass
class _Changed:
    """An answer with something slipped in."""

    reply: Reply
    more: str = ""
    forced_status: int | None = None

    @property
    def status(self) -> int:
        return self.forced_status or self.reply.status

    @property
    def json(self) -> Any:
        return {**self.reply.json, "more": self.more} if self.more else self.reply.json

    @property
    def everything(self) -> str:
        return self.reply.everything + self.more


def test_a_canary_in_any_answer_is_a_leak(run: Callable[..., LeakReport], api: Api) -> None:
    def leaky(method: str, path: str, **sent: Any) -> _Changed:
        reply = api.send(method, path, **sent)
        return _Changed(reply, "Cantitle" if path == "/access/scope" else "")

    report = run(plan_of(), leaky)
    assert not report.is_clean
    assert {(one.persona, one.route) for one in report.leaks} >= {("anna", "GET /access/scope")}


def test_a_denial_that_differs_from_an_absent_id_is_told(run: Callable[..., LeakReport], api: Api) -> None:
    known: set[str] = set()

    def telling(method: str, path: str, **sent: Any) -> _Changed:
        reply = api.send(method, path, **sent)
        # Something is different for ids that are asked for more than once: those that exist.
        is_known = path in known and path.startswith("/documents/")
        known.add(path)
        return _Changed(reply, forced_status=403 if is_known and reply.status == 404 else None)

    assert run(plan_of(), telling).differences


def test_a_control_that_is_not_found_and_a_wall_that_hides_from_everybody_are_told(
    run: Callable[..., LeakReport],
) -> None:
    walls = [{"name": "nobody knows", "canaries": ["neverwritten"], "open_to": ["anna"]}]
    report = run(plan_of(controls=dict.fromkeys(plan_of().personas, "neverwritten"), walls=walls))
    assert not report.is_clean
    assert "anna does not find 'neverwritten'" in report.unreachable
    assert "anna finds nothing behind 'nobody knows', which is open to them" in report.unreachable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"administrator": "nobody"}, "nobody is no persona"),
        ({"controls": {}}, "has no control"),
        ({"walls": []}, "walls"),
        ({"walls": [{"name": "w", "canaries": ["abc"]}]}, "canaries"),
        ({"personas": {"root": {}}}, "token, or an email"),
    ],
)
def test_a_plan_that_proves_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        plan_of(**changes)
