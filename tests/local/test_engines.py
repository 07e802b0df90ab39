"""The engines the tests run on are the real ones, with what the product needs."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from local import opensearch, postgres
from local.opensearch import OpenSearchNode
from local.postgres import PostgresCluster


def test_postgres_is_version_18_and_takes_sqlalchemy_connections(postgres_url):
    engine = sa.create_engine(postgres_url)
    with engine.connect() as connection:
        version = connection.execute(sa.text("SHOW server_version_num")).scalar_one()
        lowered = connection.execute(sa.text("SELECT lower('ÄÖÜ')")).scalar_one()
    engine.dispose()
    assert (int(version) // 10000, lowered) == (18, "äöü")


def test_postgres_refuses_a_wrong_password(postgres_cluster: PostgresCluster):
    wrong = postgres_cluster.url().replace(postgres_cluster.password_file.read_text().strip(), "not-the-password")
    engine = sa.create_engine(wrong)
    with pytest.raises(sa.exc.ProgrammingError, match="28P01"):
        engine.connect()
    engine.dispose()


def test_starting_a_running_cluster_keeps_the_very_same_process(postgres_cluster: PostgresCluster):
    before = postgres.find(postgres_cluster)
    assert before is not None
    assert postgres.start(postgres_cluster) == before


def test_opensearch_accepts_a_shingle_width_above_the_default(opensearch_node: OpenSearchNode):
    analysis = {
        "filter": {"wide": {"type": "shingle", "min_shingle_size": 2, "max_shingle_size": 8}},
        "analyzer": {"wide": {"type": "custom", "tokenizer": "standard", "filter": ["wide"]}},
    }
    narrow, _ = opensearch.call(opensearch_node, "PUT", "/shingles-narrow", {"settings": {"analysis": analysis}})
    settings = {"index.max_shingle_diff": 8, "analysis": analysis}
    wide, _ = opensearch.call(opensearch_node, "PUT", "/shingles-wide", {"settings": settings})
    opensearch.call(opensearch_node, "DELETE", "/shingles-wide")
    assert (narrow, wide) == (400, 200)


def test_opensearch_makes_no_index_by_itself(opensearch_node: OpenSearchNode):
    status, answer = opensearch.call(opensearch_node, "PUT", "/never-made/_doc/1", {"a": 1})
    assert (status, answer["error"]["type"]) == (404, "index_not_found_exception")


def test_each_made_database_is_migrated_and_its_own(make_database):
    counts = []
    for url in (make_database(), make_database()):
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE mine (n int)"))
            counts.append(connection.execute(sa.text("SELECT count(*) FROM alembic_version")).scalar_one())
        engine.dispose()
    assert counts == [1, 1]


def test_a_database_made_for_migrations_is_empty(empty_database):
    engine = sa.create_engine(empty_database())
    with engine.connect() as connection:
        tables = connection.execute(sa.text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all()
    engine.dispose()
    assert tables == []
