"""The frame around every route: correlation id, identity, errors, log line, metrics. Safe to call from many threads."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shared.errors import NotVisibleError, UnauthenticatedError
from shared.runtime import bootstrap, observability
from shared.runtime.events import HttpEvent
from shared.runtime.http import answer, problem_answer, problem_of, sqlstate_behind
from shared.runtime.memory import settle

if TYPE_CHECKING:
    from shared.access.caller import Caller
    from shared.runtime.bootstrap import Services
    from shared.types import Principal

Answer = dict[str, Any]


class LambdaContext(Protocol):
    """What Lambda tells a function about its invocation; only the request id is used."""

    @property
    def aws_request_id(self) -> str:
        """The invocation's id."""
        ...


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A request whose sender is known, with what answers it."""

    event: HttpEvent
    caller: Caller
    services: Services


@dataclass(frozen=True, slots=True)
class Public:
    """Marks a route that anyone may ask; it gets the request and nothing that holds data."""

    work: Callable[[HttpEvent], object]


Endpoint = Callable[[SignedIn], object] | Public
"""Returns the JSON body of a 200. Only what is wrapped in `Public` can be reached without a token."""


def needs_role(role: Principal, endpoint: Callable[[SignedIn], object]) -> Callable[[SignedIn], object]:
    """Return the endpoint for those whose token gives them this role; for all others there is no such route."""

    def guarded(request: SignedIn) -> object:
        if role not in request.caller.principals:
            raise NotVisibleError("there is no such route")
        return endpoint(request)

    return guarded


def needs_administrator(endpoint: Callable[[SignedIn], object]) -> Callable[[SignedIn], object]:
    """Return the endpoint for administrators, by token, alias or membership; for all others there is no such route.

    Looked at before anything of the request is read: a wrong body must not show that there is something to be wrong.
    """

    def guarded(request: SignedIn) -> object:
        request.services.access_administration.admit(request.caller)
        return endpoint(request)

    return guarded


_warm = False


def respond(event: Mapping[str, Any], context: LambdaContext | None, endpoints: Mapping[str, Endpoint]) -> Answer:
    """Return the answer of the endpoint for the event's route; never raises.

    An error becomes problem+json by the one table. Unexpected ones are logged without their message.
    """
    began = time.perf_counter()
    log = observability.log()
    request = HttpEvent.of(event, fallback_id=getattr(context, "aws_request_id", None) or str(uuid.uuid4()))
    with observability.correlated(request.correlation_id):
        answered, kinds = _answered(request, endpoints)
        route = request.route_key if request.route_key in endpoints else "unknown"
        status = int(answered["statusCode"])
        duration_ms = round((time.perf_counter() - began) * 1000, 1)
        log.info(
            "request", extra=observability.fields_of(route=route, status=status, ms=duration_ms, errors=kinds or None)
        )
        is_cold = _is_cold()
        observability.count_request(route=route, status=status, duration_ms=duration_ms, cold_start=is_cold)
        if is_cold:
            settle()
    return answered


def _answered(request: HttpEvent, endpoints: Mapping[str, Endpoint]) -> tuple[Answer, list[str]]:
    """Return the answer, and the kinds of the error behind it."""
    try:
        return answer(_work(request, endpoints), correlation_id=request.correlation_id), []
    except Exception as error:  # noqa: BLE001  # the one place where every error becomes an answer
        problem = problem_of(error)
        if problem.is_fault:
            observability.log_failure(
                "request_failed", error, **observability.fields_of(sqlstate=sqlstate_behind(error))
            )
        return problem_answer(problem, correlation_id=request.correlation_id), observability.kinds(error)


def _work(request: HttpEvent, endpoints: Mapping[str, Endpoint]) -> object:
    endpoint = endpoints.get(request.route_key)
    if endpoint is None:
        raise NotVisibleError("there is no such route")
    if isinstance(endpoint, Public):
        return endpoint.work(request)
    authorization = request.headers.get("authorization")
    if authorization is None:
        raise UnauthenticatedError
    services = bootstrap.services()
    return endpoint(SignedIn(request, services.verifier.caller(authorization), services))


def _is_cold() -> bool:
    global _warm  # a fact about this process
    was_warm, _warm = _warm, True
    return not was_warm
