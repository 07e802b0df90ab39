"""Decisions, as far as a viewer may see the versions they were read from.

A decision that compares two drafts is for those who see both. Its author may stand in a third version, the mail that
carried the draft: who may not see that one is told neither the author nor the time.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from shared.access.predicate import Among, Standing, Viewer, visible_versions
from shared.db.tables.catalog import document_versions
from shared.db.tables.structure import decisions


def visible_decisions(viewer: Viewer | Standing, *, among: Among) -> sa.Select[Any]:
    """Return the decisions about these versions, each row with the columns of `decisions`; in a fixed order."""
    row = decisions.c
    near = visible_versions(viewer, among=among, name="near")
    about = sa.union(
        *(sa.select(decisions).join(near, near.c.version_id == end) for end in (row.to_version_id, row.from_version_id))
    ).cte("about")
    ends = sa.union(*(sa.select(about.c[name]) for name in ("to_version_id", "from_version_id", "author_version_id")))
    far = visible_versions(viewer, among=document_versions.c.id.in_(ends), name="far")
    earlier, later, told = far.alias("earlier"), far.alias("later"), far.alias("told")
    is_told = sa.or_(about.c.author_version_id.is_(None), told.c.version_id.is_not(None))
    guarded = {
        name: sa.case((is_told, about.c[name])).label(name) for name in ("author", "author_version_id", "decided_at")
    }
    return (
        sa.select(*(guarded.get(column.name, column) for column in about.c))
        .select_from(about)
        .join(later, later.c.version_id == about.c.to_version_id)
        .outerjoin(earlier, earlier.c.version_id == about.c.from_version_id)
        .outerjoin(told, told.c.version_id == about.c.author_version_id)
        .where(sa.or_(about.c.from_version_id.is_(None), earlier.c.version_id.is_not(None)))
        .order_by(about.c.to_version_id, about.c.from_version_id.nulls_last(), about.c.ordinal)
    )
