"""A document's versions in order, and which of some of them is its latest final one.

Asked about the versions that a caller may see, never about all: that a newer final one lies behind a wall, or that the
document has none that is final, must show alike everywhere.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions
from shared.types import VersionStatus

FINAL_STATUSES: Final = frozenset({VersionStatus.FINAL, VersionStatus.EXECUTED})


def oldest_first() -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    """Return what to order `document_versions` by, so that the last one of a document is its newest."""
    return sa.func.coalesce(document_versions.c.ordinal, 0), document_versions.c.seq


def latest_finals(among: sa.Select[Any]) -> sa.Select[Any]:
    """Return `document_id` and `version_id` of the newest final or executed version of each document.

    `among` selects the ids of the versions in question. A document of which none is final has no row. A comparison
    with a version that is among them is never the one; what it is compared with and is not there does not count.
    """
    version = document_versions.c
    ordinal, seq = oldest_first()
    statuses: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{status}'") for status in sorted(FINAL_STATUSES)]
    return (
        sa.select(version.document_id, version.id.label("version_id"))
        .where(version.id.in_(among), version.status.in_(statuses), ~is_comparison(among))
        .ext(pg.distinct_on(version.document_id))
        .order_by(version.document_id, ordinal.desc(), seq.desc())
    )


def is_comparison(among: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """Return: the version shows the changes of another one that is among these."""
    version = document_versions.c
    return sa.and_(version.is_comparison, version.redline_of.is_not(None), version.redline_of.in_(among))
