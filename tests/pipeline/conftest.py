"""The pipeline's fixtures."""

import os

from tests.ingest.conftest import converter, engine, settings, world  # noqa: F401

# It needs a venv of its own, which `make test-emulator` makes.
collect_ignore = [] if os.environ.get("KI_TEST_EMULATOR") else ["test_emulator.py"]
