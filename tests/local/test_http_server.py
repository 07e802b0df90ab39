"""Over a real socket: bodies in every form, limits, keep-alive, and no pause per answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.client import HTTPConnection

import pytest

from local.gateway import MAX_REQUEST_BYTES
from local.gateway_event import HttpResponse
from local.http_server import LoopbackServer


@pytest.fixture
def received():
    return []


@pytest.fixture
def server(received):
    def answer(request):
        received.append(request)
        return HttpResponse(200, (("content-type", "text/plain"), ("x-a", "1")), b"answer", ("a=1", "b=2"))

    with LoopbackServer(0, answer) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def connection(server):
    opened = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    yield opened
    opened.close()


def raw(server, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_a_request_arrives_as_sent_and_the_answer_with_every_cookie(connection, received):
    connection.request("POST", "/search?q=%20", b"body", {"X-Twice": "1"})
    response = connection.getresponse()
    assert response.read() == b"answer"
    assert response.headers.get_all("set-cookie") == ["a=1", "b=2"]
    request = received[0]
    assert (request.method, request.target, request.body, request.source_ip) == (
        "POST",
        "/search?q=%20",
        b"body",
        "127.0.0.1",
    )
    assert ("X-Twice", "1") in request.headers


def test_duplicate_headers_arrive_both(server, received):
    raw(server, b"GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\nA: 2\r\nConnection: close\r\n\r\n")
    assert [value for name, value in received[0].headers if name == "A"] == ["1", "2"]


def test_a_chunked_body_arrives_whole(connection, received):
    connection.request("POST", "/", iter([b"ab", b"cde"]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert connection.getresponse().status == 200
    assert received[0].body == b"abcde"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_every_method_is_passed_on(connection, received, method):
    connection.request(method, "/x")
    response = connection.getresponse()
    assert response.read() == (b"" if method == "HEAD" else b"answer")
    assert received[0].method == method


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nshort",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nab\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_a_malformed_request_is_400_and_reaches_nothing(server, received, head):
    answer = raw(server, head)
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b"application/problem+json" in answer
    assert received == []


def test_a_body_over_the_limit_is_413_and_reaches_nothing(connection, received):
    connection.request("POST", "/", b"a" * (MAX_REQUEST_BYTES + 1))
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["title"]
    assert received == []


def test_a_chunked_body_over_the_limit_is_413(server, received):
    size = MAX_REQUEST_BYTES + 1
    answer = raw(server, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % size)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert received == []


def test_a_kept_connection_answers_without_waiting_for_acknowledgements(connection):
    def once():
        began = time.perf_counter()
        connection.request("POST", "/", b"x")
        connection.getresponse().read()
        return time.perf_counter() - began

    once()
    took_s = sorted(once() for _ in range(21))
    assert took_s[10] < 0.02  # with Nagle's algorithm the median is 0.04
