"""Who asks: a bearer token, verified by signature, issuer, audience and time. There is no other way to be somebody."""

from __future__ import annotations

import logging
from typing import Any, Final

import jwt
from jwt.types import Options

from shared.access.caller import Caller
from shared.access.principals import from_claims
from shared.errors import MisconfiguredError, UnauthenticatedError
from shared.runtime.key_set import JsonWebKey, KeySet, fetch_from
from shared.settings import Identity

_log = logging.getLogger(__name__)

MAX_TOKEN_CHARS: Final = 16_384
_REQUIRED: Final = ["exp", "iss", "aud", "sub"]
# Besides PyJWT's own errors: what hostile claims and keys make its parsing raise.
_REFUSED = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


class TokenVerifier:
    """Verifies tokens of the configured issuer. Safe to share between threads."""

    def __init__(self, settings: Identity, keys: KeySet) -> None:
        if settings.issuer is None:
            raise MisconfiguredError("identity.issuer is not set; set KI_IDENTITY__ISSUER")
        self._settings = settings
        self._issuer = settings.issuer
        self._keys = keys

    @classmethod
    def of(cls, settings: Identity) -> TokenVerifier:
        """Return the verifier that fetches its keys from the configured address; nothing is fetched yet."""
        if settings.jwks_url is None:
            raise MisconfiguredError("identity.jwks_url is not set; set KI_IDENTITY__JWKS_URL")
        return cls(settings, KeySet(fetch_from(settings.jwks_url)))

    def caller(self, authorization: str | None) -> Caller:
        """Return who sent this `Authorization` header.

        Raises `UnauthenticatedError` for anything but a valid token, always with the same words, so that nobody
        learns what was wrong with a forged one; `EngineUnavailableError` if the issuer's keys cannot be had.
        """
        try:
            return from_claims(self._claims(_token(authorization)), self._settings)
        except _REFUSED as error:
            _log.info("token_refused", extra={"reason": type(error).__name__})
            raise UnauthenticatedError from error

    def _claims(self, token: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        # Pinned by the settings, never by the token: no "none", no HMAC with a public key as its secret.
        if algorithm not in self._settings.algorithms or not isinstance(kid, str):
            raise UnauthenticatedError
        key = self._keys.find(kid)
        if key is None or key.get("alg", algorithm) != algorithm:
            raise UnauthenticatedError
        return jwt.decode(
            token,
            _public_key(key, algorithm),
            algorithms=[algorithm],
            audience=self._settings.audience,
            issuer=self._issuer,
            leeway=self._settings.leeway_s,
            options=Options(require=_REQUIRED),
        )


def _token(authorization: str | None) -> str:
    """Return the token of a `Bearer` header (RFC 6750)."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    # A comma: two headers, joined on the way. Which of them counts must not be a matter of luck.
    if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN_CHARS or "," in token or " " in token:
        raise UnauthenticatedError
    return token


def _public_key(key: JsonWebKey, algorithm: str) -> Any:
    return jwt.PyJWK.from_dict(dict(key), algorithm=algorithm).key
