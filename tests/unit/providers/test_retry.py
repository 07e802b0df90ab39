"""How long and how often a provider is asked again."""

from datetime import UTC, datetime

import pytest

from shared.errors import ProviderUnavailableError
from shared.providers.embedding.retry import Retry, TryAgainError, retry_after_s


def failing(times, *, retry_after_s=None):
    left = [times]

    def attempt(left_s):
        if left[0]:
            left[0] -= 1
            raise TryAgainError("HTTP 429", retry_after_s=retry_after_s)
        return "done"

    return attempt


def retry(fake_time, *, deadline_s=20.0, jitter=1.0):
    return Retry(deadline_s=deadline_s, clock=fake_time.clock, sleep=fake_time.sleep, jitter=lambda: jitter)


def test_a_call_that_recovers_is_answered_after_doubling_pauses(fake_time):
    assert retry(fake_time).run("call", failing(4)) == "done"
    assert fake_time.slept == [0.25, 0.5, 1.0, 2.0]


def test_jitter_draws_the_pause_from_its_upper_half(fake_time):
    retry(fake_time, jitter=0.0).run("call", failing(2))
    assert fake_time.slept == [0.125, 0.25]


def test_a_pause_is_never_shorter_than_the_provider_asks(fake_time):
    retry(fake_time).run("call", failing(1, retry_after_s=3.0))
    assert fake_time.slept == [3.0]


def test_a_provider_that_asks_to_wait_past_the_deadline_is_given_up_at_once(fake_time):
    with pytest.raises(ProviderUnavailableError, match="call: HTTP 429; gave up after 1 tries in 20 s"):
        retry(fake_time).run("call", failing(99, retry_after_s=60.0))
    assert fake_time.slept == []


def test_no_attempt_starts_after_the_deadline(fake_time):
    with pytest.raises(ProviderUnavailableError):
        retry(fake_time, deadline_s=5.0).run("call", failing(99))
    assert sum(fake_time.slept) == 3.75  # 0.25 + 0.5 + 1 + 2; another 4 would end past 5


def test_an_attempt_is_told_how_much_time_is_left(fake_time):
    seen = []

    def attempt(left_s):
        seen.append(left_s)
        if len(seen) < 3:
            raise TryAgainError("busy")

    retry(fake_time, deadline_s=10.0).run("call", attempt)
    assert seen == [10.0, 9.75, 9.25]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Tue, 01 Dec 2026 12:00:30 GMT", 30.0),
        ("Tue, 01 Dec 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header, expected):
    assert retry_after_s(header, now=datetime(2026, 12, 1, 12, 0, tzinfo=UTC)) == expected
