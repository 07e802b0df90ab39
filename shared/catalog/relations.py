"""What versions are to one another, as far as a viewer may see both.

The one place that reads relations. A relation is there when an intent of one version meets a key of another in one
realm (ADR 0014); it is shown when the predicate shows both versions, and when each end that was read from a file's
name is cited at that very file. Evidence quotes the end that it was read from and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.predicate import (
    Among,
    Standing,
    Viewer,
    citable_observations,
    visible_versions,
)
from shared.catalog.threads import Thread, visible_threads
from shared.db.tables.base import Json, TextArray, Uuid
from shared.db.tables.catalog import document_versions
from shared.db.tables.structure import relation_intents, relation_keys
from shared.types import AclMode, RelationKind, VersionId

# Between versions of one document these say something; any other one is the document talking of itself.
_WITHIN_DOCUMENT = (RelationKind.CONTAINS.value, RelationKind.REDLINE_OF.value)
_REDLINE: sa.ColumnElement[str] = sa.literal_column(f"'{RelationKind.REDLINE_OF}'")


@dataclass(frozen=True, slots=True)
class Relation:
    """`from_version` says that it is `kind` to `to_version`; where it says so, and by what the other one is known."""

    kind: RelationKind
    from_version: VersionId
    to_version: VersionId
    confidence: float
    evidence: Mapping[str, Any]
    target_evidence: Mapping[str, Any] | None


def relations_of(
    connection: sa.Connection, viewer: Viewer, versions: Collection[VersionId], *, limit: int = 200
) -> list[Relation]:
    """Return the relations with an end in `versions` that the viewer may see, in a fixed order; two statements.

    Membership in a thread is among them: from each mail to the first one of its thread that the viewer may see.
    """
    statement = _statement(viewer.mode, is_administrator=viewer.is_administrator)
    body = {"viewer": sorted(viewer.principals), "versions": list(versions), "most": limit}
    found = [
        Relation(
            RelationKind(row.kind),
            VersionId(row.from_version_id),
            VersionId(row.to_version_id),
            row.confidence,
            row.evidence,
            row.target_evidence,
        )
        for row in connection.execute(statement, body)
    ]
    for thread in visible_threads(connection, viewer, versions):
        found += _memberships(thread, set(versions))
    return found[:limit]


def visible_relations(viewer: Viewer | Standing, *, among: Among) -> sa.Select[Any]:
    """Return one row a relation with an end among these versions, both ends visible to the viewer.

    Columns: `kind`, `from_version_id`, `to_version_id`, `confidence`, `evidence`, `target_evidence`.
    """
    near = visible_versions(viewer, among=among, name="near")
    pairs = sa.union(*_meetings(near), *_redlines(near)).cte("pairs")
    ends = sa.union(sa.select(pairs.c.from_version_id), sa.select(pairs.c.to_version_id))
    far = visible_versions(viewer, among=document_versions.c.id.in_(ends), name="far")
    cited = citable_observations(viewer, far, name="cited")
    one, other = far.alias("one"), far.alias("other")
    row = pairs.c
    return (
        sa.select(
            row.kind,
            row.from_version_id,
            row.to_version_id,
            row.confidence,
            row.evidence,
            row.target_evidence,
        )
        .ext(pg.distinct_on(row.kind, row.from_version_id, row.to_version_id))
        .select_from(pairs)
        .join(one, one.c.version_id == row.from_version_id)
        .join(other, other.c.version_id == row.to_version_id)
        .where(
            sa.or_(one.c.document_id != other.c.document_id, row.kind.in_(_WITHIN_DOCUMENT)),
            _is_cited(cited, row.from_version_id, row.from_place),
            _is_cited(cited, row.to_version_id, row.to_place),
        )
        .order_by(
            row.kind, row.from_version_id, row.to_version_id, row.confidence.desc(), sa.cast(row.evidence, sa.Text)
        )
    )


@cache
def _statement(mode: AclMode, *, is_administrator: bool) -> sa.Select[Any]:
    """Return the statement; built once a process, because building it costs more than running it."""
    standing = Standing(sa.bindparam("viewer", type_=TextArray), mode, is_administrator)
    asked = document_versions.c.id == sa.any_(sa.bindparam("versions", type_=pg.ARRAY(Uuid)))
    return visible_relations(standing, among=asked).limit(sa.bindparam("most", type_=sa.Integer))


def _memberships(thread: Thread, asked: Collection[VersionId]) -> list[Relation]:
    """Return what ties the mails of a thread to its first one, as far as an end is asked for."""
    first = thread.messages[0]
    # The first message may lie at several places; the one that is asked for stands for all.
    copies = [one for one in thread.messages if one.message_id and one.message_id == first.message_id]
    first = next((one for one in copies if one.version_id in asked), first)
    return [
        Relation(RelationKind.BELONGS_TO_THREAD, one.version_id, first.version_id, 1.0, {"source": "thread"}, None)
        for one in thread.messages
        if one is not first and one not in copies and (one.version_id in asked or first.version_id in asked)
    ]


def _meetings(near: sa.CTE) -> list[sa.Select[Any]]:
    """Return two queries: what `near` says of others, and what others say of it."""
    intent, key = relation_intents.c, relation_keys.c
    meet = (key.key == intent.key) & (key.realm == intent.realm) & (key.version_id != intent.version_id)
    columns = (
        intent.kind,
        intent.version_id.label("from_version_id"),
        key.version_id.label("to_version_id"),
        intent.confidence,
        intent.evidence,
        key.evidence.label("target_evidence"),
        sa.case((intent.by_name, intent.source_object_id)).label("from_place"),
        sa.case((key.by_name, key.source_object_id)).label("to_place"),
    )
    both = sa.select(*columns).select_from(relation_intents.join(relation_keys, meet))
    return [
        both.join(near, near.c.version_id == intent.version_id),
        both.join(near, near.c.version_id == key.version_id),
    ]


def _redlines(near: sa.CTE) -> list[sa.Select[Any]]:
    """Return two queries: what `near` is a redline of, and the redlines of it."""
    intent, version = relation_intents.c, document_versions.c
    found = (
        sa.select(
            intent.kind,
            intent.version_id.label("from_version_id"),
            version.redline_of.label("to_version_id"),
            intent.confidence,
            intent.evidence,
            sa.cast(sa.null(), Json).label("target_evidence"),
            # Found among the files of a folder: for those who may cite the redline there.
            intent.source_object_id.label("from_place"),
            sa.cast(sa.null(), Uuid).label("to_place"),
        )
        .select_from(document_versions.join(relation_intents, intent.version_id == version.id))
        .where(intent.kind == _REDLINE, version.redline_of.is_not(None))
    )
    return [
        found.join(near, near.c.version_id == version.id),
        found.join(near, near.c.version_id == version.redline_of),
    ]


def _is_cited(cited: sa.CTE, version_id: Any, place: Any) -> sa.ColumnElement[bool]:
    """Return: the end does not hang on a place, or the viewer may cite that place."""
    at_place = sa.exists().where(cited.c.version_id == version_id, cited.c.source_object_id == place)
    return sa.or_(place.is_(None), at_place)
