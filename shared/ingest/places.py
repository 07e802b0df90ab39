"""Projects and matters by key, made when a source first refers to them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import matters, projects
from shared.ingest import matter_numbers
from shared.ingest.objects import MEMBER_MARK, ObjectRow
from shared.sources.config import MatterRef, Place, ProjectRef, SourceConfig
from shared.types import MatterId, MatterMethod, ProjectId

_MAX_KEY_CHARS = 200
_KEPT_KEY_CHARS = 160


class PlaceKeys(NamedTuple):
    """Where a document lies, by the keys of project and matter: neither, one or both."""

    project: str | None
    matter: str | None


@dataclass(frozen=True, slots=True)
class PathPlace:
    """Where an object belongs by its path, and by which kind of rule; `folders` are those that make the matter."""

    project: str | None
    matter: str | None
    method: MatterMethod
    folders: tuple[str, ...] = ()

    @property
    def keys(self) -> PlaceKeys:
        """The place without how it was found."""
        return PlaceKeys(self.project, self.matter)


@dataclass(frozen=True, slots=True)
class PlaceIds:
    """Where a document lies, by id; neither, one or both."""

    project_id: ProjectId | None
    matter_id: MatterId | None


def by_path(config: SourceConfig, row: ObjectRow) -> PathPlace:
    """Return where the source's configuration puts an object; a file in a file lies where the outermost one lies."""
    path = outer_path(row)
    place = config.place_of(path)
    project = place.project.key if place.project else None
    if place.matter is not None:
        return PathPlace(project, place.matter.key, MatterMethod.PATH)
    folders = config.folder_matter_of(path)
    if folders is None or project is None:
        return PathPlace(project, None, MatterMethod.NONE)
    return PathPlace(project, folder_key(project, folders), MatterMethod.FOLDER, folders)


def outer_path(row: ObjectRow) -> str:
    """Return the path of the file at the source that holds the object, its own if it lies in none.

    Else a mail would pass for a folder with its attachments in it.
    """
    levels = len(re.findall(MEMBER_MARK, row.external_id))
    return row.path.rsplit("/", levels)[0] if levels else row.path


def folder_key(project: str, folders: tuple[str, ...]) -> str:
    """Return the key of a folder's matter: the same folder name in two projects, or in two folders, is two matters."""
    key = f"{project}:{'/'.join(folders)}"
    if len(key) <= _MAX_KEY_CHARS:
        return key
    return f"{key[:_KEPT_KEY_CHARS]}…{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def ensure(connection: sa.Connection, places: Iterable[Place]) -> None:
    """Make the projects and matters of `places` that are missing, and bring titles and numbers up to date."""
    wanted = list(places)
    by_key: dict[str, ProjectRef] = {p.project.key: p.project for p in wanted if p.project}
    # In the order of the conflict key: two sources that share projects cannot deadlock.
    for key in sorted(by_key):
        _upsert(connection, projects, key, {"title": by_key[key].title})
    ids = {row.key: row.id for row in connection.execute(sa.select(projects.c.key, projects.c.id))}
    matter_refs: dict[str, tuple[MatterRef, ProjectRef | None]] = {
        p.matter.key: (p.matter, p.project) for p in wanted if p.matter
    }
    before = matter_numbers.projects_of(connection, matter_refs)
    for key in sorted(matter_refs):
        matter, project = matter_refs[key]
        # What the configuration leaves out stays as someone else has set it.
        values = matter.model_dump(include=matter.model_fields_set | {"title"}, exclude={"key"})
        if "reference_numbers" in values:
            values["reference_numbers"] = list(values["reference_numbers"])
        if project:
            values["project_id"] = ids[project.key]
        # A matter that somebody has named is no longer known by a folder alone.
        _upsert(connection, matters, key, values | {"from_folder": False})
    matter_numbers.bring_up(connection, matter_refs, before)


def make_folder_matter(connection: sa.Connection, project: str, key: str, title: str) -> bool:
    """Make the matter of a folder unless it is there, and return whether it is this project's; in one statement.

    Two workers with files of one new folder get the same matter: the second one waits for the first.
    """
    here = sa.select(projects.c.id).where(projects.c.key == project).cte("here")
    there = matters.alias("there")
    new = sa.select(here.c.id, sa.literal(key), sa.literal(title), sa.true()).where(
        ~sa.exists().where(there.c.key == key)
    )
    insert = pg.insert(matters).from_select(["project_id", "key", "title", "from_folder"], new)
    made = (
        insert.on_conflict_do_update(index_elements=[matters.c.key], set_={"key": insert.excluded.key})
        .returning(matters.c.project_id)
        .cte("made")
    )
    known = sa.select(there.c.project_id).where(there.c.key == key)
    found = sa.union_all(known, sa.select(made.c.project_id)).subquery("found")
    return bool(connection.execute(sa.select(found.c.project_id == here.c.id).select_from(here, found)).scalar())


def fingerprint(place: PlaceKeys) -> str:
    """Return what identifies a place in a payload, and the name under which decisions about it are serialised."""
    return key_of(place.project, place.matter)


def key_of(project_key: str | None, matter_key: str | None) -> str:
    """Return the fingerprint of the place with these keys."""
    return json.dumps([project_key, matter_key], ensure_ascii=False)


def place_of_key(fingerprint: str) -> PlaceKeys:
    """Return the place that a fingerprint stands for."""
    project, matter = json.loads(fingerprint)
    return PlaceKeys(project, matter)


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
