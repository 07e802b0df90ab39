"""Decisions as rows: what a document's drafts are to one another, and the decisions of a version made what they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.prepared import hot
from shared.db.tables.base import Uuid
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import artifacts
from shared.db.tables.sources import source_objects, version_sources
from shared.db.tables.structure import decisions, relation_intents
from shared.ingest.decisions.record import Decision
from shared.ingest.recordset import recordset
from shared.text.converted import ARTIFACT_KIND
from shared.types import DocumentId, RelationKind, VersionId

_NAMES = tuple(column.name for column in decisions.c)


@dataclass(frozen=True, slots=True)
class Draft:
    """A version among the drafts of its document, oldest first.

    `carrier` is the mail that brought it; `compared_with` the version with which it was compared last; `has_records`
    whether any decision is about it.
    """

    version_id: VersionId
    document_id: DocumentId
    text_key: str | None
    is_comparison: bool
    carrier: VersionId | None
    carrier_key: str | None
    compared_with: VersionId | None
    has_records: bool


def drafts_of(connection: sa.Connection, version_id: VersionId) -> list[Draft]:
    """Return all versions of the document to which this one belongs, in one statement."""
    return [
        Draft(
            VersionId(row.id),
            DocumentId(row.document_id),
            row.text_key,
            row.is_comparison,
            None if row.carrier is None else VersionId(row.carrier),
            row.carrier_key,
            None if row.compared_with is None else VersionId(row.compared_with),
            row.has_records,
        )
        for row in connection.execute(_drafts(), {"decided_id": version_id})
    ]


def replace(
    connection: sa.Connection,
    *,
    own: VersionId,
    records: Mapping[tuple[VersionId | None, VersionId], Sequence[tuple[Decision, VersionId | None]]],
    neighbours: Collection[tuple[VersionId, VersionId]],
    document: Collection[VersionId],
) -> None:
    """Make the decisions of the given pairs these, and drop those of drafts that are no neighbours any more.

    `records` has for each pair of drafts its decisions, each with the version in which the author stands if that is
    another one; for (None, `own`) what that version tells of.
    """
    rows = [
        _row(earlier, later, ordinal, decision, author_version)
        for (earlier, later), found in records.items()
        for ordinal, (decision, author_version) in enumerate(found)
    ]
    body = {
        "records": sorted(rows, key=lambda row: str(row["id"])),
        "own": own,
        "document": [str(one) for one in document],
        "neighbours": [{"earlier": str(a), "later": str(b)} for a, b in neighbours],
        "compared": [{"earlier": str(a), "later": str(b)} for a, b in records if a is not None],
    }
    connection.execute(_replace(), body)


def _row(
    earlier: VersionId | None, later: VersionId, ordinal: int, decision: Decision, author_version: VersionId | None
) -> dict[str, Any]:
    old, new = decision.from_span or (None, None), decision.to_span or (None, None)
    return {
        "id": str(uuid5(later, f"{earlier or 'itself'}:{ordinal}")),
        "from_version_id": str(earlier) if earlier else None,
        "to_version_id": str(later),
        "ordinal": ordinal,
        "kind": decision.kind.value,
        "summary": decision.summary,
        "locus": decision.locus,
        "from_start": old[0],
        "from_end": old[1],
        "to_start": new[0],
        "to_end": new[1],
        "author": decision.author,
        "author_version_id": str(author_version) if author_version else None,
        "decided_at": decision.decided_at.isoformat() if decision.decided_at else None,
        "evidence": dict(decision.evidence),
        "confidence": decision.confidence,
    }


@cache
def _drafts() -> sa.Select[Any]:
    version = document_versions.c
    asked = sa.select(version.document_id).where(version.id == sa.bindparam("decided_id", type_=Uuid))
    drafts = document_versions.alias("drafts")
    text_key = _text_key(drafts.c.sha256)
    carried, mails = source_objects.alias("carried"), document_versions.alias("mails")
    member = sa.func.concat("member:", sa.cast(carried.c.parent_id, sa.Text), ":", drafts.c.sha256)
    carrier = (
        sa.select(mails.c.id, mails.c.sha256)
        .select_from(version_sources)
        .join(carried, carried.c.id == version_sources.c.source_object_id)
        .join(
            relation_intents,
            (relation_intents.c.source_object_id == carried.c.parent_id)
            & (relation_intents.c.key == member)
            & (relation_intents.c.kind == sa.literal_column(f"'{RelationKind.CONTAINS}'")),
        )
        .join(mails, mails.c.id == relation_intents.c.version_id)
        .where(version_sources.c.version_id == drafts.c.id)
        .order_by(mails.c.seq)
        .limit(1)
        .lateral("carrier")
    )
    about = decisions.alias("about")
    compared = (
        sa.select(about.c.from_version_id)
        .where(about.c.to_version_id == drafts.c.id, about.c.from_version_id.is_not(None))
        .limit(1)
        .scalar_subquery()
    )
    return hot(
        sa.select(
            drafts.c.id,
            drafts.c.document_id,
            text_key.label("text_key"),
            drafts.c.is_comparison,
            carrier.c.id.label("carrier"),
            _text_key(carrier.c.sha256).label("carrier_key"),
            compared.label("compared_with"),
            sa.exists().where(about.c.to_version_id == drafts.c.id).label("has_records"),
        )
        .select_from(drafts.outerjoin(carrier, sa.true()))
        .where(drafts.c.document_id == asked.scalar_subquery())
        .order_by(sa.func.coalesce(drafts.c.ordinal, 0), drafts.c.seq)
    )


def _text_key(sha256: sa.ColumnElement[str]) -> sa.ScalarSelect[Any]:
    return (
        sa.select(artifacts.c.storage_key)
        .where(artifacts.c.sha256 == sha256, artifacts.c.kind == ARTIFACT_KIND)
        .order_by(artifacts.c.created_at.desc())
        .limit(1)
        .scalar_subquery()
    )


@cache
def _replace() -> sa.Insert:
    row = decisions.c
    given = recordset("records", [row[name] for name in _NAMES])
    wanted = sa.select(*(given.c[name] for name in _NAMES)).cte("wanted")
    is_wanted = sa.exists().where(wanted.c.id == row.id)
    pair = [sa.column("earlier", Uuid), sa.column("later", Uuid)]
    near, compared = recordset("neighbours", pair), recordset("compared", pair)

    def _is_in(pairs: sa.FromClause) -> sa.ColumnElement[bool]:
        same = (pairs.c.earlier == row.from_version_id) & (pairs.c.later == row.to_version_id)
        return sa.exists().select_from(pairs).where(same)

    of_document = row.to_version_id == sa.any_(
        sa.cast(sa.bindparam("document", type_=pg.ARRAY(sa.Text)), pg.ARRAY(Uuid))
    )
    own = row.to_version_id == sa.bindparam("own", type_=Uuid)
    gone = (
        sa.delete(decisions)
        .where(
            ~is_wanted,
            sa.or_(
                sa.and_(own, row.from_version_id.is_(None)),
                sa.and_(of_document, row.from_version_id.is_not(None), ~_is_in(near)),
            ),
        )
        .cte("gone")
    )
    again = sa.delete(decisions).where(~is_wanted, _is_in(near), _is_in(compared)).cte("again")
    insert = pg.insert(decisions).from_select(
        list(_NAMES), sa.select(*(wanted.c[name] for name in _NAMES)).order_by(wanted.c.id)
    )
    values = {name: insert.excluded[name] for name in _NAMES if name != "id"}
    differs = sa.or_(*(row[name].is_distinct_from(value) for name, value in values.items()))
    return insert.on_conflict_do_update(index_elements=[row.id], set_=values, where=differs).add_cte(gone, again)


def locked_name(document_id: UUID) -> str:
    """Return the name under which decisions about the drafts of a document are serialised."""
    return f"decisions of {document_id}"
