"""The pipeline's fixtures."""

from tests.ingest.conftest import converter, engine, settings, world  # noqa: F401
