"""A token issuer for one machine: signs with a key of its own and publishes what a verifier needs.

Its tokens are verified like those of any other issuer: by issuer, audience, time and signature against the
published key set.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from local.gateway import problem
from local.gateway_event import HttpRequest, HttpResponse
from local.private_file import write_private

ALGORITHM = "RS256"
AUDIENCE = "knowledge-index"
ADMIN_GROUP = "ki-admins"
SYNC_GROUP = "ki-sync"
JWKS_PATH = "/.well-known/jwks.json"
CONFIGURATION_PATH = "/.well-known/openid-configuration"
DEFAULT_TTL_S = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class LocalIssuer:
    """An issuer known by its URL, with its signing key."""

    url: str
    key: rsa.RSAPrivateKey

    @property
    def jwks_url(self) -> str:
        """Where the key set is published."""
        return self.url + JWKS_PATH

    def issue(
        self,
        subject: str,
        *,
        email: str | None = None,
        email_verified: bool = True,
        groups: Sequence[str] = (),
        admin: bool = False,
        ttl_s: float = DEFAULT_TTL_S,
        audience: str = AUDIENCE,
        issued_at: float | None = None,
    ) -> str:
        """Return a signed token. An administrator is a member of the group `ki-admins`; times are in seconds."""
        now = time.time() if issued_at is None else issued_at
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now + ttl_s),
            "jti": str(uuid.uuid4()),
            "groups": [*groups, *([ADMIN_GROUP] if admin else [])],
        }
        if email is not None:
            claims |= {"email": email, "email_verified": email_verified}
        return jwt.encode(claims, self.key, algorithm=ALGORITHM, headers={"kid": self.key_id})

    @property
    def key_id(self) -> str:
        """The key's name: its thumbprint (RFC 7638)."""
        public = self._public()
        members = json.dumps({name: public[name] for name in ("e", "kty", "n")}, separators=(",", ":"))
        return hashlib.sha256(members.encode()).hexdigest()[:32]

    def jwks(self) -> dict[str, Any]:
        """Return the public key set (RFC 7517)."""
        public = {name: self._public()[name] for name in ("kty", "n", "e")}
        return {"keys": [{**public, "kid": self.key_id, "use": "sig", "alg": ALGORITHM}]}

    def openid_configuration(self) -> dict[str, Any]:
        """Return the issuer's description as OpenID Connect Discovery asks for it."""
        return {
            "issuer": self.url,
            "jwks_uri": self.jwks_url,
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "claims_supported": ["iss", "sub", "aud", "exp", "iat", "nbf", "email", "email_verified", "groups"],
        }

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request for one of the two published documents."""
        documents = {JWKS_PATH: self.jwks, CONFIGURATION_PATH: self.openid_configuration}
        if request.path not in documents:
            return problem(HTTPStatus.NOT_FOUND, "There is no such document.")
        if request.method not in {"GET", "HEAD"}:
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "Allowed: GET.", (("allow", "GET"),))
        headers = (("content-type", "application/json"), ("cache-control", "public, max-age=300"))
        return HttpResponse(200, headers, json.dumps(documents[request.path]()).encode())

    def _public(self) -> dict[str, Any]:
        return dict(RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True))


def subject_of(email: str) -> str:
    """Return the stable subject that stands for this address: opaque, as with a real issuer."""
    return f"local-{hashlib.sha256(email.strip().lower().encode()).hexdigest()[:16]}"


def ensure_signing_key(path: Path) -> rsa.RSAPrivateKey:
    """Return the issuer's key, made at the first call; the file is readable by its owner only."""
    if not path.exists():
        pem = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(path, pem)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{path} does not hold an RSA key; delete it and run: ki up")
    return key
