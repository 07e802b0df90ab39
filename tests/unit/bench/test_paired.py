import pytest

from bench.paired import Pair, compared, timed_pairs


def test_both_arms_run_once_an_item_and_round_and_take_turns_at_being_first() -> None:
    calls: list[str] = []
    pairs = timed_pairs(2, lambda n: calls.append(f"ours{n}"), lambda n: calls.append(f"raw{n}"), rounds=2)
    assert calls == ["ours0", "raw0", "raw1", "ours1", "raw0", "ours0", "ours1", "raw1"]
    assert len(pairs) == 4


def test_the_ratio_is_that_of_the_medians_and_lies_in_its_interval() -> None:
    comparison = compared([Pair(0.012 + n / 10000, 0.010 + n / 10000) for n in range(21)])
    assert comparison.ours_p50_ms == pytest.approx(13.0)
    assert comparison.raw_p50_ms == pytest.approx(11.0)
    assert comparison.ratio == pytest.approx(13 / 11)
    assert comparison.ratio_low <= comparison.ratio <= comparison.ratio_high
