"""Projects and matters by key, made when a source first refers to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.base import TextArray
from shared.db.tables.catalog import matters, projects
from shared.ingest import matter_numbers
from shared.ingest.locks import place_name
from shared.ingest.objects import MEMBER_MARK, ObjectRow
from shared.sources.config import MatterRef, Place, SourceConfig
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
    # A file in an archive lies in folders of the archive as well.
    levels = sum(inside.count("/") + 1 for inside in MEMBER_MARK.split(row.external_id)[1:])
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
    titles = {p.project.key: {"title": p.project.title} for p in wanted if p.project}
    _bring_up(connection, projects, titles)
    project_ids = {key: row.id for key, row in _rows(connection, projects, titles).items()}
    refs = {p.matter.key: (p.matter, p.project) for p in wanted if p.matter}
    before = {key: (row.project_id, row.from_folder) for key, row in _rows(connection, matters, refs).items()}
    values = {
        key: _values(matter) | ({"project_id": project_ids[project.key]} if project else {})
        for key, (matter, project) in refs.items()
    }
    _bring_up(connection, matters, values)
    matter_numbers.bring_up(connection, [matter for matter, _ in refs.values()], before)


def _values(matter: MatterRef) -> dict[str, Any]:
    """Return what is written of a matter: what the configuration leaves out stays as someone else has set it."""
    values = matter.model_dump(include=matter.model_fields_set | {"title"}, exclude={"key"})
    if "reference_numbers" in values:
        values["reference_numbers"] = list(values["reference_numbers"])
    # A matter that somebody has named is no longer known by a folder alone.
    return values | {"from_folder": False}


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
    return bool(
        connection.execute(sa.select(found.c.project_id == here.c.id).select_from(here.join(found, sa.true()))).scalar()
    )


def fingerprint(place: PlaceKeys) -> str:
    """Return what identifies a place in a payload, and the name under which decisions about it are serialised."""
    return key_of(place.project, place.matter)


def key_of(project_key: str | None, matter_key: str | None) -> str:
    """Return the fingerprint of the place with these keys."""
    return place_name(project_key, matter_key)


def place_of_key(fingerprint: str) -> PlaceKeys:
    """Return the place that a fingerprint stands for."""
    project, matter = json.loads(fingerprint)
    return PlaceKeys(project, matter)


def _bring_up(connection: sa.Connection, table: sa.Table, wanted: Mapping[str, dict[str, Any]]) -> None:
    """Write the rows of these keys that are missing or differ; a row that is right is not touched."""
    known = _rows(connection, table, wanted)
    # In the order of the conflict key: two sources that share projects cannot deadlock.
    for key, values in sorted(wanted.items()):
        if key in known and all(known[key]._mapping[name] == value for name, value in values.items()):  # noqa: SLF001 - how a row gives a column by its name
            continue
        insert = pg.insert(table).values(key=key, **values)
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=[table.c.key], set_={name: insert.excluded[name] for name in values}
            )
        )


def _rows(connection: sa.Connection, table: sa.Table, keys: Iterable[str]) -> dict[str, sa.Row[Any]]:
    given = sorted(keys)
    if not given:
        return {}
    found = connection.execute(sa.select(table).where(table.c.key == sa.any_(sa.literal(given, TextArray))))
    return {row.key: row for row in found}
