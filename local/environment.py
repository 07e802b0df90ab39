"""The settings of the product on this machine, as the environment variables that production would set."""

from __future__ import annotations

import json
import secrets

from local.issuer import ADMIN_GROUP, AUDIENCE, JWKS_PATH, SYNC_GROUP
from local.paths import Layout
from local.ports import LOOPBACK
from local.postgres import PostgresCluster
from local.private_file import write_private
from local.state import StackState

MODEL = "multilingual-e5-small"
MODEL_DIMENSIONS = 384


def issuer_url(state: StackState) -> str:
    """Return the local issuer's address, which is also its name in tokens."""
    return f"http://{LOOPBACK}:{state.ports.issuer}"


def http_url(state: StackState) -> str:
    """Return the address of the HTTP API."""
    return f"http://{LOOPBACK}:{state.ports.http}"


def opensearch_url(state: StackState) -> str:
    """Return the address of the OpenSearch node."""
    return f"http://{LOOPBACK}:{state.ports.opensearch}"


def cluster_of(layout: Layout, state: StackState) -> PostgresCluster:
    """Return the stack's PostgreSQL cluster."""
    return PostgresCluster(layout.postgres, layout.log("postgres"), state.ports.postgres, throwaway=layout.throwaway)


def environment(layout: Layout, state: StackState) -> dict[str, str]:
    """Return the environment variables for `shared.settings.load_settings`, complete for this stack.

    The database must have been made, because its password is read; the audit key is made if it is missing.
    """
    if not layout.audit_key.exists():
        write_private(layout.audit_key, secrets.token_bytes(32).hex().encode())
    layout.storage.mkdir(parents=True, exist_ok=True)
    layout.cache.mkdir(parents=True, exist_ok=True)
    return {
        "KI_DATABASE__URL": cluster_of(layout, state).url(),
        "KI_OPENSEARCH__URL": opensearch_url(state),
        "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(MODEL_DIMENSIONS),
        "KI_EMBEDDING__PROVIDER": "local_e5",
        "KI_EMBEDDING__MODEL_ID": MODEL,
        "KI_EMBEDDING__CACHE_PATH": str(layout.cache / "embeddings.sqlite"),
        "KI_STORAGE__KIND": "file",
        "KI_STORAGE__ROOT": str(layout.storage),
        "KI_IDENTITY__ISSUER": issuer_url(state),
        "KI_IDENTITY__AUDIENCE": AUDIENCE,
        "KI_IDENTITY__JWKS_URL": issuer_url(state) + JWKS_PATH,
        "KI_IDENTITY__ADMIN_GROUPS": json.dumps([ADMIN_GROUP]),
        "KI_IDENTITY__SYNC_GROUPS": json.dumps([SYNC_GROUP]),
        "KI_AUDIT__HMAC_KEY_FILE": str(layout.audit_key),
    }
