"""What every source offers: the objects that lie there now, and the bytes of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from shared.sources.config import SourceConfig


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object as a scan saw it. `external_id` is stable at the source and unique in it.

    `fingerprint` changes whenever the bytes do; it is never taken for a hash of them. `file_id` stays when the object
    is renamed. A source that cannot say so leaves them out.
    """

    external_id: str
    path: str
    name: str
    size_bytes: int | None = None
    modified_at: datetime | None = None
    source_version: str | None = None
    file_id: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class ScanProblem:
    """Something that lies at the source and cannot be read; reported, never fatal.

    Nothing is known of what lies at or below `path` ("" is everything): what a scan does not find there is not gone.
    """

    path: str
    reason: str


class Source(Protocol):
    """A place that files come from."""

    @property
    def name(self) -> str:
        """The source's unique name."""

    @property
    def config(self) -> SourceConfig:
        """Kind, project and matters by path, include and exclude rules."""

    @property
    def listed_below(self) -> str | None:
        """The folder of which a scan that ends without an error has listed all ("" is the whole source).

        None: a scan gives a selection, and nothing follows from what it does not give.
        """

    def scan(self) -> Iterator[FoundObject | ScanProblem]:
        """Yield everything that lies at the source now, in the order of its id."""

    def proves_gone(self, external_ids: Iterable[str]) -> bool:
        """Return whether the source says that each of these was deleted, not only that it is not there."""

    def open(self, external_id: str) -> BinaryIO:
        """Return the object's bytes as a stream; the caller closes it.

        `UnreadableFileError` when they cannot be read, `EngineUnavailableError` when the source is away.
        """
