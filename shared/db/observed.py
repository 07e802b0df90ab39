"""Whether a version still lies at a source. One that does not is seen by nobody, and the index holds no row of it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from shared.db.tables.sources import source_objects, version_sources


def is_observed(version_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return: the version was seen at a source object that is not tombstoned."""
    seen, places = version_sources.alias("seen"), source_objects.alias("places")
    return (
        sa.select(sa.literal_column("1"))
        .select_from(seen.join(places, places.c.id == seen.c.source_object_id))
        .where(seen.c.version_id == version_id, places.c.deleted_at.is_(None))
        .exists()
    )
