"""A firm in a database of the test's own, an index of its own on the session's node, and the service over both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.access.audit import AuditHasher
from shared.access.service import AccessService
from shared.db.engine import make_engine
from shared.index.client import IndexClient, connect
from shared.index.ensure import ensure_index
from shared.search.request import parse_filter, parse_search
from shared.search.service import SearchService
from shared.settings import Settings, load_settings
from tests.stub_embedding import StubEmbedding
from tests.world import World, caller

WIDTH = 32
KEY = b"a key for tests only"


@pytest.fixture(scope="session")
def index_settings(opensearch_url: str) -> Iterator[Settings]:
    """One index for all tests of search: making one costs more than most tests. Each leaves it empty."""
    settings = load_settings(
        {
            "KI_OPENSEARCH__URL": opensearch_url,
            "KI_RETRIEVAL__INDEX_NAME": f"t{uuid4().hex}",
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(WIDTH),
        }
    )
    client = connect(settings.opensearch)
    signature = StubEmbedding(dimensions=WIDTH).signature
    ensure_index(client, settings.retrieval, embedding_signature=signature)
    yield settings
    client.request("DELETE", f"/{settings.retrieval.index_name}-*?ignore_unavailable=true")
    client.close()


@pytest.fixture(scope="session")
def search_database(make_database: Callable[[], str]) -> Iterator[tuple[str, sa.Engine, frozenset[str]]]:
    """One database for all tests of search, for the same reason: its address, a way in, and what migrations filled."""
    url = make_database()
    engine = sa.create_engine(url)
    yield url, engine, _filled_tables(engine)
    engine.dispose()


@pytest.fixture
def search_database_url(search_database: tuple[str, sa.Engine, frozenset[str]]) -> Iterator[str]:
    """The address of a migrated database without rows; it is emptied afterwards, so a test undoes what it alters."""
    url, engine, kept = search_database
    yield url
    tables = _filled_tables(engine) - kept
    if tables:
        with engine.begin() as connection:
            # Without triggers: emptying is no change of access that anybody has to learn of.
            connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
            connection.execute(sa.text(f"TRUNCATE {', '.join(sorted(tables))} CASCADE"))


def _filled_tables(engine: sa.Engine) -> frozenset[str]:
    """Return the tables that hold, or held, rows."""
    filled = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
        "AND pg_relation_size(oid) > 0"
    )
    with engine.connect() as connection:
        return frozenset(connection.execute(filled).scalars())


@pytest.fixture
def settings(index_settings: Settings, search_database_url: str) -> Settings:
    database = index_settings.database.model_copy(update={"url": search_database_url})
    return index_settings.model_copy(update={"database": database})


@pytest.fixture
def embedding() -> StubEmbedding:
    return StubEmbedding(dimensions=WIDTH)


@pytest.fixture
def client(settings: Settings) -> Iterator[IndexClient]:
    """A client of an index without rows."""
    client = connect(settings.opensearch)
    index = settings.retrieval.index_name
    assert client.request("GET", f"/{index}/_count")["count"] == 0
    yield client
    client.on_request = None
    client.request("POST", f"/{index}/_delete_by_query?refresh=true", {"query": {"match_all": {}}})
    # Deleted rows count in the statistics that scores are made of until they are merged away.
    client.request("POST", f"/{index}/_forcemerge?only_expunge_deletes=true")
    client.close()


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    engine = make_engine(settings.database)
    yield engine
    engine.dispose()


@pytest.fixture
def world(engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings) -> World:
    return World(engine, client, embedding, settings)


@pytest.fixture
def service_with(
    engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings
) -> Callable[..., SearchService]:
    """Makes a service with some retrieval settings changed."""

    def make(**changes: Any) -> SearchService:
        retrieval = settings.retrieval.model_copy(update=changes)
        changed = settings.model_copy(update={"retrieval": retrieval})
        access = AccessService(engine, settings.security)
        return SearchService(engine, access, client, embedding, changed, AuditHasher(KEY))

    return make


@pytest.fixture
def service(service_with: Callable[..., SearchService]) -> SearchService:
    return service_with()


@pytest.fixture
def search(service: SearchService, settings: Settings) -> Callable[..., dict[str, Any]]:
    """Searches as someone of the staff."""

    def run(query: str, *, who: Any = None, using: SearchService | None = None, **body: Any) -> dict[str, Any]:
        request = parse_search({"query": query, **body}, settings.retrieval)
        return (using or service).search(who or caller(), request)

    return run


@pytest.fixture
def listed(service: SearchService) -> Callable[..., dict[str, Any]]:
    """Lists by metadata as someone of the staff."""

    def run(*, who: Any = None, using: SearchService | None = None, **body: Any) -> dict[str, Any]:
        return (using or service).filter(who or caller(), parse_filter(body))

    return run
