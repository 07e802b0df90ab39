"""Counts the statements that a piece of code sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa


@dataclass(slots=True)
class Statements:
    """What was sent, in order. BEGIN and COMMIT are not statements; in autocommit reads there are none."""

    texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)


@contextmanager
def counted(engine: sa.Engine) -> Iterator[Statements]:
    """Record every statement that connections of `engine` send inside the block."""
    seen = Statements()

    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.texts.append(statement)

    sa.event.listen(engine, "before_cursor_execute", record)
    try:
        yield seen
    finally:
        sa.event.remove(engine, "before_cursor_execute", record)
