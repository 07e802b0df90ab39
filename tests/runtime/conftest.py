"""A token verifier over a key set that tests can change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from local.issuer import AUDIENCE, LocalIssuer
from shared.runtime.identity import TokenVerifier
from shared.runtime.key_set import KeySet
from shared.settings import Identity, load_settings

ISSUER = "https://issuer.kanzlei.example"


@dataclass
class Published:
    """The issuer's key set as the network shows it: a document or an error, and a clock of its own."""

    document: Any = None
    error: Exception | None = None
    fetches: int = 0
    now: float = 1000.0
    keys: KeySet = field(init=False)

    def __post_init__(self) -> None:
        self.keys = KeySet(self.fetch, clock=lambda: self.now)

    def fetch(self) -> bytes:
        self.fetches += 1
        if self.error is not None:
            raise self.error
        return self.document if isinstance(self.document, bytes) else json.dumps(self.document).encode()


@pytest.fixture(scope="session")
def signing_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="session")
def foreign_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def issuer(signing_key: rsa.RSAPrivateKey) -> LocalIssuer:
    return LocalIssuer(ISSUER, signing_key)


@pytest.fixture
def identity() -> Identity:
    return load_settings({}).identity.model_copy(
        update={"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"{ISSUER}/keys", "admin_groups": ("ki-admins",)}
    )


@pytest.fixture
def published(issuer: LocalIssuer) -> Published:
    return Published(issuer.jwks())


@pytest.fixture
def verifier(identity: Identity, published: Published) -> TokenVerifier:
    return TokenVerifier(identity, published.keys)
