"""What the product needs from AWS: clients, credentials that stay fresh, and database passwords.

Imported and called only where the settings ask for AWS; boto3 takes a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import sqlalchemy as sa
from botocore.config import Config

from shared.errors import MisconfiguredError
from shared.index.client import AwsCredentials

_CONNECT_TIMEOUT_S = 3
_READ_TIMEOUT_S = 20
_POSTGRES_PORT = 5432


def client(service: str, *, region: str | None = None) -> Any:
    """Return a client that gives up in seconds, so that a request is answered while somebody waits for it."""
    config = Config(  # type: ignore[no-untyped-call]  # botocore has no annotations
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"total_max_attempts": 3, "mode": "standard"},
        signature_version="s3v4" if service == "s3" else None,
    )
    return boto3.client(service, region_name=region, config=config)  # type: ignore[no-untyped-call]  # nor has boto3


def credentials() -> Callable[[], AwsCredentials]:
    """Return what gives the credentials of the moment; they are refreshed before they expire."""
    found = boto3.session.Session().get_credentials()  # type: ignore[no-untyped-call]
    if found is None:
        raise MisconfiguredError("opensearch.auth is sigv4, but this process has no AWS credentials")

    def now() -> AwsCredentials:
        frozen = found.get_frozen_credentials()
        return AwsCredentials(frozen.access_key, frozen.secret_key, frozen.token)

    return now


def database_password(url: str) -> Callable[[], str]:
    """Return what gives a fresh IAM token for each new connection to the database at `url`."""
    address = sa.make_url(url)
    if not address.host or not address.username:
        raise MisconfiguredError("database.iam_auth is on: database.url must name a host and a user")
    rds = client("rds")

    def token() -> str:
        return str(
            rds.generate_db_auth_token(
                DBHostname=address.host, Port=address.port or _POSTGRES_PORT, DBUsername=address.username
            )
        )

    return token
