from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from local import postgres
from local.postgres import PostgresCluster
from shared.db.engine import make_engine
from shared.settings import load_settings


@pytest.fixture(scope="module")
def engine(make_database: Callable[[], str], postgres_cluster: PostgresCluster) -> Iterator[sa.Engine]:
    """The product's own engine on a migrated database of this module."""
    url = make_database()
    made = make_engine(load_settings({"KI_DATABASE__URL": url}).database)
    yield made
    made.dispose()
    postgres.execute(postgres_cluster, f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that is rolled back: every test starts with an empty world."""
    with engine.connect() as connection:
        yield connection
        connection.rollback()
