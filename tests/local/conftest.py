"""Tests of the command line run in a process that others have used as a Lambda function before."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def command_line_process() -> Iterator[None]:
    """Take away what a function's first request adds to the process: its log lines on standard output."""
    core = logging.getLogger("shared")
    handlers, level = list(core.handlers), core.level
    for handler in handlers:
        core.removeHandler(handler)
    core.setLevel(logging.NOTSET)
    yield
    for handler in handlers:
        core.addHandler(handler)
    core.setLevel(level)
