"""The page that SQL cuts, against the same cut in plain Python, over random candidates, ties and walls."""

from __future__ import annotations

import random
from dataclasses import dataclass
from uuid import UUID

import pytest
import sqlalchemy as sa

from shared.access.audit import ALLOWED, AuditEntry
from shared.access.scope import CompiledAccessScope
from shared.access.service import AccessService
from shared.db.engine import recording
from shared.db.tables.audit import audit_events
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.search.verification import Cut, Given, verified
from shared.settings import Settings
from tests.world import World, caller


@dataclass(frozen=True)
class Chunk:
    id: str
    version_id: str
    document_id: str
    seq: int
    is_latest: bool
    is_visible: bool


@pytest.fixture
def stored(world: World, engine: sa.Engine) -> list[Chunk]:
    """Twelve documents of one to three versions of one to three chunks; some documents and versions are walled."""
    rng = random.Random(11)
    project = world.project("nord")
    statuses = ("final", "executed", "draft")
    hidden = set[UUID]()
    for number in range(12):
        version = world.document(project, *["Text"] * rng.randint(1, 3), title=f"{number}", status=rng.choice(statuses))
        document = world.document_of(version)
        for ordinal in range(2, rng.randint(2, 4)):
            version = world.version(
                document, *["Text"] * rng.randint(1, 3), ordinal=ordinal, status=rng.choice(statuses)
            )
            if rng.random() < 0.3:
                hidden.add(version)
        if number % 4 == 3:
            world.wall(version)
            hidden |= {document}
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "UPDATE source_objects SET acl_state = 'known' WHERE id IN "
                "(SELECT source_object_id FROM version_sources WHERE version_id = ANY(:ids))"
            ),
            {"ids": [str(one) for one in hidden]},
        )
        found = connection.execute(
            sa.select(
                chunks.c.id,
                chunks.c.version_id,
                document_versions.c.document_id,
                document_versions.c.seq,
                document_versions.c.ordinal,
                document_versions.c.status,
            )
            .join(document_versions, document_versions.c.id == chunks.c.version_id)
            .order_by(document_versions.c.seq, chunks.c.ordinal)
        ).all()
    visible = [row for row in found if row.version_id not in hidden and row.document_id not in hidden]
    latest = {}
    for row in sorted(visible, key=lambda row: (row.ordinal, row.seq)):
        if row.status in {"final", "executed"}:
            latest[row.document_id] = row.version_id
    return [
        Chunk(
            str(row.id),
            str(row.version_id),
            str(row.document_id),
            row.seq,
            latest.get(row.document_id) == row.version_id,
            row in visible,
        )
        for row in found
    ]


def expected(given: list[tuple[int, Chunk]], *, per_document: int, collapsed: bool) -> list[Chunk]:
    """The whole list of hits: visible rows, the best of each document, ties by latest final and document or place."""
    rows = [(place, at, chunk) for at, (place, chunk) in enumerate(given) if chunk.is_visible]
    kept = []
    for document in {chunk.document_id for _, _, chunk in rows}:
        own = [row for row in rows if row[2].document_id == document]
        kept += sorted(own, key=lambda row: (row[0], not row[2].is_latest, row[1]))[:per_document]
    kept.sort(key=lambda row: (row[0], row[2].document_id if collapsed else row[1]))
    return [chunk for _, _, chunk in kept]


def test_sql_cuts_the_page_that_plain_python_cuts(
    world: World, engine: sa.Engine, settings: Settings, stored: list[Chunk]
) -> None:
    rng = random.Random(5)
    assert 0 < sum(chunk.is_visible for chunk in stored) < len(stored)
    scope = _scope(engine, settings)
    uncertain = 0
    for case in range(60):
        sample = rng.sample(stored, rng.randint(0, len(stored)))
        place = 0
        given = []
        for chunk in sorted(sample, key=lambda one: (one.seq, stored.index(one))) if case % 2 else sample:
            place += rng.random() < 0.5
            given.append((place, chunk))
        collapsed = rng.random() < 0.6
        per_document = 1 if collapsed else rng.randint(1, 3)
        first, count = rng.randint(0, 6), rng.randint(1, 6)
        cut = Cut(first=first, count=count, per_document=per_document, collapsed=collapsed)
        is_all = rng.random() < 0.5
        before = _audited(engine)
        with recording(engine) as connection:
            rows = [Given(place, chunk.seq, chunk.id, chunk.id) for place, chunk in given]
            found = verified(connection, scope, rows, cut, _entry(case), is_all=is_all)
        whole = expected(given, per_document=per_document, collapsed=collapsed)
        page = whole[first : first + count]
        assert [str(row.matched_id) for row in found.rows] == [chunk.id for chunk in page]
        assert [given[row.nr - 1][1] for row in found.rows] == page
        assert [row.is_latest_final for row in found.rows] == [chunk.is_latest for chunk in page]
        assert found.hits == len(whole)
        assert found.is_certain == (is_all or len(whole) > first + count)
        uncertain += not found.is_certain
        new = _audited(engine)[len(before) :]
        assert new == ([[chunk.version_id for chunk in page]] if found.is_certain else [])
    assert 5 < uncertain < 55


def test_a_chunk_is_never_shown_under_another_version(
    engine: sa.Engine, settings: Settings, stored: list[Chunk]
) -> None:
    shown = [chunk for chunk in stored if chunk.is_visible]
    one = shown[0]
    other = next(chunk for chunk in shown if chunk.version_id != one.version_id)
    walled = next(chunk for chunk in stored if not chunk.is_visible)
    cut = Cut(first=0, count=10, per_document=9, collapsed=False)
    given = [
        Given(0, one.seq, other.id, other.id),
        Given(1, one.seq, walled.id, walled.id),
        Given(2, one.seq, one.id, walled.id),
    ]
    with recording(engine) as connection:
        found = verified(connection, _scope(engine, settings), given, cut, _entry(0), is_all=True)
    (row,) = found.rows
    assert (str(row.matched_id), row.wanted_id) == (one.id, None)


def _scope(engine: sa.Engine, settings: Settings) -> CompiledAccessScope:
    with engine.connect() as connection:
        return AccessService(engine, settings.security).compile_scope(connection, caller())


def _entry(case: int) -> AuditEntry:
    return AuditEntry(
        action="search", subject="user:anna", principals=(), outcome=ALLOWED, correlation_id=f"case {case}"
    )


def _audited(engine: sa.Engine) -> list[list[str]]:
    with engine.connect() as connection:
        found = connection.execute(sa.select(audit_events.c.detail).order_by(audit_events.c.id)).scalars()
        return [detail["version_ids"] for detail in found]
