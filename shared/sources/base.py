"""What every source offers: the objects that lie there now, and the bytes of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from shared.sources.config import SourceConfig


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object as a scan saw it. `external_id` is stable at the source and unique in it."""

    external_id: str
    path: str
    name: str
    size_bytes: int | None = None
    modified_at: datetime | None = None
    source_version: str | None = None


@dataclass(frozen=True, slots=True)
class ScanProblem:
    """Something that lies at the source and cannot be read; reported, never fatal."""

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

    def scan(self) -> Iterator[FoundObject | ScanProblem]:
        """Yield everything that lies at the source now."""

    def open(self, external_id: str) -> BinaryIO:
        """Return the object's bytes as a stream; the caller closes it.

        `UnreadableFileError` when they cannot be read, `EngineUnavailableError` when the source is away.
        """
