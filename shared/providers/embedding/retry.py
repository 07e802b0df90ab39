"""Calls that are tried again while there is time."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from shared.errors import ProviderUnavailableError

T = TypeVar("T")

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0


class TryAgainError(Exception):
    """One attempt failed in a way that may pass."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a call may take in all, and how it waits between attempts."""

    deadline_s: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)

    def run(self, what: str, attempt: Callable[[float], T]) -> T:
        """Return what `attempt` returns; it is handed the seconds that are left and raises `TryAgainError` to go on.

        Pauses double and are drawn from their upper half; a provider's Retry-After is a lower bound. When the next
        attempt would start after the deadline, raises `ProviderUnavailableError` with the last reason.
        """
        end = self.clock() + self.deadline_s
        tries = 0
        while True:
            tries += 1
            try:
                return attempt(max(end - self.clock(), 0.001))
            except TryAgainError as error:
                pause = min(FIRST_PAUSE_S * 2 ** (tries - 1), LONGEST_PAUSE_S) * (0.5 + 0.5 * self.jitter())
                pause = max(pause, error.retry_after_s or 0.0)
                if self.clock() + pause >= end:
                    raise ProviderUnavailableError(
                        f"{what}: {error.reason}; gave up after {tries} tries in {self.deadline_s:g} s"
                    ) from error
            self.sleep(pause)


def retry_after_s(header: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds a Retry-After header asks for (a number or an HTTP date), or None if it says nothing."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        pass
    else:
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0)
