"""The index and SQL are compared row by row, what differs is repaired, and old tombstones go."""

from __future__ import annotations

from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.db.tables.ingest import index_outbox
from shared.index import fields, reconcile
from shared.index.client import IndexClient, Write
from shared.index.ids import chunk_id, head_id
from shared.index.reconcile import Differences, purge, sweep
from shared.index.writer import IndexWriter
from shared.settings import Settings
from shared.types import ChunkKind
from tests.index.firm import Firm
from tests.stub_embedding import StubEmbedding


@pytest.fixture
def writer(
    engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings, alias: str
) -> IndexWriter:
    return IndexWriter(engine, client, embedding, settings)


def compared(engine: sa.Engine, client: IndexClient, alias: str) -> Differences:
    with engine.connect() as connection:
        return reconcile.reconcile(connection, client, alias)


def test_equal_sides_differ_in_nothing_on_any_number_of_pages(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, firm: Firm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        firm.indexed(*(f"Teil {number}.{part}" for part in range(number)))
    writer.drain(100)
    for page in (1, 2, 3, 5000):
        monkeypatch.setattr(reconcile, "_PAGE", page)
        differences = compared(engine, client, alias)
        assert differences.none
        # 0 + 1 + ... + 6 chunks, and the bare head of the version without text.
        assert differences.compared == 22


def test_missing_and_surplus_rows_are_named_and_swept(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, firm: Firm
) -> None:
    lost, kept, never = firm.indexed("eins", "zwei"), firm.indexed("drei"), firm.version("vier")
    writer.drain(100)
    stray_version = uuid4()
    stray = str(uuid4())
    client.bulk(
        alias,
        [
            Write(str(chunk_id(lost, ChunkKind.CHUNK, 1)), 10**6, None),
            Write(
                stray,
                1,
                {
                    fields.CHUNK_ID: stray,
                    fields.DELETED: False,
                    fields.VERSION_SEQ: 99,
                    fields.DOCUMENT_VERSION_ID: str(stray_version),
                },
            ),
        ],
    )
    differences = compared(engine, client, alias)
    assert {entry.version_id for entry in differences.missing} == {lost, never}
    assert [str(entry.chunk_id) for entry in differences.surplus] == [stray]
    assert differences.compared == 2
    # The row that was deleted at a far version would win over the repair for as long as the engine remembers it:
    # move the outbox past it.
    with engine.begin() as connection:
        connection.execute(sa.text("alter sequence index_outbox_id_seq restart with 2000000"))
        assert sweep(connection, client, alias) == 3
    assert not firm.is_marked(lost)
    assert firm.is_marked(kept)
    writer.drain(100)
    assert compared(engine, client, alias).none
    with engine.begin() as connection:
        assert sweep(connection, client, alias) == 0


def test_what_is_queued_is_no_difference(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("eins")
    assert compared(engine, client, alias).none
    writer.drain(10)
    firm.write(version, [])
    assert [entry.chunk_id for entry in compared(engine, client, alias).surplus] == [
        chunk_id(version, ChunkKind.CHUNK, 0)
    ]
    assert [entry.chunk_id for entry in compared(engine, client, alias).missing] == [head_id(version)]
    firm.queue(version, stale=[chunk_id(version, ChunkKind.CHUNK, 0)])
    assert compared(engine, client, alias).none


def tombstones(client: IndexClient, alias: str) -> int:
    client.refresh(alias)
    return client.count(alias, {"term": {fields.DELETED: True}})


def test_only_tombstones_that_no_late_write_can_follow_are_purged(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, firm: Firm
) -> None:
    old, recent = firm.indexed("eins", "zwei"), firm.indexed("drei", "vier")
    writer.drain(10)
    for version in (old, recent):
        firm.queue(version, stale=firm.write(version, ["x"]))
        writer.drain(10)
    firm.queue(old)
    # Burying the old bare heads is part of every rewrite: two chunks and two heads.
    assert tombstones(client, alias) == 4
    with engine.begin() as connection:
        assert purge(connection, client, alias, older_than_s=3600) == 0
        ids = connection.execute(sa.select(index_outbox.c.id).order_by(index_outbox.c.id)).scalars().all()
        aged = sa.update(index_outbox).where(index_outbox.c.id <= ids[2])
        connection.execute(aged.values(done_at=sa.text("now() - interval '2 hours'")))
        assert purge(connection, client, alias, older_than_s=3600) == 2
    assert tombstones(client, alias) == 2
    writer.drain(10)
    assert compared(engine, client, alias).none
