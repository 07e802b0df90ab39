"""Projects and matters by key, made when a source first refers to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import matters, projects
from shared.sources.config import MatterRef, Place, ProjectRef
from shared.types import MatterId, ProjectId


@dataclass(frozen=True, slots=True)
class PlaceIds:
    """Where a document lies, by id; neither, one or both."""

    project_id: ProjectId | None
    matter_id: MatterId | None


def ensure(connection: sa.Connection, places: Iterable[Place]) -> None:
    """Make the projects and matters of `places` that are missing, and bring their titles up to date."""
    wanted = list(places)
    by_key: dict[str, ProjectRef] = {p.project.key: p.project for p in wanted if p.project}
    # In the order of the conflict key: two sources that share projects cannot deadlock.
    for key in sorted(by_key):
        _upsert(connection, projects, key, {"title": by_key[key].title})
    ids = {row.key: row.id for row in connection.execute(sa.select(projects.c.key, projects.c.id))}
    matter_refs: dict[str, tuple[MatterRef, ProjectRef | None]] = {
        p.matter.key: (p.matter, p.project) for p in wanted if p.matter
    }
    for key in sorted(matter_refs):
        matter, project = matter_refs[key]
        # What the configuration leaves out stays as someone else has set it.
        values = matter.model_dump(include=matter.model_fields_set | {"title"}, exclude={"key"})
        if "reference_numbers" in values:
            values["reference_numbers"] = list(values["reference_numbers"])
        if project:
            values["project_id"] = ids[project.key]
        _upsert(connection, matters, key, values)


def fingerprint(place: Place) -> str:
    """Return what identifies a place in a payload, and the name under which decisions about it are serialised."""
    return key_of(place.project.key if place.project else None, place.matter.key if place.matter else None)


def key_of(project_key: str | None, matter_key: str | None) -> str:
    """Return the fingerprint of the place with these keys."""
    return json.dumps([project_key, matter_key], ensure_ascii=False)


def _upsert(connection: sa.Connection, table: sa.Table, key: str, values: dict[str, Any]) -> None:
    """Write one row if it is missing or differs; a row that is right is not touched."""
    found = connection.execute(sa.select(*(table.c[name] for name in values)).where(table.c.key == key)).one_or_none()
    if found is not None and list(found) == list(values.values()):
        return
    insert = pg.insert(table).values(key=key, **values)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[table.c.key], set_={name: insert.excluded[name] for name in values}
        )
    )
