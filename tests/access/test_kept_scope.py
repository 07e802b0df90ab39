"""A kept scope equals a cold one and the reference, whatever happens in between, and each safeguard is needed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine
from shared.settings import load_settings
from shared.types import AclMode
from tests.access.walk import ScopeDiffersError, Walk


@pytest.fixture
def walked_engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    settings = load_settings({"KI_DATABASE__URL": make_database()}).database
    made = make_engine(settings)
    yield made
    made.dispose()


@pytest.mark.parametrize("mode", list(AclMode))
def test_a_kept_scope_equals_a_cold_one_and_the_reference_after_every_change(
    walked_engine: sa.Engine, mode: AclMode
) -> None:
    walk = Walk(walked_engine, mode, random.Random(20261201))
    walk.run(200)
    # A walk on which everything was compiled cold proves nothing.
    assert walk.counts["patched to effect"] > 100, walk.counts
    assert walk.counts["cold"] < walk.counts["scopes"] / 2, walk.counts
    assert walk.counts["told something"] > walk.counts["compared"] * 0.6, walk.counts
    for event in ("late commit", "late rollback", "pruned", "inside", "truncate", "delete_source", "delete_project"):
        assert walk.counts[event], (event, walk.counts)
