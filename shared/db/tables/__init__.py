"""The tables, by aggregate. Importing this package knows them all; `metadata` is what migrations compare with."""

from shared.db.tables import access, audit, catalog, content, ingest, matters, sources, structure
from shared.db.tables.base import metadata

__all__ = ["access", "audit", "catalog", "content", "ingest", "matters", "metadata", "sources", "structure"]
