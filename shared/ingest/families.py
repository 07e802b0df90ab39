"""Which version stands for a document, and where a new draft goes in the chain; pure decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.types import VersionId, VersionStatus

_RANK = {VersionStatus.EXECUTED: 2, VersionStatus.FINAL: 1}


@dataclass(frozen=True, slots=True)
class Link:
    """A version in its chain: its status, and the number that its file's name gave it.

    `is_comparison`: it shows the changes of a version that lies there without them as well.
    """

    version_id: VersionId
    status: VersionStatus
    number: tuple[int, ...] | None
    is_comparison: bool = False


def latest_final(chain: Sequence[Link]) -> VersionId:
    """Return the version that stands for the document: executed before final before the newest of the rest.

    A comparison stands for none, unless there is nothing else.
    """
    plain = [link for link in chain if not link.is_comparison] or list(chain)
    best = max(range(len(plain)), key=lambda position: (_RANK.get(plain[position].status, 0), position))
    return plain[best].version_id


def position_of(new: Link, chain: Sequence[Link]) -> int:
    """Return where a draft found in another file goes in a chain that is in order.

    A scan meets "final" before "v1" and "v10" before "v2". So a version goes before the first one that is further
    (a higher status; with the same status a higher number), and to the end when none is.
    """
    for position, link in enumerate(chain):
        mine, theirs = _RANK.get(new.status, 0), _RANK.get(link.status, 0)
        if theirs > mine or (theirs == mine and new.number and link.number and link.number > new.number):
            return position
    return len(chain)
