"""Tokens of the local issuer are verified through its published documents, and only while they are right."""

from __future__ import annotations

import json
import stat
import threading
import urllib.request

import jwt
import pytest

from local.http_server import LoopbackServer
from local.issuer import ADMIN_GROUP, AUDIENCE, LocalIssuer, ensure_signing_key, subject_of


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    return tmp_path_factory.mktemp("keys") / "below" / "issuer.pem"


@pytest.fixture(scope="module")
def issuer(key_file):
    key = ensure_signing_key(key_file)
    with LoopbackServer(0, lambda request: LocalIssuer(server.url, key).answer(request)) as server:
        issuer = LocalIssuer(server.url, key)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


def verify(issuer, token, **kwargs):
    """Verify as a stranger does: everything is read from the issuer's description."""
    described = fetch(f"{issuer.url}/.well-known/openid-configuration")
    key = jwt.PyJWKClient(described["jwks_uri"]).get_signing_key_from_jwt(token)
    return jwt.decode(token, key, algorithms=["RS256"], issuer=described["issuer"], **{"audience": AUDIENCE, **kwargs})


def test_a_token_is_verified_through_the_published_key_set(issuer):
    token = issuer.issue("s-1", email="anna@kanzlei.example", groups=["m-17", "bank"], ttl_s=60)
    claims = verify(issuer, token)
    assert (claims["sub"], claims["email"], claims["email_verified"]) == ("s-1", "anna@kanzlei.example", True)
    assert claims["groups"] == ["m-17", "bank"]
    assert claims["exp"] - claims["iat"] == 60


def test_an_administrator_is_a_member_of_the_admin_group(issuer):
    assert verify(issuer, issuer.issue("s", groups=["a"], admin=True))["groups"] == ["a", ADMIN_GROUP]
    assert verify(issuer, issuer.issue("s", groups=["a"]))["groups"] == ["a"]


def test_an_address_can_be_stated_as_not_verified(issuer):
    claims = verify(issuer, issuer.issue("s", email="a@kanzlei.example", email_verified=False))
    assert claims["email_verified"] is False


def test_an_expired_token_is_refused(issuer):
    with pytest.raises(jwt.ExpiredSignatureError):
        verify(issuer, issuer.issue("s", ttl_s=60, issued_at=1_700_000_000))


def test_a_token_for_another_audience_is_refused(issuer):
    with pytest.raises(jwt.InvalidAudienceError):
        verify(issuer, issuer.issue("s", audience="something-else"))


def test_a_token_of_another_key_is_refused(issuer, tmp_path):
    foreign = LocalIssuer(issuer.url, ensure_signing_key(tmp_path / "foreign.pem"))
    with pytest.raises(jwt.PyJWKClientError):
        verify(issuer, foreign.issue("s"))


def test_the_key_set_holds_nothing_private(issuer):
    (key,) = fetch(issuer.jwks_url)["keys"]
    assert set(key) == {"kty", "n", "e", "kid", "use", "alg"}


def test_the_key_is_made_once_and_is_for_its_owner_only(issuer, key_file):
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert ensure_signing_key(key_file).private_numbers() == issuer.key.private_numbers()


def test_nothing_else_is_published(issuer):
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        fetch(f"{issuer.url}/issuer.pem")
    refused.value.close()


def test_a_subject_is_stable_and_does_not_show_the_address():
    assert subject_of("Anna@Kanzlei.example") == subject_of(" anna@kanzlei.example")
    assert "anna" not in subject_of("anna@kanzlei.example")
