"""What a version's status is worth: ranking decays by supersession, not by age."""

from __future__ import annotations

from collections.abc import Mapping


def with_status(score: float, status: str, boosts: Mapping[str, float]) -> float:
    """Return the score times the boost of `status`; a status that is not listed changes nothing."""
    return score * boosts.get(status, 1.0)
