"""The one who asks."""

from __future__ import annotations

from dataclasses import dataclass

from shared.types import Principal


@dataclass(frozen=True, slots=True)
class Caller:
    """The subject of a verified token with its principals: normalised, not expanded."""

    subject: str
    principals: frozenset[Principal]
