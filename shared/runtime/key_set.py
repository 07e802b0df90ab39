"""The issuer's public keys, fetched when needed and kept; somebody who invents key names cannot make us fetch more."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import urllib3

from shared.errors import EngineUnavailableError

_log = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024
FRESH_S = 600.0
# A key set that cannot be renewed is trusted for so long, so that a short outage of the issuer stops nobody.
USABLE_S = 3600.0
# At most one fetch in so many seconds, whatever key names tokens carry.
SPACING_S = 10.0
# After a failed fetch, and as long as no keys are known at all.
RETRY_S = 1.0
_CONNECT_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 3.0
_DEADLINE_S = 5.0
_KEY_TYPES = frozenset({"RSA", "EC"})

Fetch = Callable[[], bytes]
JsonWebKey = Mapping[str, Any]


class KeySet:
    """The keys of one issuer (RFC 7517) by their `kid`. Safe to share between threads."""

    def __init__(self, fetch: Fetch, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, JsonWebKey] | None = None
        self._fetched_at = 0.0
        self._tried_at = float("-inf")
        self._failed = False

    def find(self, kid: str) -> JsonWebKey | None:
        """Return the signing key of that name, None if the issuer has none.

        Raises `EngineUnavailableError` when that cannot be known because the issuer is away.
        """
        keys = self._keys
        if keys is not None and kid in keys and self._age() < FRESH_S:
            return keys[kid]
        with self._lock:
            if not (self._keys is not None and kid in self._keys and self._age() < FRESH_S):
                self._renew()
            keys = self._keys
        if keys is not None and kid in keys and self._age() < USABLE_S:
            return keys[kid]
        if self._failed or keys is None:
            raise EngineUnavailableError("the token issuer's keys cannot be fetched; try again shortly")
        return None

    def _renew(self) -> None:
        """Fetch the keys unless that was tried a moment ago; what is known stays when it fails."""
        now = self._clock()
        if now - self._tried_at < (RETRY_S if self._failed else SPACING_S):
            return
        self._tried_at = now
        try:
            self._keys = signing_keys(self._fetch())
        except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as error:
            self._failed = True
            _log.warning("jwks_unavailable", extra={"error": type(error).__name__})
            return
        self._failed = False
        self._fetched_at = now

    def _age(self) -> float:
        return self._clock() - self._fetched_at


def signing_keys(document: bytes) -> dict[str, JsonWebKey]:
    """Return the public keys that verify signatures, by name; of two with one name the first.

    Anything else in the set (keys for encryption, symmetric ones) is passed over. Raises `ValueError` for what is no
    key set.
    """
    body = json.loads(document)
    if not isinstance(body, dict) or not isinstance(body.get("keys"), list):
        raise ValueError("not a JSON Web Key Set")  # noqa: TRY004  # a wrong answer, not a wrong call
    keys: dict[str, JsonWebKey] = {}
    for key in body["keys"]:
        if isinstance(key, dict) and key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig":
            kid = key.get("kid")
            if isinstance(kid, str):
                keys.setdefault(kid, key)
    return keys


def fetch_from(url: str) -> Fetch:
    """Return what fetches the document at `url`: no redirects, no more than 256 KB, no longer than five seconds."""
    pool = urllib3.PoolManager(
        num_pools=1,
        timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        retries=False,
    )

    def fetch() -> bytes:
        ends = time.monotonic() + _DEADLINE_S
        response = pool.request("GET", url, redirect=False, preload_content=False)
        try:
            if response.status != 200:  # noqa: PLR2004
                raise ValueError(f"status {response.status}")
            content = b""
            while part := response.read1(MAX_BYTES + 1):
                content += part
                if len(content) > MAX_BYTES or time.monotonic() > ends:
                    raise ValueError("the key set is too large or too slow")
            return content
        finally:
            # Closed, not returned: the next fetch is minutes away.
            response.close()

    return fetch
