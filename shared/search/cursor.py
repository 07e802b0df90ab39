"""Where a list by metadata goes on: opaque to callers, good for the same filters only.

It holds nothing but what its holder was shown, the day and number of the last row, and decides nothing about access:
every page is filtered and verified anew.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import InvalidRequestError
from shared.search.bodies import MAX_ORDINAL
from shared.search.request import FilterRequest

_VERSION: Final = 1
_LARGEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class Position:
    """The list goes on behind this day (as the index counts it) and version; `seen` results came before."""

    day: int
    version_seq: int
    seen: int

    @property
    def after(self) -> list[int]:
        """The sort values to go on behind: after all rows of the version."""
        return [self.day, self.version_seq, MAX_ORDINAL]


def encode(position: Position, request: FilterRequest) -> str:
    """Return the cursor for the page after `position`."""
    body = [_VERSION, _digest(request), position.day, position.version_seq, position.seen]
    text = json.dumps(body, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).decode("ascii").rstrip("=")


def decode(request: FilterRequest) -> Position | None:
    """Return where `request` goes on, None at the beginning. Raises `InvalidRequestError` on any other cursor."""
    if request.cursor is None:
        return None
    try:
        padded = request.cursor.encode("ascii") + b"=" * (-len(request.cursor) % 4)
        body = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise _invalid("cursor is not one that this service gave out") from error
    if not _is_whole(body):
        raise _invalid("cursor is not one that this service gave out")
    if body[1] != _digest(request):
        raise _invalid("cursor belongs to other filters; start again without it")
    return Position(day=body[2], version_seq=body[3], seen=body[4])


def _is_whole(body: Any) -> bool:
    if not isinstance(body, list) or body[:1] != [_VERSION] or len(body) != 5:  # noqa: PLR2004  # as `encode` writes
        return False
    numbers: Sequence[Any] = body[2:]
    return all(type(number) is int and -_LARGEST <= number < _LARGEST for number in numbers) and body[4] >= 0


def _digest(request: FilterRequest) -> str:
    asked = request.model_dump(mode="json", include={"filters", "project_ids"})
    asked["project_ids"] = sorted(asked["project_ids"] or [])
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _invalid(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="cursor")
