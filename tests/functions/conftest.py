"""The firm behind the API, once a session, and the API itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from local.issuer import ADMIN_GROUP, AUDIENCE, SYNC_GROUP, LocalIssuer
from shared.index.ensure import ensure_index
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.settings import Settings, load_settings
from tests.functions.api import Api, running_issuer
from tests.functions.firm import PERSONAS, Firm, found_firm
from tests.stub_embedding import StubEmbedding

WIDTH = 32


@pytest.fixture(scope="session")
def issuer() -> Iterator[LocalIssuer]:
    with running_issuer() as running:
        yield running


def settings_for(issuer: LocalIssuer, *, database_url: str, opensearch_url: str, folder: Path, **more: str) -> Settings:
    """Settings such as `ki up` makes them."""
    key = folder / "audit.key"
    key.write_bytes(b"0123456789abcdef0123456789abcdef")
    return load_settings(
        {
            "KI_DATABASE__URL": database_url,
            "KI_OPENSEARCH__URL": opensearch_url,
            "KI_RETRIEVAL__INDEX_NAME": f"f{uuid4().hex}",
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(WIDTH),
            "KI_STORAGE__KIND": "file",
            "KI_STORAGE__ROOT": str(folder / "store"),
            "KI_IDENTITY__ISSUER": issuer.url,
            "KI_IDENTITY__AUDIENCE": AUDIENCE,
            "KI_IDENTITY__JWKS_URL": issuer.jwks_url,
            "KI_IDENTITY__ADMIN_GROUPS": f'["{ADMIN_GROUP}"]',
            "KI_IDENTITY__SYNC_GROUPS": f'["{SYNC_GROUP}"]',
            "KI_AUDIT__HMAC_KEY_FILE": str(key),
            **more,
        }
    )


@pytest.fixture(scope="session")
def firm_parts(
    issuer: LocalIssuer,
    make_database: Callable[[], str],
    opensearch_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Services]:
    settings = settings_for(
        issuer,
        database_url=make_database(),
        opensearch_url=opensearch_url,
        folder=tmp_path_factory.mktemp("firm"),
    )
    parts = build(settings, embedding=StubEmbedding(dimensions=WIDTH))
    ensure_index(parts.index, settings.retrieval, embedding_signature=parts.embedding.signature)
    yield parts
    parts.index.request("DELETE", f"/{settings.retrieval.index_name}-*?ignore_unavailable=true")
    parts.close()


@pytest.fixture(scope="session")
def founded(firm_parts: Services) -> Firm:
    return found_firm(firm_parts)


@pytest.fixture
def firm(founded: Firm) -> Iterator[Firm]:
    """The firm, with its services in force for this process."""
    bootstrap.install(founded.parts)
    yield founded
    bootstrap.forget()


@pytest.fixture(scope="session")
def api(issuer: LocalIssuer) -> Api:
    return Api(issuer)


@pytest.fixture(scope="session")
def token_of(api: Api) -> Callable[[str], str]:
    """The token of a persona by name."""

    def token(persona: str) -> str:
        email, groups, admin = PERSONAS[persona]
        return api.token(email, *groups, admin=admin)

    return token
