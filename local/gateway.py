"""What API Gateway does between a request and a function: routes, limits, the invocation, the answer."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from local.gateway_event import HttpRequest, HttpResponse, MalformedAnswerError, build_event, to_response
from local.lambda_context import LambdaContext
from shared.runtime.routes import ROUTES, Route

Handler = Callable[[dict[str, Any], LambdaContext], object]

MAX_REQUEST_BYTES = 10_000_000  # API Gateway's limit of a request
MAX_INVOCATION_BYTES = 6_291_556  # Lambda's limit of an event and of an answer; base64 counts as it is


def load_handler(function: str) -> Handler:
    """Return the handler of `functions/<function>/handler.py`."""
    handler: Handler = importlib.import_module(f"functions.{function}.handler").handler
    return handler


def problem(status: HTTPStatus, detail: str, headers: Sequence[tuple[str, str]] = ()) -> HttpResponse:
    """Return an error the gateway answers by itself, as problem+json (RFC 9457)."""
    document = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return HttpResponse(
        status.value, (("content-type", "application/problem+json"), *headers), json.dumps(document).encode()
    )


class Gateway:
    """Answers requests through the functions of a route table, several at once.

    A function is imported at its first request. Handlers keep nothing of an event anywhere but in their arguments:
    unlike a Lambda sandbox, this process gives them many events at a time.
    """

    def __init__(self, routes: Sequence[Route] = ROUTES, *, load: Callable[[str], Handler] = load_handler) -> None:
        self._routes = tuple((tuple(route.path.split("/")), route) for route in routes)
        self._load = load
        self._handlers: dict[str, Handler] = {}
        self._importing = threading.Lock()

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request; never raises for what a handler does."""
        began = time.monotonic()
        request_id = str(uuid.uuid4())
        route, response = self._answer(request, request_id)
        _log(
            event="request",
            request_id=request_id,
            method=request.method,
            route=route.key if route else None,
            status=response.status,
            ms=round((time.monotonic() - began) * 1000, 1),
        )
        return response

    def _answer(self, request: HttpRequest, request_id: str) -> tuple[Route | None, HttpResponse]:
        matches = [
            (route, parameters)
            for template, route in self._routes
            if (parameters := _match(template, request.target)) is not None
        ]
        if not matches:
            return None, problem(HTTPStatus.NOT_FOUND, "There is no such route.")
        fitting = [(route, parameters) for route, parameters in matches if route.method == request.method]
        if not fitting:
            allowed = ", ".join(sorted({route.method for route, _ in matches}))
            return None, problem(HTTPStatus.METHOD_NOT_ALLOWED, f"Allowed: {allowed}.", (("allow", allowed),))
        # A literal segment beats a parameter, as in API Gateway.
        route, parameters = min(fitting, key=lambda match: len(match[1]))
        if len(request.body) > MAX_REQUEST_BYTES:
            return route, too_large()
        event = build_event(request, route, path_parameters=parameters, request_id=request_id, now=datetime.now(UTC))
        if len(event.get("body", "")) > MAX_INVOCATION_BYTES:
            return route, too_large()
        return route, self._invoke(route.function, event, request_id)

    def _invoke(self, function: str, event: dict[str, Any], request_id: str) -> HttpResponse:
        try:
            answer = self._handler(function)(event, LambdaContext(function, request_id))
        except Exception:  # noqa: BLE001  # whatever a function raises is one 500, and the next event is served
            _log(event="function_failed", request_id=request_id, function=function, trace=traceback.format_exc())
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The function failed.")
        try:
            response = to_response(answer)
        except MalformedAnswerError as error:
            _log(event="malformed_answer", request_id=request_id, function=function, reason=str(error))
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The function failed.")
        if isinstance(answer, dict) and len(answer.get("body") or "") > MAX_INVOCATION_BYTES:
            _log(event="answer_too_large", request_id=request_id, function=function)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The function's answer is larger than Lambda allows.")
        return response

    def _handler(self, function: str) -> Handler:
        with self._importing:
            if function not in self._handlers:
                self._handlers[function] = self._load(function)
            return self._handlers[function]


def too_large() -> HttpResponse:
    """Return the answer to a body over the limit."""
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is larger than allowed.")


def _match(template: Sequence[str], target: str) -> dict[str, str] | None:
    """Return the path parameters if the target's path fits, else None. Segments are decoded after the split."""
    segments = target.partition("?")[0].split("/")
    if len(segments) != len(template):
        return None
    parameters: dict[str, str] = {}
    for expected, segment in zip(template, segments, strict=True):
        if expected.startswith("{"):
            if not segment:
                return None
            parameters[expected.strip("{}")] = unquote(segment, errors="replace")
        elif expected != segment:
            return None
    return parameters


def _log(**fields: object) -> None:
    print(json.dumps(fields), file=sys.stderr, flush=True)
