"""Tokens for people of this machine, and calls of the HTTP API in their name."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from local import stack
from local.environment import http_url
from local.issuer import DEFAULT_TTL_S, subject_of
from local.people import joined, membership_of
from shared.errors import (
    ConflictError,
    EngineUnavailableError,
    InvalidRequestError,
    KnowledgeIndexError,
    NotVisibleError,
    UnauthenticatedError,
)

_TIMEOUT_S = 60.0
_ERRORS: Mapping[int, type[KnowledgeIndexError]] = {
    401: UnauthenticatedError,
    404: NotVisibleError,
    409: ConflictError,
    429: EngineUnavailableError,
    503: EngineUnavailableError,
}


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person with a token; times are seconds since the epoch."""

    email: str
    subject: str
    groups: tuple[str, ...]
    token: str
    expires_at: int

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the HTTP API, or raise the error that its problem document stands for."""
        return self._call("POST", path, json.dumps(body).encode())

    def get(self, path: str) -> dict[str, Any]:
        """Return the answer of the HTTP API, or raise the error that its problem document stands for."""
        return self._call("GET", path, None)

    def _call(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        at = urlsplit(http_url(stack.running_state()))
        connection = HTTPConnection(at.hostname or "", at.port, timeout=_TIMEOUT_S)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read() or b"{}")
        except (OSError, HTTPException, ValueError) as error:
            raise EngineUnavailableError(f"the local API does not answer ({error!r}); try: ki up") from error
        finally:
            connection.close()
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _problem(response.status, answer)
        return dict(answer)


def sign_in(email: str, groups: Sequence[str] = (), *, admin: bool = False, ttl_s: float = DEFAULT_TTL_S) -> SignedIn:
    """Return a person with a fresh token that carries the directory's groups and the given ones."""
    name, at, domain = email.partition("@")
    if not (name and at and domain):
        raise InvalidRequestError(f"--as wants an e-mail address, not {email!r}", field="as")
    membership = joined(membership_of(email), groups, admin=admin)
    subject = subject_of(email)
    now = time.time()
    token = stack.issuer().issue(
        subject, email=email, groups=membership.groups, admin=membership.admin, ttl_s=ttl_s, issued_at=now
    )
    return SignedIn(email, subject, membership.token_groups, token, int(now + ttl_s))


def _problem(status: int, answer: Mapping[str, Any]) -> KnowledgeIndexError:
    message = str(answer.get("detail") or answer.get("title") or f"the API answered {status}")
    if status in {400, 413, 422}:
        return InvalidRequestError(message, field=answer.get("field"))
    return _ERRORS.get(status, KnowledgeIndexError)(message)
