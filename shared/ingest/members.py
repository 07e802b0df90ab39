"""The files in an object, in pages: those directly in it first, then the files in these, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from shared.db.tables.sources import source_objects
from shared.types import SourceObjectId

PAGE: Final = 500
"""Ids of 36 characters: a page with its punctuation stays below 20 KB."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some files in an object, all equally deep. `level` and the last id say where the next page begins."""

    ids: tuple[SourceObjectId, ...]
    level: int


def members_page(
    connection: sa.Connection,
    object_id: SourceObjectId,
    *,
    level: int,
    after: SourceObjectId | None,
) -> Page | None:
    """Return the next page of files that are still there, None when there are no more; begin with level 1 and None.

    The files of one level are registered when all of the level above have been converted, so whoever works through
    page after page misses none, and each is met after the file that holds it.
    """
    inside = _inside(object_id)
    last = sa.select(source_objects.c.external_id).where(source_objects.c.id == after).scalar_subquery()
    begin = sa.tuple_(sa.literal(level), sa.func.coalesce(last, ""))
    rows = connection.execute(
        sa.select(inside.c.id, inside.c.level)
        .where(sa.tuple_(inside.c.level, inside.c.external_id) > begin)
        .order_by(inside.c.level, inside.c.external_id)
        .limit(PAGE)
    ).all()
    if not rows:
        return None
    first = rows[0].level
    return Page(tuple(SourceObjectId(row.id) for row in rows if row.level == first), first)


def _inside(object_id: SourceObjectId) -> sa.CTE:
    columns = source_objects.c
    direct = sa.select(columns.id, columns.external_id, sa.literal(1).label("level"))
    inside = direct.where(columns.parent_id == object_id, columns.deleted_at.is_(None)).cte("inside", recursive=True)
    deeper: Any = (
        sa.select(columns.id, columns.external_id, inside.c.level + 1)
        .join(inside, columns.parent_id == inside.c.id)
        .where(columns.deleted_at.is_(None))
    )
    return inside.union_all(deeper)
