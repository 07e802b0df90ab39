"""The Invoke API of Lambda in front of our handlers, in this process: what the interpreter of a state machine calls."""

from __future__ import annotations

import importlib
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from local.lambda_context import LambdaContext

ARN = "arn:aws:lambda:eu-central-1:000000000000:function:"
Handler = Callable[[dict[str, Any], Any], Any]


@dataclass
class Functions:
    """The functions that can be called, and each call: its function, event and answer or error's name."""

    address: str = ""
    instead: dict[str, Handler] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any], Any]] = field(default_factory=list)
    largest_bytes: int = 0

    def arns(self, names: tuple[str, ...]) -> dict[str, str]:
        return {name: ARN + name for name in names}

    def invoke(self, name: str, event: dict[str, Any]) -> tuple[bytes, str | None]:
        """Return the body and the kind of error as Lambda answers them."""
        try:
            handler = self.instead.get(name) or importlib.import_module(f"functions.{name}.handler").handler
            answer, error = handler(event, LambdaContext(name, str(uuid4()), timeout_s=900)), None
        except Exception as raised:  # noqa: BLE001 - the runtime answers every error
            answer = {
                "errorMessage": str(raised),
                "errorType": type(raised).__name__,
                "stackTrace": traceback.format_tb(raised.__traceback__),
            }
            error = "Unhandled"
        body = json.dumps(answer).encode()
        self.largest_bytes = max(self.largest_bytes, len(body), len(json.dumps(event).encode()))
        self.calls.append((name, event, answer if error is None else answer["errorType"]))
        return body, error


@contextmanager
def serving(functions: Functions) -> Iterator[Functions]:
    """The functions behind an address, until the block ends."""

    class Invoke(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            arn = unquote(self.path.split("/functions/")[1].split("/invocations")[0])
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body, error = functions.invoke(arn.rpartition(":")[2], event)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-amzn-RequestId", str(uuid4()))
            self.send_header("X-Amz-Executed-Version", "$LATEST")
            if error is not None:
                self.send_header("X-Amz-Function-Error", error)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Invoke)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    functions.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield functions
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
