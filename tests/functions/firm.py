"""A small invented firm with one wall of each kind, ingested and indexed for real.

Behind each wall lie canaries: words that stand nowhere else, one for each place from which something could leak.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from shared.access.grants import add_document_grant, add_project_grant
from shared.access.mirror import replace_object_acl
from shared.db.tables.catalog import document_parties, document_versions, matters, parties, projects
from shared.db.tables.sources import source_objects, sources, version_sources
from shared.runtime.bootstrap import Services
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import DocumentId, Effect, ProjectId, SourceKind, SourceObjectId

CONTROL = "nord/Mietvertrag Kontrollbau.txt"
NOW = datetime(2026, 12, 1, tzinfo=UTC)

ABLAGE = SourceConfig(
    project=ProjectRef(key="nord", title="Projekt Nord"),
    matter=MatterRef(key="N-1", title="Akte Nord"),
    places=(
        PlaceRule(
            prefix="sued",
            project=ProjectRef(key="sued-canprojkey", title="Projekt Canprojtitle"),
            matter=MatterRef(
                key="canmatterkey", title="Canmattertitle ./. Bauer", reference_numbers=("canreference/24",)
            ),
        ),
    ),
)
EXTERN = SourceConfig(kind=SourceKind.EXTERNAL, project=ProjectRef(key="nord", title="Projekt Nord"))

FILES: dict[str, dict[str, str]] = {
    "ablage": {
        CONTROL: "Mietvertrag Kontrollbau\n\nDie Kündigungsfrist beträgt drei Monate. Az. 3 O 111/22.",
        "nord/Kaufvertrag v2 final.txt": "Kaufvertrag\n\nDer Kaufpreis ist fällig. Die Kündigungsfrist entfällt.",
        "nord/Kaufvertrag v1 Entwurf 19870713.txt": "Kaufvertrag candrafttitle\n\nKündigungsfrist candrafttext.",
        "nord/Vermerk candenyname.txt": "Vermerk candenytitle\n\nDie Kündigungsfrist candenytext gilt.",
        "nord/Protokoll.txt": "Protokoll der Sitzung\n\nÜber die Kündigungsfrist wurde gesprochen.",
        "geheim cancopypath/Protokoll.txt": "Protokoll der Sitzung\n\nÜber die Kündigungsfrist wurde gesprochen.",
        "nord/Altlast cangonename.txt": "Altlast cangonetitle\n\nDie Kündigungsfrist cangonetext ist vorbei.",
        "sued/Klage canname.txt": (
            "Klage cantitle\n\nDie Kündigungsfrist cantext ist streitig. Landgericht, Az. 7 O 90210/23."
        ),
    },
    "dms": {
        "Beschluss canexternname.txt": "Beschluss canexterntitle\n\nDie Kündigungsfrist canexterntext wird verlängert.",
    },
}


@dataclass(frozen=True)
class Wall:
    """What lies behind it, and who may see it."""

    name: str
    canaries: tuple[str, ...]
    open_to: frozenset[str]
    # Found by, but never shown to anybody.
    unshown: tuple[str, ...] = ()


@dataclass
class Firm:
    """The firm's parts and the ids of its files."""

    parts: Services
    documents: dict[str, UUID] = field(default_factory=dict)
    versions: dict[str, UUID] = field(default_factory=dict)
    objects: dict[str, UUID] = field(default_factory=dict)
    projects: dict[str, UUID] = field(default_factory=dict)
    matters: dict[str, UUID] = field(default_factory=dict)
    sources: dict[str, UUID] = field(default_factory=dict)

    def allow_document(self, path: str, principal: str) -> None:
        with self.parts.engine.begin() as connection:
            add_document_grant(
                connection, DocumentId(self.documents[path]), principal, Effect.ALLOW, by="test", reason="test"
            )


PERSONAS: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "anna": ("anna@kanzlei.example", ("nord-team",), False),
    "bruno": ("bruno@kanzlei.example", ("nord-team",), False),
    "clara": ("clara@kanzlei.example", ("sued-team",), False),
    "paula": ("paula@kanzlei.example", ("nord-team", "partner"), False),
    "dora": ("dora@kanzlei.example", (), False),
    "root": ("root@kanzlei.example", (), True),
}

WALLS = (
    Wall(
        "another project",
        (
            "canprojtitle",
            "canprojkey",
            "canmattertitle",
            "canmatterkey",
            "cantitle",
            "cantext",
            "canname",
            "canparty",
            "90210/23",
            "90210",
        ),
        frozenset({"clara", "root"}),
        unshown=("canreference",),
    ),
    Wall("a draft beside a final", ("19870713", "candrafttitle", "candrafttext"), frozenset({"paula", "root"})),
    Wall(
        "a person kept out of one document",
        ("candenyname", "candenytitle", "candenytext"),
        frozenset({"anna", "paula", "root"}),
    ),
    Wall(
        "a copy at a place that is not theirs",
        ("cancopypath",),
        frozenset({"paula", "root"}),
    ),
    Wall(
        "an external system",
        ("canexternname", "canexterntitle", "canexterntext"),
        frozenset({"paula", "root"}),
    ),
    Wall("a file that is gone", ("cangonename", "cangonetitle", "cangonetext"), frozenset()),
)


def found_firm(parts: Services) -> Firm:
    """Ingest the firm's files, put up its walls and index everything."""
    firm = Firm(parts)
    service = parts.ingest_service(index=False)
    for source, config in (("ablage", ABLAGE), ("dms", EXTERN)):
        given = [GivenDocument(path, path, text.encode()) for path, text in FILES[source].items()]
        report = service.ingest(GivenDocuments(source, given, config))
        assert all(file.reason is None for file in report.files), report
    with parts.engine.begin() as connection:
        _learn_ids(connection, firm)
        _put_up_walls(connection, firm)
        _name_party(connection, firm.documents["sued/Klage canname.txt"])
    parts.writer.drain(100)
    parts.index.refresh(parts.settings.retrieval.index_name)
    return firm


def _learn_ids(connection: sa.Connection, firm: Firm) -> None:
    rows = connection.execute(
        sa.select(
            source_objects.c.path,
            source_objects.c.id,
            document_versions.c.id.label("version_id"),
            document_versions.c.document_id,
        )
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
    )
    # The control document first, so that a few probes are enough to meet it.
    for row in sorted(rows, key=lambda row: (row.path != CONTROL, row.path)):
        firm.objects[row.path], firm.versions[row.path], firm.documents[row.path] = row.id, row.version_id, row[3]
    firm.projects.update({row.key: row.id for row in connection.execute(sa.select(projects))})
    firm.matters.update({row.key: row.id for row in connection.execute(sa.select(matters))})
    firm.sources.update({row.name: row.id for row in connection.execute(sa.select(sources))})
    assert len(firm.objects) == sum(map(len, FILES.values()))
    # What the walls of this firm are about.
    assert firm.documents["nord/Kaufvertrag v2 final.txt"] == firm.documents["nord/Kaufvertrag v1 Entwurf 19870713.txt"]
    assert firm.versions["nord/Protokoll.txt"] == firm.versions["geheim cancopypath/Protokoll.txt"]


def _put_up_walls(connection: sa.Connection, firm: Firm) -> None:
    def acl(path: str, *principals: str) -> None:
        entries = [(principal, Effect.ALLOW) for principal in principals]
        replace_object_acl(connection, SourceObjectId(firm.objects[path]), entries, as_of=NOW)

    for key, group in (("nord", "group:nord-team"), ("sued-canprojkey", "group:sued-team")):
        project = ProjectId(firm.projects[key])
        add_project_grant(connection, project, group, Effect.ALLOW, by="test", reason="team")
    denied = DocumentId(firm.documents["nord/Vermerk candenyname.txt"])
    add_document_grant(connection, denied, "user:bruno@kanzlei.example", Effect.DENY, by="test", reason="conflict")
    # A group of the firm's directory as an object names it: a source's own groups are qualified.
    acl("nord/Kaufvertrag v1 Entwurf 19870713.txt", "user:paula@kanzlei.example")
    acl("geheim cancopypath/Protokoll.txt", "user:paula@kanzlei.example")
    acl("Beschluss canexternname.txt", "user:paula@kanzlei.example")
    connection.execute(
        sa.update(source_objects)
        .where(source_objects.c.id == firm.objects["nord/Altlast cangonename.txt"])
        .values(deleted_at=NOW)
    )


def _name_party(connection: sa.Connection, document_id: UUID) -> None:
    party: Any = connection.execute(
        sa.insert(parties).values(name="Canparty GmbH", normalised_name="canparty gmbh").returning(parties.c.id)
    ).scalar_one()
    versions = connection.execute(
        sa.select(document_versions.c.id).where(document_versions.c.document_id == document_id)
    ).scalars()
    rows = [
        {"version_id": one, "party_id": party, "role": "client", "name": "Canparty GmbH", "evidence": {}}
        for one in versions
    ]
    assert rows
    connection.execute(sa.insert(document_parties), rows)
