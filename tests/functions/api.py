"""The API as a client meets it: requests through the local gateway and the real handlers, with tokens of an issuer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric import rsa

from local.gateway import Gateway
from local.gateway_event import HttpRequest
from local.http_server import LoopbackServer
from local.issuer import LocalIssuer, subject_of
from local.leakcheck import decoded
from local.ports import LOOPBACK, choose_port


@dataclass(frozen=True)
class Reply:
    """An answer with all that it says."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def everything(self) -> str:
        """Body and headers, with what is encoded in headers decoded as well."""
        return decoded(self.headers, self.body)


class Api:
    """Sends requests to the functions of the process."""

    def __init__(self, issuer: LocalIssuer) -> None:
        self.issuer = issuer
        self._gateway = Gateway()

    def token(self, email: str | None, *groups: str, **claims: Any) -> str:
        return self.issuer.issue(subject_of(email or "nobody"), email=email, groups=groups, **claims)

    def send(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        body: Any = None,
        raw: bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        sent = {"host": "api.kanzlei.example", **(headers or {})}
        if token is not None:
            sent.setdefault("authorization", f"Bearer {token}")
        content = b"" if body is None else json.dumps(body).encode()
        if raw is not None:
            content = raw
        if content:
            sent.setdefault("content-type", "application/json")
        target = f"{path}?{urlencode(query)}" if query else path
        answer = self._gateway.handle(HttpRequest(method, target, list(sent.items()), content))
        return Reply(answer.status, dict(answer.headers), answer.body)

    def get(self, path: str, token: str | None = None, **query: str) -> Reply:
        return self.send("GET", path, token=token, query=query)

    def post(self, path: str, token: str | None, body: Any) -> Reply:
        return self.send("POST", path, token=token, body=body)


@contextmanager
def running_issuer() -> Iterator[LocalIssuer]:
    """An issuer whose keys can be fetched."""
    port = choose_port()
    issuer = LocalIssuer(f"http://{LOOPBACK}:{port}", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    with LoopbackServer(port, issuer.answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield issuer
        server.shutdown()
