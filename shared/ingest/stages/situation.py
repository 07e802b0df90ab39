"""What SQL knows of an object's bytes and place before it is decided which version they are: one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions, documents, matters, projects
from shared.db.tables.sources import source_objects, version_sources
from shared.errors import MisconfiguredError
from shared.ingest import places
from shared.ingest.facts import UNKNOWN_NAME
from shared.ingest.metadata.names import stem_key
from shared.ingest.objects import ObjectRow
from shared.ingest.places import PlaceIds, PlaceKeys
from shared.ingest.stages.profile import MatterNames
from shared.types import DocumentId, MatterId, ProjectId, SourceObjectId, VersionId


@dataclass(frozen=True, slots=True)
class Shown:
    """A version, its document's place by id and by key, and all files that show it, gone or not.

    `first` is the object whose reading counts: the first that is still there. `names` are the names of all.
    """

    version_id: VersionId
    document_id: DocumentId
    place: PlaceIds
    place_key: str
    named_by: str | None
    names: tuple[str, ...]
    first: SourceObjectId

    def bears_other_names(self) -> bool:
        """Return whether its facts were read with a name that not all files bear now."""
        return self.named_by is not None and {stem_key(name) for name in self.names} != {self.named_by}


@dataclass(frozen=True, slots=True)
class Situation:
    """`shown`: what the object has shown, the newest last; `same_bytes`: these bytes at this place, oldest first."""

    place: PlaceIds
    matter: MatterNames
    shown: tuple[Shown, ...]
    same_bytes: tuple[Shown, ...]

    @property
    def elsewhere(self) -> dict[DocumentId, str]:
        """The documents that this object has shown in another project or matter, with that place's key."""
        return {one.document_id: one.place_key for one in self.shown if one.place != self.place}

    @property
    def current(self) -> DocumentId | None:
        """The document whose newest version this object has shown here."""
        here = [one.document_id for one in self.shown if one.place == self.place]
        return here[-1] if here else None

    @property
    def known(self) -> Shown | None:
        """The version of this place with these bytes, that of the object's own document first."""
        own = [one for one in self.same_bytes if one.document_id == self.current]
        return next(iter([*own, *self.same_bytes]), None)


def look(connection: sa.Connection, row: ObjectRow, place: PlaceKeys, sha256: str) -> Situation:
    """Return the situation of an object whose bytes have this hash."""
    parameters = {
        "object_id": row.id,
        "sha256": sha256,
        "project_key": place.project,
        "matter_key": place.matter,
    }
    found = connection.execute(_situation(), parameters).one()
    for key, id_ in (("project_key", found.project_id), ("matter_key", found.matter_id)):
        if parameters[key] is not None and id_ is None:
            raise MisconfiguredError(f"{key} {parameters[key]!r} of {row.path} is not registered; scan the source anew")
    return Situation(
        PlaceIds(_project(found.project_id), _matter(found.matter_id)),
        MatterNames(found.matter_title, tuple(found.reference_numbers or ())),
        tuple(_shown(one) for one in found.shown),
        tuple(_shown(one) for one in found.same_bytes),
    )


def _shown(one: Mapping[str, Any]) -> Shown:
    return Shown(
        VersionId(UUID(one["version"])),
        DocumentId(UUID(one["document"])),
        PlaceIds(_project(one["project"]), _matter(one["matter"])),
        places.key_of(one["project_key"], one["matter_key"]),
        one["named_by"],
        tuple(one["names"] or ()),
        SourceObjectId(UUID(one["first"])),
    )


def _project(found: str | UUID | None) -> ProjectId | None:
    return None if found is None else ProjectId(UUID(str(found)))


def _matter(found: str | UUID | None) -> MatterId | None:
    return None if found is None else MatterId(UUID(str(found)))


@cache
def _situation() -> sa.Select[Any]:
    project = sa.select(projects.c.id).where(projects.c.key == sa.bindparam("project_key", type_=sa.Text))
    place = (
        sa.select(
            project.scalar_subquery().label("project_id"),
            matters.c.id.label("matter_id"),
            matters.c.title.label("matter_title"),
            matters.c.reference_numbers,
        )
        .select_from(sa.select(sa.literal(1).label("one")).subquery("here"))
        .outerjoin(matters, matters.c.key == sa.bindparam("matter_key", type_=sa.Text))
        .cte("place")
    )
    return sa.select(place, _all(_shown_by_object()).label("shown"), _all(_with_these_bytes(place)).label("same_bytes"))


def _shown_by_object() -> sa.Select[Any]:
    return (
        _versions()
        .join(version_sources, version_sources.c.version_id == document_versions.c.id)
        .where(version_sources.c.source_object_id == sa.bindparam("object_id"))
        .order_by(version_sources.c.created_at, document_versions.c.seq)
    )


def _with_these_bytes(place: sa.CTE) -> sa.Select[Any]:
    here = documents.c.project_id.is_not_distinct_from(place.c.project_id) & (
        documents.c.matter_id.is_not_distinct_from(place.c.matter_id)
    )
    return (
        _versions()
        .join(place, here)
        .where(document_versions.c.sha256 == sa.bindparam("sha256"))
        .order_by(document_versions.c.seq)
    )


def _versions() -> sa.Select[Any]:
    links, files = version_sources.alias("links"), source_objects.alias("files")
    linked = (
        sa.select(files)
        .join(links, links.c.source_object_id == files.c.id)
        .where(links.c.version_id == document_versions.c.id)
        .correlate(document_versions)
    )
    body = _object(
        version=document_versions.c.id,
        document=document_versions.c.document_id,
        project=documents.c.project_id,
        matter=documents.c.matter_id,
        project_key=projects.c.key,
        matter_key=matters.c.key,
        # Facts from before the key was kept count as read by a name that no file has.
        named_by=sa.func.coalesce(
            document_versions.c.facts["named_by"], sa.literal_column(f"'\"{UNKNOWN_NAME}\"'::jsonb")
        ),
        names=linked.with_only_columns(sa.func.jsonb_agg(sa.distinct(files.c.name))).scalar_subquery(),
        first=linked.with_only_columns(files.c.id)
        .order_by(files.c.deleted_at.is_not(None), links.c.created_at, files.c.id)
        .limit(1)
        .scalar_subquery(),
    )
    return (
        sa.select(body.label("body"))
        .select_from(document_versions)
        .join(documents, documents.c.id == document_versions.c.document_id)
        .outerjoin(projects, projects.c.id == documents.c.project_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
    )


def _object(**values: Any) -> sa.ColumnElement[Any]:
    pairs: list[Any] = []
    for name, value in values.items():
        pairs += [sa.literal_column(f"'{name}'"), value]
    return sa.func.jsonb_build_object(*pairs, type_=pg.JSONB)


def _all(select: sa.Select[Any]) -> sa.ColumnElement[Any]:
    """Return the bodies of all rows as one JSON array, in order."""
    rows = sa.func.array(select.scalar_subquery(), type_=pg.ARRAY(pg.JSONB))
    return sa.func.to_jsonb(rows, type_=pg.JSONB)
