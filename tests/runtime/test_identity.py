"""Who gets in, and who does not."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from local.issuer import ALGORITHM, AUDIENCE, LocalIssuer
from shared.errors import EngineUnavailableError, UnauthenticatedError
from shared.runtime.identity import TokenVerifier
from shared.runtime.key_set import FRESH_S, SPACING_S, USABLE_S, fetch_from, signing_keys
from shared.settings import Identity
from tests.runtime.conftest import ISSUER, Published


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    found = {"iss": ISSUER, "sub": "anna-1", "aud": AUDIENCE, "iat": now, "exp": now + 600, **changes}
    return {name: value for name, value in found.items() if value is not ...}


def signed(issuer: LocalIssuer, payload: dict[str, Any], *, key: Any = None, **header: Any) -> str:
    algorithm = header.pop("alg", ALGORITHM)
    return jwt.encode(payload, key or issuer.key, algorithm=algorithm, headers={"kid": issuer.key_id, **header})


def unsigned(header: dict[str, Any], payload: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(payload).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def test_a_valid_token_names_its_caller(verifier: TokenVerifier, issuer: LocalIssuer) -> None:
    token = issuer.issue("anna-1", email="Anna@Kanzlei.example", groups=["Nord-Team"], admin=True)
    caller = verifier.caller(f"Bearer {token}")
    assert caller.subject == "anna-1"
    assert caller.principals == {
        "user:anna-1",
        "user:anna@kanzlei.example",
        "username:anna@kanzlei.example",
        "group:nord-team",
        "group:ki-admins",
        "role:authenticated",
        "role:admin",
    }
    assert verifier.caller(f"bearer   {token} ") == caller


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": int(time.time()) - 3600},
        {"exp": ...},
        {"exp": "soon"},
        {"exp": None},
        {"exp": float("inf")},
        {"exp": []},
        {"nbf": int(time.time()) + 3600},
        {"iat": int(time.time()) + 3600},
        {"iss": "https://other.example"},
        {"iss": ISSUER + "/"},
        {"iss": [ISSUER]},
        {"iss": ...},
        {"aud": "another-api"},
        {"aud": ["another-api"]},
        {"aud": []},
        {"aud": ...},
        {"aud": {"knowledge-index": 1}},
        {"sub": ...},
        {"sub": ""},
        {"sub": "   "},
        {"sub": None},
        {"sub": 7},
        {"sub": ["anna-1"]},
        {"sub": "anna\x00"},
        {"sub": "a" * 5000},
    ],
    ids=repr,
)
def test_wrong_claims_are_refused(verifier: TokenVerifier, issuer: LocalIssuer, changes: dict[str, Any]) -> None:
    assert verifier.caller(f"Bearer {signed(issuer, claims())}").subject == "anna-1"
    # Not through PyJWT, which refuses to sign some of these itself.
    with pytest.raises(UnauthenticatedError):
        verifier.caller(f"Bearer {_sign(issuer, claims(**changes))}")


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("email_verified", ["true"]),
        ("email_verified", {"a": 1}),
        ("email_verified", 1),
        ("email", ["root@kanzlei.example"]),
        ("groups", {"ki-admins": True}),
        ("groups", [["ki-admins"], 7, None]),
        ("groups", "ki-admins-not"),
        ("roles", ["admin"]),
        ("preferred_username", "root@kanzlei.example"),
    ],
)
def test_odd_claims_give_no_more_than_the_subject(
    verifier: TokenVerifier, issuer: LocalIssuer, claim: str, value: Any
) -> None:
    payload = claims(**({"email": "root@kanzlei.example"} | {claim: value}))
    principals = verifier.caller(f"Bearer {signed(issuer, payload)}").principals
    assert principals - {"group:ki-admins-not"} == {"user:anna-1", "role:authenticated"}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        # Some issuers send a single group as a string. It is one name, never a list to be split.
        ("Nord-Team", {"group:nord-team"}),
        ("ki-admins", {"group:ki-admins", "role:admin"}),
        ("nord-team ki-admins", {"group:nord-team ki-admins"}),
        ("nord-team,ki-admins", {"group:nord-team,ki-admins"}),
        ('["ki-admins"]', {'group:["ki-admins"]'}),
        ("", set()),
        ("   ", set()),
        ("role:admin", {"group:role:admin"}),
        (7, set()),
        (1.5, set()),
        (True, set()),
        (None, set()),
        ({"ki-admins": ["ki-admins"]}, set()),
        ([], set()),
        ([7, 1.5, True, None, {"name": "ki-admins"}, ["ki-admins"], "nord-team"], {"group:nord-team"}),
        ([[[["ki-admins"]]]], set()),
        (["", " ", "\x00", "a\ud800", "x" * 2000, "src.1.partners"], set()),
        (["nord-team", "NORD-TEAM", " nord-team "], {"group:nord-team"}),
    ],
    ids=repr,
)
def test_only_names_in_the_groups_claim_are_groups(
    verifier: TokenVerifier, issuer: LocalIssuer, groups: Any, expected: set[str]
) -> None:
    token = _sign(issuer, claims(groups=groups))
    assert verifier.caller(f"Bearer {token}").principals == {"user:anna-1", "role:authenticated"} | expected


def test_forged_tokens_are_refused(
    verifier: TokenVerifier, issuer: LocalIssuer, foreign_key: rsa.RSAPrivateKey
) -> None:
    good = signed(issuer, claims())
    header, payload, signature = good.split(".")
    public = issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    confused = _hmac(public, {"alg": "HS256", "kid": issuer.key_id}, claims())
    curve = ec.generate_private_key(ec.SECP256R1())
    forged = {
        "another payload": ".".join([header, unsigned({}, claims(sub="root")).split(".")[1], signature]),
        "half a signature": good[:-20],
        "no signature": f"{header}.{payload}.",
        "alg none": unsigned({"alg": "none", "kid": issuer.key_id}, claims()),
        "alg None": unsigned({"alg": "None", "kid": issuer.key_id}, claims()),
        "alg missing": unsigned({"kid": issuer.key_id}, claims()),
        "alg of another type": unsigned({"alg": ["RS256"], "kid": issuer.key_id}, claims()),
        "HMAC with the public key": confused,
        "a foreign key under our name": signed(issuer, claims(), key=foreign_key),
        "an algorithm not configured": signed(issuer, claims(), alg="RS512"),
        "a curve under our name": signed(issuer, claims(), key=curve, alg="ES256"),
        "no key name": jwt.encode(claims(), issuer.key, algorithm=ALGORITHM),
        "an unknown key name": signed(issuer, claims(), kid="other"),
        "a key name of another type": unsigned({"alg": "RS256", "kid": {"a": 1}}, claims()),
        "a key in the header": signed(issuer, claims(), key=foreign_key, jwk=_jwk(foreign_key), kid="own"),
        "a key address in the header": signed(issuer, claims(), key=foreign_key, jku="https://evil.example", kid="own"),
        "a critical header nobody knows": unsigned({"alg": "RS256", "kid": issuer.key_id, "crit": ["x"]}, claims()),
        "no JSON": "a.b.c",
        "two parts": "a.b",
        "dots": "...",
        "deep header": ".".join([base64.urlsafe_b64encode(b"[" * 9000).decode(), payload, signature]),
        "oversized": good + "A" * 20_000,
        "a list as payload": _sign(issuer, [claims()]),
    }
    for what, token in forged.items():
        with pytest.raises(UnauthenticatedError, match=r"^A valid bearer token is required\.$"):
            pytest.fail(f"{what}: {verifier.caller(f'Bearer {token}')}")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", "{token}", "Token {token}", "Bearer {token}, Bearer {token}",
     "Bearer {token} x", "Bearer,{token}", "Bearer{token}"],
)  # fmt: skip
def test_only_a_bearer_header_counts(verifier: TokenVerifier, issuer: LocalIssuer, header: str | None) -> None:
    given = None if header is None else header.replace("{token}", signed(issuer, claims()))
    with pytest.raises(UnauthenticatedError):
        verifier.caller(given)


def test_the_leeway_is_the_configured_one(verifier: TokenVerifier, issuer: LocalIssuer, identity: Identity) -> None:
    just = int(time.time() - identity.leeway_s + 10)
    assert verifier.caller(f"Bearer {signed(issuer, claims(exp=just))}").subject == "anna-1"


def test_a_key_that_says_it_is_for_another_algorithm_or_use_is_not_used(
    verifier: TokenVerifier, issuer: LocalIssuer, published: Published
) -> None:
    for change in ({"alg": "RS512"}, {"use": "enc"}, {"kty": "oct", "k": "c2VjcmV0"}):
        published.document = {"keys": [issuer.jwks()["keys"][0] | change]}
        published.now += FRESH_S + 1
        with pytest.raises(UnauthenticatedError):
            verifier.caller(f"Bearer {signed(issuer, claims())}")


def test_keys_are_fetched_once_and_again_for_a_new_name_but_not_for_every_invented_one(
    verifier: TokenVerifier, issuer: LocalIssuer, published: Published, foreign_key: rsa.RSAPrivateKey
) -> None:
    for _ in range(3):
        verifier.caller(f"Bearer {signed(issuer, claims())}")
    assert published.fetches == 1
    for number in range(20):
        with pytest.raises(UnauthenticatedError):
            verifier.caller(f"Bearer {signed(issuer, claims(), kid=f'invented-{number}')}")
    assert published.fetches == 1
    rotated = LocalIssuer(ISSUER, foreign_key)
    published.document = {"keys": [*issuer.jwks()["keys"], *rotated.jwks()["keys"]]}
    published.now += SPACING_S
    assert verifier.caller(f"Bearer {rotated.issue('bruno-1')}").subject == "bruno-1"
    assert published.fetches == 2


def test_an_issuer_that_is_away_is_an_engine_that_is_away(
    verifier: TokenVerifier, issuer: LocalIssuer, published: Published
) -> None:
    token = f"Bearer {signed(issuer, claims())}"
    published.error = OSError("connection refused")
    for _ in range(3):
        with pytest.raises(EngineUnavailableError):
            verifier.caller(token)
    assert published.fetches == 1
    published.error = None
    published.now += 1.1
    assert verifier.caller(token).subject == "anna-1"


def test_known_keys_outlive_a_short_outage_and_not_a_long_one(
    verifier: TokenVerifier, issuer: LocalIssuer, published: Published
) -> None:
    token = f"Bearer {signed(issuer, claims())}"
    verifier.caller(token)
    published.error = OSError("connection refused")
    published.now += FRESH_S + 1
    assert verifier.caller(token).subject == "anna-1"
    published.now += USABLE_S
    with pytest.raises(EngineUnavailableError):
        verifier.caller(token)


@pytest.mark.parametrize("document", [b"", b"[]", b'{"keys": 1}', b"<html>", b"[" * 9000, b"\xff\xfe"])
def test_a_document_that_is_no_key_set_is_an_outage(
    verifier: TokenVerifier, issuer: LocalIssuer, published: Published, document: bytes
) -> None:
    published.document = document
    with pytest.raises(EngineUnavailableError):
        verifier.caller(f"Bearer {signed(issuer, claims())}")


def test_odd_entries_of_a_key_set_are_passed_over(issuer: LocalIssuer) -> None:
    key = issuer.jwks()["keys"][0]
    odd = [None, 7, {}, {"kty": "RSA"}, {**key, "kid": 7}, {**key, "kid": ["a"]}, key]
    assert signing_keys(json.dumps({"keys": odd}).encode()) == {issuer.key_id: key}


@pytest.fixture
def server() -> Iterator[Any]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, location = self.server.answer  # type: ignore[attr-defined]
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def test_the_key_set_is_fetched_as_it_is(server: Any) -> None:
    fetch = fetch_from(f"http://127.0.0.1:{server.server_port}/keys")
    server.answer = (200, b'{"keys": []}', None)
    assert fetch() == b'{"keys": []}'
    for answer in ((500, b"", None), (302, b"", "/elsewhere"), (200, b"x" * 300_000, None)):
        server.answer = answer
        with pytest.raises(ValueError):
            fetch()


def _jwk(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    return dict(LocalIssuer(ISSUER, key).jwks()["keys"][0])


def _sign(issuer: LocalIssuer, payload: Any) -> str:
    head = unsigned({"alg": ALGORITHM, "kid": issuer.key_id}, payload).rpartition(".")[0]
    algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
    signature = algorithm.sign(head.encode(), issuer.key)
    return f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _hmac(secret: bytes, header: dict[str, Any], payload: dict[str, Any]) -> str:
    import hashlib
    import hmac

    head = unsigned(header, payload).rpartition(".")[0]
    digest = hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
