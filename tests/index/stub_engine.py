"""A small HTTP server that answers like an engine in trouble, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WHOLE = {"total": 1, "successful": 1, "failed": 0}


@dataclass(frozen=True)
class Answer:
    """One answer; a status of 0 closes the connection without one."""

    body: Any = None
    status: int = 200
    hold: threading.Event | None = None


@dataclass
class StubEngine:
    """Gives the answers in turn, the last one again and again."""

    answers: Sequence[Answer]
    url: str = ""
    asked: list[bytes] = field(default_factory=list)

    def next(self, payload: bytes) -> Answer:
        self.asked.append(payload)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def item(*ids: str, **changes: Any) -> dict[str, Any]:
    """The answer to one search."""
    hits = [{"_id": identifier, "_score": 1.0} for identifier in ids]
    return {"status": 200, "timed_out": False, "_shards": WHOLE, "hits": {"hits": hits}} | changes


def items(*responses: dict[str, Any]) -> Answer:
    """The answer to several searches."""
    return Answer({"responses": list(responses)})


def error(name: str, status: int = 400, **more: Any) -> dict[str, Any]:
    """The error of a search or a request."""
    return {"status": status, "error": {"type": name, "reason": "quotes the SECRET query", "root_cause": []} | more}


@contextmanager
def stub_engine(*answers: Answer) -> Iterator[StubEngine]:
    """A running server on a port of its own."""
    engine = StubEngine(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            payload = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = engine.next(payload)
            if answer.hold is not None:
                answer.hold.wait(10)
            if answer.status == 0:
                self.close_connection = True
                return
            text = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    engine.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield engine
    finally:
        for answer in answers:
            if answer.hold is not None:
                answer.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
