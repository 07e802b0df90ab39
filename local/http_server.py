"""An HTTP/1.1 server on the loopback address in front of anything that answers an `HttpRequest`."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local.gateway import MAX_REQUEST_BYTES, problem, too_large
from local.gateway_event import HttpRequest, HttpResponse
from local.ports import LOOPBACK

Answer = Callable[[HttpRequest], HttpResponse]

_IDLE_S = 65
_CHUNK = 65536


class _BadBodyError(ValueError):
    """The body does not have the form its headers announce."""


class _TooLargeError(ValueError):
    """The body is over the limit."""


class LoopbackServer(ThreadingHTTPServer):
    """A server with a thread per connection. Use as a context manager, or call `server_close`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Answer) -> None:
        self.answer = answer
        super().__init__((LOOPBACK, port), _Connection)

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{LOOPBACK}:{self.server_port}"


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    # Without these two every answer waits about 40 ms for the client's delayed acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = _CHUNK
    server: LoopbackServer

    def answer(self) -> None:
        """Read one request, let it be answered, write the response."""
        try:
            body = self._read_body()
        except _TooLargeError:
            self.close_connection = True  # the rest of the body is not read
            self._write(too_large())
            return
        except _BadBodyError as error:
            self.close_connection = True
            self._write(problem(HTTPStatus.BAD_REQUEST, str(error)))
            return
        request = HttpRequest(
            method=self.command,
            target=self.path,
            headers=tuple(self.headers.items()),
            body=body,
            source_ip=str(self.client_address[0]),
            protocol=self.request_version,
        )
        self._write(self.server.answer(request))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815

    def version_string(self) -> str:
        """Name the server without its Python."""
        return "knowledge-index"

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is not HTTP enough to be a request."""
        del message, explain  # they quote the request
        self.close_connection = True
        self.request_version = self.protocol_version  # not yet read from the request
        status = HTTPStatus(code)
        self._write(problem(status, f"{status.description or status.phrase}."))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: the gateway logs each request, without its query."""

    def _read_body(self) -> bytes:
        lengths, encodings = (self.headers.get_all(name, []) for name in ("Content-Length", "Transfer-Encoding"))
        if len(lengths) + len(encodings) > 1:
            # Whoever stands in front may read the other one, and take the rest of the body for the next request.
            raise _BadBodyError("The length of the body is stated twice.")
        if encodings:
            if encodings[0].strip().lower() != "chunked":
                raise _BadBodyError("Only chunked is taken as Transfer-Encoding.")
            return self._read_chunks()
        announced = lengths[0] if lengths else "0"
        if not announced.isdecimal():
            raise _BadBodyError("Content-Length is not a number.")
        length = int(announced)
        if length > MAX_REQUEST_BYTES:
            self._discard(length)
            raise _TooLargeError
        body = self.rfile.read(length)
        if len(body) < length:
            raise _BadBodyError("The body is shorter than announced.")
        return body

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            try:
                size = int(self.rfile.readline(64).partition(b";")[0], 16)
            except ValueError as error:
                raise _BadBodyError("A chunk does not state its size.") from error
            if size < 0:
                raise _BadBodyError("A chunk states a negative size.")
            if len(body) + size > MAX_REQUEST_BYTES:
                raise _TooLargeError
            body += self.rfile.read(size)
            if self.rfile.readline(64) not in {b"\r\n", b"\n"}:
                if size == 0:
                    continue  # a trailer line
                raise _BadBodyError("A chunk is longer than it states.")
            if size == 0:
                return bytes(body)

    def _discard(self, length: int) -> None:
        """Take in a body of moderate excess, so that the client reads the 413 instead of a reset."""
        left = min(length, 4 * MAX_REQUEST_BYTES)
        while left > 0:
            taken = self.rfile.read(min(left, _CHUNK))
            if not taken:
                return
            left -= len(taken)

    def _write(self, response: HttpResponse) -> None:
        self.send_response(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        for cookie in response.cookies:
            self.send_header("set-cookie", cookie)
        self.send_header("content-length", str(len(response.body)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
