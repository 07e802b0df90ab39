"""An index of a test's own on the session's node, and a small firm in a database of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine
from shared.index.client import IndexClient, connect
from shared.index.ensure import ensure_index
from shared.settings import Settings, load_settings
from tests.index.firm import Firm
from tests.stub_embedding import StubEmbedding

WIDTH = 16


@pytest.fixture
def settings(opensearch_url: str) -> Settings:
    """Settings for an index that no other test knows."""
    return load_settings(
        {
            "KI_OPENSEARCH__URL": opensearch_url,
            "KI_RETRIEVAL__INDEX_NAME": f"t{uuid4().hex}",
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(WIDTH),
        }
    )


@pytest.fixture
def embedding() -> StubEmbedding:
    return StubEmbedding(dimensions=WIDTH)


@pytest.fixture
def client(settings: Settings) -> Iterator[IndexClient]:
    """A client; every index of the test is removed afterwards."""
    client = connect(settings.opensearch)
    yield client
    client.request("DELETE", f"/{settings.retrieval.index_name}-*?ignore_unavailable=true")
    client.close()


@pytest.fixture
def alias(client: IndexClient, settings: Settings, embedding: StubEmbedding) -> str:
    """The alias of a new, empty index."""
    ensure_index(client, settings.retrieval, embedding_signature=embedding.signature)
    return settings.retrieval.index_name


@pytest.fixture
def engine(database_url: str, settings: Settings) -> Iterator[sa.Engine]:
    engine = make_engine(settings.database.model_copy(update={"url": database_url}))
    yield engine
    engine.dispose()


@pytest.fixture
def firm(engine: sa.Engine) -> Firm:
    return Firm(engine)
