"""What the stack remembers between two commands: its ports and its processes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from local.ports import choose_port, is_free
from local.private_file import write_private
from local.processes import ProcessMark
from local.waiting import wait_until

_RELEASE_S = 3.0


class Part(StrEnum):
    """A part of the stack, which is one process with its workers."""

    POSTGRES = "postgres"
    OPENSEARCH = "opensearch"
    SERVE = "serve"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ports(_Stored):
    """The loopback ports, chosen once and kept for as long as nothing else takes them."""

    postgres: int = Field(gt=0, lt=65536)
    opensearch: int = Field(gt=0, lt=65536)
    opensearch_transport: int = Field(gt=0, lt=65536)
    http: int = Field(gt=0, lt=65536)
    issuer: int = Field(gt=0, lt=65536)

    @classmethod
    def choose(cls, earlier: Ports | None, *, held: Mapping[Part, bool]) -> Self:
        """Return ports: the earlier ones where our own part holds them or they are free, else new ones."""
        chosen: dict[str, int] = {}
        for name, part in _OWNERS.items():
            port = getattr(earlier, name) if earlier else None
            if port is None or not held[part]:
                if port is not None:
                    _await_release(port)
                port = choose_port(port, taken=chosen.values())
            chosen[name] = port
        return cls(**chosen)


_OWNERS = {
    "postgres": Part.POSTGRES,
    "opensearch": Part.OPENSEARCH,
    "opensearch_transport": Part.OPENSEARCH,
    "http": Part.SERVE,
    "issuer": Part.SERVE,
}


def _await_release(port: int) -> None:
    """Give a part that was just killed the moment in which the system closes its sockets."""
    wait_until(lambda: is_free(port), timeout_s=_RELEASE_S)


class Process(_Stored):
    """A started process; `stamp` tells with which code and settings it was started."""

    pid: int
    started: float
    stamp: str = ""

    @classmethod
    def of(cls, mark: ProcessMark, stamp: str = "") -> Self:
        """Return the record of a process."""
        return cls(pid=mark.pid, started=mark.started, stamp=stamp)

    @property
    def mark(self) -> ProcessMark:
        """The process it stands for."""
        return ProcessMark(self.pid, self.started)


class StackState(_Stored):
    """The state file's content."""

    ports: Ports
    processes: Mapping[Part, Process] = Field(default_factory=dict)


def read_state(path: Path) -> StackState | None:
    """Return the stored state, None if there is none or it cannot be used (then processes are found by search)."""
    try:
        return StackState.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_state(path: Path, state: StackState) -> None:
    """Store the state, whole or not at all."""
    write_private(path, state.model_dump_json(indent=2).encode())
