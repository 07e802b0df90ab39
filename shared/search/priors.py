"""What a version's status is worth: ranking decays by supersession, not by age."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def with_status(scores: Iterable[float], statuses: Iterable[str], boosts: Mapping[str, float]) -> list[float]:
    """Return each score times the boost of its status; a status that is not listed changes nothing."""
    return [score * boosts.get(status, 1.0) for score, status in zip(scores, statuses, strict=True)]
