"""Does anything leave from behind a wall? Asked of a running instance, over its own API, as the people concerned.

A plan names personas, walls with words that stand nowhere else (canaries) and those for whom each wall is open, and
for each persona a word that must be found: an instance that answers nothing leaks nothing. With an administrator's
token the ids behind the walls are looked up first. Then every persona asks every route of the instance for all of it.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol, Self
from urllib.parse import unquote
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from shared.errors import InvalidRequestError

OK: Final = HTTPStatus.OK
_FAULT: Final = HTTPStatus.INTERNAL_SERVER_ERROR
_PAGE: Final = 100
_MOST_PAGES: Final = 1_000
_TIMED: Final = 15
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PARAMETER: Final = re.compile(r"\{\w+\}")
_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
# A route that takes messages must not be fed with ones that it would act on.
_ASKED_WITHOUT_BODY: Final = frozenset({"put", "patch", "delete"})

Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=4, max_length=500)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Persona(_Part):
    """Somebody who asks: with a token, or on one machine with an address and groups for the local issuer."""

    token: str | None = None
    email: str | None = None
    groups: tuple[str, ...] = ()
    admin: bool = False

    @model_validator(mode="after")
    def _can_sign_in(self) -> Self:
        if (self.token is None) == (self.email is None):
            msg = "give a token, or an email for the local issuer"
            raise ValueError(msg)
        return self


class Wall(_Part):
    """What lies behind a wall: words that stand nowhere else, in texts, titles, names, paths, parties, matters, ids."""

    name: str
    canaries: tuple[Word, ...] = Field(min_length=1)
    open_to: tuple[str, ...] = ()


class Plan(_Part):
    """Whom to ask as, what must not be seen, and what must."""

    personas: Mapping[str, Persona] = Field(min_length=1)
    administrator: str
    walls: tuple[Wall, ...] = Field(min_length=1)
    controls: Mapping[str, Word]

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        named = {self.administrator, *self.controls, *(one for wall in self.walls for one in wall.open_to)}
        unknown = sorted(named - set(self.personas))
        if unknown:
            msg = f"{unknown[0]} is no persona of the plan"
            raise ValueError(msg)
        without = sorted(set(self.personas) - set(self.controls))
        if without:
            msg = f"{without[0]} has no control: a persona who finds nothing proves nothing"
            raise ValueError(msg)
        return self


class Reply(Protocol):
    """An answer of the instance."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def json(self) -> Any:
        """The body as JSON."""

    @property
    def everything(self) -> str:
        """Headers and body as text, with what is encoded in headers decoded as well."""


Send = Callable[..., Reply]
"""`send(method, path, token=..., body=..., query=...)`."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A canary in an answer to somebody for whom its wall is closed."""

    wall: str
    persona: str
    canary: str
    route: str
    request: str


@dataclass(slots=True)
class LeakReport:
    """What was asked and what came of it. `timings` compare a plain denial with an absent id, in milliseconds."""

    routes: list[str] = field(default_factory=list)
    requests: int = 0
    leaks: list[Leak] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing leaked, everything that must be reachable was, and no answer told denied from absent."""
        return not (self.leaks or self.unreachable or self.differences or self.faults)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        return {**asdict(self), "is_clean": self.is_clean}


def check(
    plan: Plan, tokens: Mapping[str, str], send: Send, *, progress: Callable[[str], None] | None = None
) -> LeakReport:
    """Ask the instance everything that the plan calls for. `tokens` by persona."""
    return _Check(plan, tokens, send, progress or (lambda _: None)).run()


@dataclass(frozen=True, slots=True)
class _Asked:
    route: str
    request: str
    reply: Reply


class _Check:
    def __init__(self, plan: Plan, tokens: Mapping[str, str], send: Send, progress: Callable[[str], None]) -> None:
        self._plan = plan
        self._tokens = tokens
        self._send = send
        self._progress = progress
        self._report = LeakReport()

    def run(self) -> LeakReport:
        self._report.routes = sorted(self._routes)
        self._progress(f"{len(self._ids)} ids stand in what lies behind the walls")
        for persona in self._plan.personas:
            self._progress(f"asking as {persona}")
            self._as_persona(persona)
        return self._report

    @cached_property
    def _routes(self) -> dict[str, tuple[str, str]]:
        """Every route of the instance: "GET /x/{id}" to method and path."""
        document = self._send("GET", "/openapi.json").json
        routes = {
            f"{method.upper()} {path}": (method, path)
            for path, methods in document["paths"].items()
            for method in methods
            if method in _METHODS
        }
        if not routes:
            raise InvalidRequestError("the instance publishes no routes at /openapi.json")
        return routes

    @cached_property
    def _canaries(self) -> list[str]:
        return sorted({canary for wall in self._plan.walls for canary in wall.canaries})

    @cached_property
    def _ids(self) -> list[str]:
        """All ids in what the administrator finds by the canaries."""
        token = self._tokens[self._plan.administrator]
        found: set[str] = set()
        for word in self._canaries:
            reply = self._send("POST", "/search", token=token, body={"query": word, "limit": _PAGE})
            self._report.requests += 1
            if reply.status != OK:
                raise InvalidRequestError(f"the administrator's search was answered with {reply.status}")
            for result in reply.json["results"]:
                text = repr(result).casefold()
                if word.casefold() in text:
                    found |= set(_ID.findall(text))
        return sorted(found)

    def _as_persona(self, persona: str) -> None:
        token, seen = self._tokens[persona], set[str]()
        closed = [wall for wall in self._plan.walls if persona not in wall.open_to]
        control = self._plan.controls[persona].casefold()
        is_found = False
        for asked in self._everything(token):
            self._report.requests += 1
            if asked.reply.status >= _FAULT:
                self._report.faults.append(f"{persona}: {asked.request} was answered with {asked.reply.status}")
            text = asked.reply.everything.casefold()
            is_found = is_found or control in text
            seen |= {canary for canary in self._canaries if canary.casefold() in text}
            self._report.leaks += [
                Leak(wall.name, persona, canary, asked.route, asked.request)
                for wall in closed
                for canary in wall.canaries
                if canary.casefold() in text
            ]
        if not is_found:
            self._report.unreachable.append(f"{persona} does not find {self._plan.controls[persona]!r}")
        self._report.unreachable += [
            f"{persona} finds nothing behind {wall.name!r}, which is open to them"
            for wall in self._plan.walls
            if persona in wall.open_to and seen.isdisjoint(wall.canaries)
        ]
        self._compare_with_absent(persona, token)

    def _everything(self, token: str) -> Iterator[_Asked]:
        for canary in [*self._canaries, *sorted(set(self._plan.controls.values()))]:
            yield self._asked("POST /search", token, body={"query": canary, "limit": _PAGE})
        yield from self._listed(token)
        for route, (method, path) in self._routes.items():
            yield from self._by_id(route, method, path, token)

    def _listed(self, token: str) -> Iterator[_Asked]:
        """Walk the whole list: its total must be what is shown, and nothing may be shown twice."""
        body: dict[str, Any] = {"limit": _PAGE}
        shown: list[str] = []
        for _ in range(_MOST_PAGES):
            asked = self._asked("POST /search/filter", token, body=body)
            yield asked
            if asked.reply.status != OK:
                return
            answer = asked.reply.json
            shown += [result["version_id"] for result in answer["results"]]
            cursor = answer["page"].get("next_cursor")
            if cursor is None:
                if answer["page"]["total"] != len(shown) or len(set(shown)) != len(shown):
                    self._report.differences.append(
                        f"the list shows {len(shown)} results, {len(set(shown))} of them different, "
                        f"and says {answer['page']['total']}"
                    )
                return
            body = {"limit": _PAGE, "cursor": cursor}

    def _by_id(self, route: str, method: str, path: str, token: str) -> Iterator[_Asked]:
        names = _PARAMETER.findall(path)
        if not names:
            bodies: Sequence[Any] = [None] if method == "get" else [{}]
            if method == "post":
                bodies = [{}, *({"document_id": one} for one in self._ids)]
            for body in bodies:
                yield self._asked(route, token, body=body)
            return
        for one in self._ids:
            place = _PARAMETER.sub(one, path)
            if method in _ASKED_WITHOUT_BODY:
                yield self._asked(route, token, path=place, body={})
                continue
            yield self._asked(route, token, path=place, body=None if method == "get" else {})
            if method == "get":
                for name in ("version_id", "source_object_id"):
                    yield self._asked(route, token, path=place, query={name: one})

    def _asked(
        self,
        route: str,
        token: str,
        *,
        path: str | None = None,
        body: Any = None,
        query: Mapping[str, str] | None = None,
    ) -> _Asked:
        method, _, plain = route.partition(" ")
        place = path or plain
        reply = self._send(method, place, token=token, body=body, query=query)
        return _Asked(route, f"{method} {place} {body if body is not None else dict(query or {})}", reply)

    def _compare_with_absent(self, persona: str, token: str) -> None:
        """Compare what is denied with what is not there: the same status, the same body, about the same time."""
        absent = str(uuid4())
        for one in self._ids:
            place = f"/documents/{one}"
            reply, none = self._send("GET", place, token=token), self._send("GET", f"/documents/{absent}", token=token)
            self._report.requests += 2
            if reply.status == OK:
                continue
            if (reply.status, _plain(reply)) != (none.status, _plain(none)):
                self._report.differences.append(f"{persona}: GET {place} differs from the answer for an absent id")
        refused = (one for one in self._ids if self._send("GET", f"/documents/{one}", token=token).status != OK)
        denied = next(refused, None)
        if denied is None:
            return
        times: dict[str, list[float]] = {denied: [], absent: []}
        for _ in range(_TIMED):
            for one, taken in times.items():
                began = time.perf_counter()
                self._send("GET", f"/documents/{one}", token=token)
                taken.append((time.perf_counter() - began) * 1000)
        self._report.timings.append(
            {
                "persona": persona,
                "denied_ms": round(statistics.median(times[denied]), 2),
                "absent_ms": round(statistics.median(times[absent]), 2),
            }
        )


def _plain(reply: Reply) -> str:
    """Return the body without ids: each answer names its own request."""
    return _ID.sub("*", repr(reply.json))


def decoded(headers: Mapping[str, str], body: bytes) -> str:
    """Return headers and body as one text; what a header encodes (RFC 8187) is there in plain letters too."""
    listed = "\n".join(f"{name}: {value}\n{unquote(value)}" for name, value in headers.items())
    return f"{listed}\n{body.decode('utf-8', 'replace')}"
