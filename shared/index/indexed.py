"""Which rows of the table of chunks belong into the index: all but the clauses of what is no final or executed version.

A status may change after the clauses were written, so they are kept for every version and left out here.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from shared.types import ChunkKind, VersionStatus

CLAUSE_STATUSES: Final = frozenset({VersionStatus.FINAL, VersionStatus.EXECUTED})


def is_indexed(kind: ChunkKind, status: VersionStatus) -> bool:
    """Tell whether a row of this kind is in the index while its version has this status."""
    return kind is not ChunkKind.CLAUSE or status in CLAUSE_STATUSES


def are_indexed(kind: sa.ColumnElement[Any], status: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return the same as an SQL expression."""
    return sa.or_(kind != ChunkKind.CLAUSE, status.in_(sorted(CLAUSE_STATUSES)))
