"""Fixtures that every test may ask for."""

from tests.engines import (  # noqa: F401
    database_url,
    empty_database,
    engines_folder,
    make_database,
    opensearch_node,
    opensearch_url,
    postgres_cluster,
    postgres_url,
)
