"""`ki leakcheck`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import urllib3
from pydantic import ValidationError

from local import stack
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.environment import http_url
from local.leakcheck import LeakReport, Plan, check, decoded
from local.sign_in import sign_in
from shared.errors import EngineUnavailableError, InvalidRequestError
from shared.runtime.events import parse_json

_TIMEOUT_S = 60.0


@click.command("leakcheck")
@click.argument("plan_file", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", metavar="URL", help="The instance to ask; the local stack without it.")
@json_option
@reporting
def command(*, plan_file: Path, url: str | None, as_json: bool) -> ExitCode:
    """Ask a running instance everything, as the people in PLAN, and look for what lies behind walls.

    PLAN is a JSON file: personas (a token, or an e-mail and groups for the local issuer), the persona that
    administers, walls (a name, canaries, who may see them) and one control word for each persona. Exit code 1: a
    canary was seen, a control was not, or a denial differs from an absent id.
    """
    plan = _plan(plan_file)
    base = url or http_url(stack.running_state())
    tokens = {
        name: one.token or sign_in(one.email or "", list(one.groups), admin=one.admin).token
        for name, one in plan.personas.items()
    }
    report = check(plan, tokens, _Instance(base).send, progress=None if as_json else note)
    emit(report.to_json(), as_json=as_json, text=_text(report))
    return ExitCode.DONE if report.is_clean else ExitCode.NO


def _plan(file: Path) -> Plan:
    try:
        return Plan.model_validate(parse_json(file.read_bytes()))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidRequestError(f"{file.name}: {wrong}") from error


def _text(report: LeakReport) -> str:
    lines = [f"{report.requests} requests over {len(report.routes)} routes"]
    lines += [f"LEAK {one.wall}: {one.persona} sees {one.canary!r} by {one.request}" for one in report.leaks]
    lines += [f"NOT REACHABLE {one}" for one in report.unreachable]
    lines += [f"DIFFERENT {one}" for one in report.differences]
    lines += [f"FAULT {one}" for one in report.faults]
    lines += [f"{one['persona']}: denied {one['denied_ms']} ms, absent {one['absent_ms']} ms" for one in report.timings]
    lines.append("Nothing leaks." if report.is_clean else "THE INSTANCE IS NOT CLEAN.")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def everything(self) -> str:
        return decoded(self.headers, self.body)


class _Instance:
    def __init__(self, base: str) -> None:
        self._base = base.rstrip("/")
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT_S, retries=False)

    def send(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        body: Any = None,
        query: Mapping[str, str] | None = None,
    ) -> _Answer:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            answer = self._pool.request(
                method,
                f"{self._base}{path}",
                headers=headers,
                body=None if body is None else json.dumps(body).encode(),
                fields=None if query is None or body is not None else dict(query),
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise EngineUnavailableError(f"the instance at {self._base} does not answer") from error
        return _Answer(answer.status, dict(answer.headers), answer.data)
