"""Which version a redline shows the changes of: decided for a redline among all files of its folder.

Decided anew whenever a redline or a file beside one comes, so the order of files does not matter. What is found hangs
on both versions: `shared.catalog.relations` shows it to those who may see both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import artifacts
from shared.db.tables.sources import source_objects, version_sources
from shared.db.tables.structure import relation_intents
from shared.ingest.objects import ObjectRow
from shared.ingest.places import PlaceIds
from shared.ingest.relations.redline_signs import Likeness, likeness
from shared.providers.storage import ObjectStore
from shared.text.converted import ARTIFACT_KIND, ConvertedText
from shared.types import DocumentId, RelationKind, VersionId

# A folder of drafts is small; in a heap of papers a redline is compared with those of its own family alone.
_MAX_COMPARED = 40


@dataclass(frozen=True, slots=True)
class _Beside:
    """A version in the folder."""

    version_id: VersionId
    document_id: DocumentId
    seq: int
    family: str | None
    is_redline: bool
    redline_of: VersionId | None
    is_comparison: bool
    text_key: str | None


def settle_redlines(
    connection: sa.Connection,
    store: ObjectStore,
    row: ObjectRow,
    place: PlaceIds,
    redlines: Iterable[VersionId],
) -> set[DocumentId]:
    """Decide what these redlines in the folder of `row` show the changes of; return the documents that changed by it.

    One statement to look and one a redline that changes. The caller holds the lock on the place.
    """
    wanted = sorted(set(redlines))
    if not wanted:
        return set()
    beside = {one.version_id: one for one in _beside(connection, row, place)}
    texts: dict[VersionId, ConvertedText] = {}
    changed: set[DocumentId] = set()
    for redline in (beside[version] for version in wanted if version in beside):
        found, is_comparison = _target(store, redline, beside, texts)
        if (found, is_comparison) != (redline.redline_of, redline.is_comparison):
            connection.execute(
                sa.update(document_versions)
                .where(document_versions.c.id == redline.version_id)
                .values(redline_of=found, is_comparison=is_comparison)
            )
            changed.add(redline.document_id)
    return changed


def _target(
    store: ObjectStore,
    redline: _Beside,
    beside: Mapping[VersionId, _Beside],
    texts: dict[VersionId, ConvertedText],
) -> tuple[VersionId | None, bool]:
    """Return the version whose changes the redline shows, and whether that is the state to which they lead.

    A draft that tracks its changes of the one before is a state of its own; one whose new state lies there without
    them is only a comparison.
    """
    others = [one for one in beside.values() if not one.is_redline and one.text_key is not None]
    if len(others) > _MAX_COMPARED:
        others = [one for one in others if one.document_id == redline.document_id or one.family == redline.family]
    mine = _text(store, redline, texts)
    if mine is None:
        return None, False
    best: tuple[Likeness, _Beside] | None = None
    for other in sorted(others, key=lambda one: one.seq)[-_MAX_COMPARED:]:
        theirs = _text(store, other, texts)
        found = likeness(mine, theirs.text) if theirs is not None else None
        # Of two that are alike the later one: nobody compares with a state that has been replaced.
        if found is not None and (best is None or found.rank >= best[0].rank):
            best = (found, other)
    return (best[1].version_id, best[0].is_accepted) if best is not None else (None, False)


def _text(store: ObjectStore, one: _Beside, texts: dict[VersionId, ConvertedText]) -> ConvertedText | None:
    if one.text_key is None:
        return None
    if one.version_id not in texts:
        texts[one.version_id] = ConvertedText.from_json(store.get(one.text_key))
    return texts[one.version_id]


def _beside(connection: sa.Connection, row: ObjectRow, place: PlaceIds) -> list[_Beside]:
    """Return the versions that files of the folder show, each once."""
    folder, _, _ = row.path.rpartition("/")
    version = document_versions.c
    text_key = (
        sa.select(artifacts.c.storage_key)
        .where(artifacts.c.sha256 == version.sha256, artifacts.c.kind == ARTIFACT_KIND)
        .order_by(artifacts.c.created_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    is_redline = sa.exists().where(
        relation_intents.c.version_id == version.id,
        relation_intents.c.kind == sa.literal_column(f"'{RelationKind.REDLINE_OF}'"),
    )
    found: sa.Select[Any] = (
        sa.select(
            version.id,
            version.document_id,
            version.seq,
            version.facts["family"].astext.label("family"),
            is_redline.label("is_redline"),
            version.redline_of,
            version.is_comparison,
            text_key.label("text_key"),
        )
        .distinct()
        .join(documents, documents.c.id == version.document_id)
        .join(version_sources, version_sources.c.version_id == version.id)
        .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
        .where(
            documents.c.project_id.is_not_distinct_from(place.project_id),
            documents.c.matter_id.is_not_distinct_from(place.matter_id),
            source_objects.c.source_id == row.source_id,
            source_objects.c.deleted_at.is_(None),
            sa.func.regexp_replace(source_objects.c.path, "(^|/)[^/]*$", "") == folder,
        )
    )
    return [
        _Beside(
            VersionId(one.id),
            DocumentId(one.document_id),
            one.seq,
            one.family,
            one.is_redline,
            VersionId(one.redline_of) if one.redline_of is not None else None,
            one.is_comparison,
            one.text_key,
        )
        for one in connection.execute(found)
    ]
