"""What is decided about an object's matter before its content is looked at, as columns of the object's row.

Both are the fingerprint of a place (`shared.ingest.places`) or null.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import matters, projects
from shared.db.tables.matters import matter_assignments
from shared.db.tables.sources import source_objects
from shared.types import MatterMethod


def manual_place() -> sa.Label[str | None]:
    """Return the place that an administrator has given the object."""
    assigned = matter_assignments.alias("by_hand")
    own = (assigned.c.source_object_id == source_objects.c.id) & (assigned.c.method == MatterMethod.MANUAL)
    return _place(assigned, own, "manual_place")


def parent_place() -> sa.Label[str | None]:
    """Return the place of the file that the object was taken out of."""
    assigned = matter_assignments.alias("of_parent")
    return _place(assigned, assigned.c.source_object_id == source_objects.c.parent_id, "parent_place")


def _place(assigned: Any, condition: sa.ColumnElement[bool], name: str) -> sa.Label[Any]:
    project, matter = projects.alias(f"{name}_project"), matters.alias(f"{name}_matter")
    found = (
        sa.select(sa.cast(sa.func.jsonb_build_array(project.c.key, matter.c.key), sa.Text))
        .select_from(assigned)
        .outerjoin(project, project.c.id == assigned.c.project_id)
        .outerjoin(matter, matter.c.id == assigned.c.matter_id)
        .where(condition)
    )
    return found.correlate(source_objects).scalar_subquery().label(name)
