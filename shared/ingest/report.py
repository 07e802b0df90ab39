"""What came of every file of a run: the closing table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from shared.ingest.deletions import Settled
from shared.types import SourceId, SourceObjectId


class Outcome(StrEnum):
    """What came of one file."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    # The bytes are known in this project and matter: another observation of the same version.
    COPY = "copy"
    # The bytes are the same, a producer, the name's evidence or the place changed.
    REFRESHED = "refreshed"
    QUARANTINED = "quarantined"
    # The source shows it but does not let it be read.
    UNREADABLE = "unreadable"
    # Another worker had it all the time.
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """One file: what came of it, and why if it stopped. `parent_id` is set for a file found in another."""

    path: str
    outcome: Outcome
    error: str | None = None
    reason: str | None = None
    object_id: SourceObjectId | None = None
    parent_id: SourceObjectId | None = None
    version_id: str | None = None
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Every file of a run, in the order in which it was finished, and what the scan did not find any more.

    `waiting` counts what the index has yet to take.
    """

    run_id: UUID
    source_id: SourceId
    files: tuple[FileOutcome, ...]
    waiting: int
    settled: Settled = field(default_factory=Settled)

    def counts(self) -> dict[str, int]:
        """Return how many files had which outcome, every outcome listed; `found` is the sum.

        `moved` are among them; `deleted` and `held` are files that the source knew before and has no more.
        """
        seen = Counter(file.outcome for file in self.files)
        held = self.settled.held
        return {
            "found": len(self.files),
            **{outcome.value: seen[outcome] for outcome in Outcome},
            "moved": self.settled.moved,
            "deleted": self.settled.deleted,
            "held": held.lost if held else 0,
        }

    @property
    def complete(self) -> bool:
        """Whether every file is in and in the index."""
        stopped = {Outcome.QUARANTINED, Outcome.UNREADABLE, Outcome.BUSY}
        return self.waiting == 0 and not any(file.outcome in stopped for file in self.files)
