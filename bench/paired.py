"""Two arms timed side by side in one run: interleaved ABBA, compared by ratio.

On a shared machine a timing alone is noise; the ratio of two arms that ran in turns is not. The interval of the ratio
is a percentile bootstrap over the pairs (Efron and Tibshirani 1993).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Pair:
    """One item timed in both arms, in seconds."""

    ours_s: float
    raw_s: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the pairs say; times in milliseconds, `ratio` is p50 over p50 with its 95 % interval."""

    pairs: int
    ours_p50_ms: float
    ours_p95_ms: float
    raw_p50_ms: float
    raw_p95_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float


def timed_pairs(items: int, ours: Callable[[int], None], raw: Callable[[int], None], *, rounds: int) -> list[Pair]:
    """Return a pair for every item and round; each round times an item ours-raw or raw-ours in turns."""
    pairs: list[Pair] = []
    for round_number in range(rounds):
        for item in range(items):
            first_ours = (round_number + item) % 2 == 0
            first, second = (ours, raw) if first_ours else (raw, ours)
            one, other = _timed(first, item), _timed(second, item)
            pairs.append(Pair(one, other) if first_ours else Pair(other, one))
    return pairs


def compared(pairs: Sequence[Pair], *, seed: int = 0) -> Comparison:
    """Return the comparison of at least twenty pairs."""
    ours, raw = [pair.ours_s * 1000 for pair in pairs], [pair.raw_s * 1000 for pair in pairs]
    chance = random.Random(seed)
    ratios = sorted(_resampled_ratio(pairs, chance) for _ in range(_RESAMPLES))
    return Comparison(
        pairs=len(pairs),
        ours_p50_ms=median(ours),
        ours_p95_ms=quantiles(ours, n=20)[-1],
        raw_p50_ms=median(raw),
        raw_p95_ms=quantiles(raw, n=20)[-1],
        ratio=median(ours) / median(raw),
        ratio_low=ratios[int(_RESAMPLES * 0.025)],
        ratio_high=ratios[int(_RESAMPLES * 0.975)],
    )


def _resampled_ratio(pairs: Sequence[Pair], chance: random.Random) -> float:
    drawn = chance.choices(pairs, k=len(pairs))
    return median(pair.ours_s for pair in drawn) / median(pair.raw_s for pair in drawn)


def _timed(work: Callable[[int], None], item: int) -> float:
    started = time.perf_counter()
    work(item)
    return time.perf_counter() - started
