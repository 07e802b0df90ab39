from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from shared.runtime.memory import settle


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_lives_as_long_as_the_process_is_not_looked_at_again() -> None:
    lasting = [{"one": number} for number in range(1000)]
    settle()
    assert gc.get_freeze_count() >= len(lasting)
    assert not any(lasting is one for one in gc.get_objects())


def test_rings_that_a_request_leaves_are_still_collected() -> None:
    settle()
    ring: list[object] = []
    ring.append(ring)
    del ring
    assert gc.isenabled()
    assert gc.collect() >= 1
