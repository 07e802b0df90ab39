"""A bounded wait on a condition."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, timeout_s: float, interval_s: float = 0.05) -> bool:
    """Return True as soon as `condition` holds, False if it never did within `timeout_s`.

    The condition is asked at least once, and once more at the end of the time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if condition():
            return True
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(interval_s, left_s))
