"""Documents, versions and observations as rows: written once, in one statement for each kind of change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest import chunk_store
from shared.ingest.facts import Facts, Reading
from shared.ingest.families import Link
from shared.ingest.parties_rows import replace_parties, write_parties
from shared.ingest.places import PlaceIds
from shared.ingest.recordset import recordset
from shared.types import DocumentId, SourceObjectId, VersionId

_FACTS = ("title", "status", "status_evidence", "facts")
_SHOWN = (
    "title", "doc_type", "doc_type_ancestors", "language", "doc_date", "doc_date_precision", "doc_date_raw",
    "identifiers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that is to be written: its ids are chosen by the writer, the object shows it."""

    version_id: VersionId
    document_id: DocumentId
    sha256: str
    mime: str
    reading: Reading
    object_id: SourceObjectId
    ordinal: int

    @property
    def facts(self) -> Facts:
        """What may be shown of it while one object alone shows it: its name counts."""
        return self.reading.named


@dataclass(frozen=True, slots=True)
class ChainVersion:
    """A version of a document as it is stored."""

    version_id: VersionId
    ordinal: int | None
    sha256: str
    mime: str
    facts: Facts
    is_comparison: bool = False

    @property
    def link(self) -> Link:
        """What decides about its place in the chain."""
        return Link(self.version_id, self.facts.status, self.facts.number, self.is_comparison)


def insert_document(
    connection: sa.Connection, new: NewVersion, place: PlaceIds, profile: Sequence[chunk_store.Row]
) -> None:
    """Write a document with its first version, the observation, and the profile if there is one."""
    body = {
        **_version_parameters(new),
        **{f"document_{name}": value for name, value in document_values(new.facts).items()},
        "project_id": place.project_id,
        "matter_id": place.matter_id,
        "profile": chunk_store.as_json(profile),
    }
    connection.execute(_insert_document(), body)
    write_parties(connection, new.version_id, new.facts.parties)


def insert_version(connection: sa.Connection, new: NewVersion) -> None:
    """Write a further version of a document, and the observation."""
    connection.execute(_insert_version(), _version_parameters(new))
    write_parties(connection, new.version_id, new.facts.parties)


def observe(connection: sa.Connection, version_id: VersionId, object_id: SourceObjectId) -> None:
    """Link a version to an object that shows it too."""
    insert = pg.insert(version_sources).values(version_id=version_id, source_object_id=object_id)
    connection.execute(insert.on_conflict_do_nothing())


def load_chain(connection: sa.Connection, document_id: DocumentId) -> list[ChainVersion]:
    """Return the versions of a document in their order."""
    names = ("id", "ordinal", "sha256", "mime", "facts", "is_comparison")
    rows = connection.execute(
        sa.select(*(document_versions.c[name] for name in names))
        .where(document_versions.c.document_id == document_id)
        .order_by(document_versions.c.ordinal, document_versions.c.seq)
    )
    return [
        ChainVersion(
            VersionId(row.id), row.ordinal, row.sha256, row.mime, Facts.from_json(row.facts), row.is_comparison
        )
        for row in rows
    ]


def describe(connection: sa.Connection, version_id: VersionId, facts: Facts, *, content: Facts) -> None:
    """Make these the version's facts; `content` are those of its content alone."""
    values = _facts_values(facts, content)
    connection.execute(sa.update(document_versions).where(document_versions.c.id == version_id).values(values))
    replace_parties(connection, version_id, facts.parties)


def number(connection: sa.Connection, chain: Sequence[tuple[VersionId, int | None]]) -> None:
    """Write the numbers of a chain that is given in order with those it has; what is right is not touched."""
    wrong = [
        {"id": str(version), "ordinal": wanted}
        for wanted, (version, ordinal) in enumerate(chain, start=1)
        if ordinal != wanted
    ]
    if not wrong:
        return
    given = recordset("numbers", [document_versions.c.id, document_versions.c.ordinal])
    connection.execute(
        sa.update(document_versions).where(document_versions.c.id == given.c.id).values(ordinal=given.c.ordinal),
        {"numbers": wrong},
    )


def show(connection: sa.Connection, document_id: DocumentId, version_id: VersionId, facts: Facts) -> None:
    """Let a document show this version; a document that does so already is not touched."""
    values = {**document_values(facts), "latest_final_version_id": version_id}
    differs = [
        documents.c[name].is_distinct_from(sa.cast(value, documents.c[name].type)) for name, value in values.items()
    ]
    connection.execute(
        sa.update(documents)
        .where(documents.c.id == document_id, sa.or_(*differs))
        .values(updated_at=sa.func.now(), **values)
    )


def document_values(facts: Facts) -> dict[str, Any]:
    """Return what a document's row shows of its version's facts."""
    return {
        "title": facts.title,
        "doc_type": facts.doc_type,
        "doc_type_ancestors": list(facts.doc_type_ancestors),
        "language": facts.language,
        "doc_date": facts.doc_date.day,
        "doc_date_precision": facts.doc_date.precision if facts.doc_date.day else None,
        "doc_date_raw": facts.doc_date.raw,
        "identifiers": [dict(item) for item in facts.identifiers],
    }


def _facts_values(facts: Facts, content: Facts) -> dict[str, Any]:
    shown, plain = facts.to_json(), content.to_json()
    # What is left of it when its file's name no longer counts: `shared.ingest.renames` needs no text for that.
    without_name = {key: value for key, value in plain.items() if value != shown[key]}
    return {
        "title": facts.title,
        "status": facts.status,
        "status_evidence": [dict(item) for item in facts.status_evidence],
        "facts": {**shown, "content": without_name} if without_name else shown,
    }


def _version_parameters(new: NewVersion) -> dict[str, Any]:
    return {
        "version_id": new.version_id,
        "document_id": new.document_id,
        "sha256": new.sha256,
        "mime": new.mime,
        "object_id": new.object_id,
        "ordinal": new.ordinal,
        **{f"version_{name}": value for name, value in _facts_values(new.facts, new.reading.content).items()},
    }


def _version_insert() -> sa.Insert:
    size = sa.select(source_objects.c.size_bytes).where(source_objects.c.id == sa.bindparam("object_id"))
    return sa.insert(document_versions).values(
        id=sa.bindparam("version_id"),
        document_id=sa.bindparam("document_id"),
        sha256=sa.bindparam("sha256"),
        mime=sa.bindparam("mime"),
        size_bytes=size.scalar_subquery(),
        ordinal=sa.bindparam("ordinal"),
        **{name: sa.bindparam(f"version_{name}", type_=document_versions.c[name].type) for name in _FACTS},
    )


def _observation() -> sa.Insert:
    return sa.insert(version_sources).values(
        version_id=sa.bindparam("version_id"), source_object_id=sa.bindparam("object_id")
    )


@cache
def _insert_version() -> sa.Insert:
    return _observation().add_cte(_version_insert().cte("version"))


@cache
def _insert_document() -> sa.Insert:
    document = sa.insert(documents).values(
        id=sa.bindparam("document_id"),
        project_id=sa.bindparam("project_id"),
        matter_id=sa.bindparam("matter_id"),
        latest_final_version_id=sa.bindparam("version_id"),
        **{name: sa.bindparam(f"document_{name}", type_=documents.c[name].type) for name in _SHOWN},
    )
    given = chunk_store.given("profile")
    profile = sa.insert(chunks).from_select(
        list(chunk_store.NAMES), sa.select(*(given.c[n] for n in chunk_store.NAMES))
    )
    # References are checked at the end of the statement.
    return _observation().add_cte(document.cte("document"), _version_insert().cte("version"), profile.cte("profile"))
