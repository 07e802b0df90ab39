"""Fixtures that every test may ask for."""

from typing import Any

import sqlalchemy as sa

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


@sa.event.listens_for(sa.Engine, "do_connect")
def without_tls(_dialect: Any, _record: Any, _args: Any, parameters: dict[str, Any]) -> None:
    """Spare each connection to a throwaway server the 20 ms that a TLS context takes."""
    parameters.setdefault("ssl_context", False)
