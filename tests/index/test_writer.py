"""The outbox reaches the index: every row once, in the right order, whatever fails on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from local.waiting import wait_until
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.ingest import index_outbox
from shared.errors import EmbeddingWidthError, ProviderRefusedError, ProviderUnavailableError
from shared.index import claims, fields
from shared.index.answers import BulkItem, BulkOutcome
from shared.index.client import IndexClient, Write, connect
from shared.index.ids import chunk_id, head_id
from shared.index.row_ref import LIGHT_ROWS, RowRef
from shared.index.writer import DrainReport, IndexWriter
from shared.providers.embedding.protocol import Vector
from shared.settings import Settings
from shared.types import ChunkKind, OutboxOperation, VersionId, VersionStatus
from tests.index.firm import Firm
from tests.stub_embedding import StubEmbedding


@pytest.fixture
def writer(
    engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings, alias: str
) -> IndexWriter:
    return IndexWriter(engine, client, embedding, settings)


def first(version_id: VersionId, ordinal: int = 0) -> str:
    return str(chunk_id(version_id, ChunkKind.CHUNK, ordinal))


def row(client: IndexClient, alias: str, identifier: str) -> dict[str, Any] | None:
    """The stored row, tombstones and all."""
    if not _is_there(client, alias, identifier):
        return None
    return dict(client.request("GET", f"/{alias}/_source/{identifier}"))


def _is_there(client: IndexClient, alias: str, identifier: str) -> bool:
    client.refresh(alias)
    return client.count(alias, {"ids": {"values": [identifier]}}) == 1


def live(client: IndexClient, alias: str) -> set[str]:
    """The ids of all rows that are no tombstones."""
    client.refresh(alias)
    body = {"query": {"term": {fields.DELETED: False}}, "size": 1000, **LIGHT_ROWS}
    return {found.chunk_id for found in client.search(alias, body).rows}


def test_a_version_is_written_whole_and_marked(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm, embedding: StubEmbedding, engine: sa.Engine
) -> None:
    version = firm.indexed("Die Mietminderung", "Zweiter Teil", title="Vertrag\u00a0Nord", doc_type="lease",
                           doc_type_ancestors=["contract"], identifiers=[
                               {"kind": "file", "canonical": "1 C 4/16", "raw": "1 C 4.16"},
                               {"kind": "junk", "canonical": "ä" * 200, "raw": "x" * 256}])  # fmt: skip
    assert writer.drain(10) == DrainReport(versions_indexed=1, rows_written=2)
    assert firm.is_marked(version)
    assert [(entry.attempts, entry.error, entry.done_at is not None) for entry in firm.entries()] == [(1, None, True)]
    assert live(client, alias) == {first(version), first(version, 1)}
    found = row(client, alias, first(version))
    assert found is not None
    assert found[fields.TEXT_PARTS] == "miet minderung"
    assert found[fields.TITLE] == "Vertrag Nord"
    assert found[fields.DOC_TYPE_ANCESTORS] == ["contract", "lease"]
    # 200 umlauts are 400 bytes: dropped; 256 letters are 256 bytes: kept.
    assert found[fields.IDENTIFIERS] == ["1 C 4/16", "1 C 4.16", "x" * 256]
    assert (found[fields.DOC_DATE], found[fields.IS_HEAD], found[fields.DELETED]) == ("2024-03-01", True, False)
    assert embedding.calls == [
        [f"Vertrag Nord | lease | Nordwerk ./. Südbau\n{text}" for text in ("Die Mietminderung", "Zweiter Teil")]
    ]
    with engine.connect() as connection:
        assert None not in connection.execute(sa.select(chunks.c.embedded_sha256)).scalars().all()


def test_a_light_row_says_all_that_ranking_needs(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("Miete", status="executed")
    writer.drain(10)
    client.refresh(alias)
    [[found]] = client.multi_search(alias, [{"query": {"match": {fields.TEXT: "Miete"}}, **LIGHT_ROWS}])
    source = row(client, alias, first(version))
    assert source is not None
    assert found.chunk_id == first(version)
    assert found.ref == RowRef(
        first(version), source["document_id"], source["version_seq"], 0, ChunkKind.CHUNK, VersionStatus.EXECUTED
    )


def test_english_chunks_go_to_the_english_field(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("The tenant pays the rent", language="en")
    writer.drain(10)
    found = row(client, alias, first(version))
    assert found is not None
    assert found[fields.TEXT_EN] == "The tenant pays the rent"
    assert fields.TEXT not in found
    assert fields.TEXT_PARTS not in found


def test_each_version_has_one_head_even_without_text(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    bare = firm.indexed()
    firm.indexed("eins", "zwei")
    with_profile = firm.version("eins", "zwei")
    with firm.engine.begin() as connection:
        profile = chunk_id(with_profile, ChunkKind.PROFILE, -1)
        connection.execute(
            sa.insert(chunks).values(
                id=profile,
                version_id=with_profile,
                kind="profile",
                ordinal=-1,
                text="Title: Mietvertrag",
                language="de",
            )
        )
    firm.queue(with_profile)
    assert writer.drain(10).versions_indexed == 3
    client.refresh(alias)
    answer = client.search(
        alias, {"query": {"term": {fields.IS_HEAD: True}}, "size": 10, "track_total_hits": True, **LIGHT_ROWS}
    )
    assert answer.total == 3
    heads = {found.chunk_id for found in answer.rows}
    assert heads >= {str(head_id(bare)), str(profile)}
    bare_row = row(client, alias, str(head_id(bare)))
    assert bare_row is not None
    assert bare_row[fields.TITLE] == "Mietvertrag"
    assert not {fields.TEXT, fields.EMBEDDING} & bare_row.keys()
    # When the text arrives, the bare head is buried.
    firm.write(bare, ["endlich Text"])
    firm.queue(bare)
    writer.drain(10)
    assert str(head_id(bare)) not in live(client, alias)
    assert first(bare) in live(client, alias)


def test_several_entries_of_a_version_are_one_write_at_the_newest(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm, embedding: StubEmbedding
) -> None:
    version = firm.indexed("alt", "weg")
    gone = firm.write(version, ["neu"])
    firm.queue(version, stale=gone)
    newest = firm.queue(version)
    assert writer.drain(10).versions_indexed == 1
    assert len(embedding.calls) == 1
    assert {entry.done_at is not None for entry in firm.entries()} == {True}
    found = row(client, alias, first(version))
    assert found is not None
    assert (found[fields.TEXT], found[fields.WRITE_VERSION]) == ("neu", newest)
    assert live(client, alias) == {first(version)}


def test_chunks_that_are_gone_are_buried_and_stay_so_when_a_late_write_arrives(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("eins", "zwei")
    writer.drain(10)
    old = firm.entries()[0].id
    firm.queue(version, stale=firm.write(version, ["eins"]))
    writer.drain(10)
    assert live(client, alias) == {first(version)}
    [late] = client.bulk(alias, [Write(first(version, 1), old, {"chunk_id": first(version, 1), fields.DELETED: False})])
    assert late.outcome is BulkOutcome.NEWER
    assert live(client, alias) == {first(version)}


def test_a_deleted_version_is_buried_whether_sql_still_has_it_or_not(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    kept, lost = firm.indexed("eins"), firm.indexed("zwei")
    writer.drain(10)
    firm.queue(kept, OutboxOperation.DELETE)
    stale = [chunk_id(lost, ChunkKind.CHUNK, 0)]
    firm.remove(lost)
    firm.queue(lost, OutboxOperation.DELETE, stale)
    assert writer.drain(10).versions_removed == 2
    assert live(client, alias) == set()
    buried = row(client, alias, first(lost))
    assert buried is not None
    assert buried.keys() == {"chunk_id", "document_version_id", "deleted", "write_version"}


def test_a_version_deleted_after_it_was_queued_never_appears(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("eins")
    firm.remove(version)
    writer.drain(10)
    assert live(client, alias) == set()
    assert firm.entries()[0].done_at is not None


def test_a_newer_entry_keeps_the_version_unmarked(writer: IndexWriter, firm: Firm) -> None:
    version = firm.indexed("eins")
    with firm.engine.begin() as connection:
        [claim] = claims.claim(connection, limit=10, lease_s=60)
    firm.queue(version)
    with firm.engine.begin() as connection:
        claims.finish(connection, [claim])
    assert not firm.is_marked(version)
    assert writer.drain(10).versions_indexed == 1
    assert firm.is_marked(version)


def test_a_version_queued_while_it_is_marked_stays_unmarked(writer: IndexWriter, firm: Firm, engine: sa.Engine) -> None:
    version = firm.indexed("eins")
    with engine.begin() as queueing:
        unmark = sa.update(document_versions).where(document_versions.c.id == version).values(indexed_at=None)
        queueing.execute(unmark)
        drain = threading.Thread(target=writer.drain, args=(1,))
        drain.start()
        assert wait_until(lambda: _waiting(engine) == 1, timeout_s=20)
        entry = {"version_id": version, "version_seq": 1, "operation": OutboxOperation.INDEX}
        queueing.execute(sa.insert(index_outbox).values(**entry))
    drain.join()
    assert [one.done_at is not None for one in firm.entries()] == [True, False]
    assert not firm.is_marked(version)


def _waiting(engine: sa.Engine) -> int:
    """How many sessions of this database wait for a lock."""
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with engine.connect() as connection:
        return int(connection.execute(sa.text(waiting)).scalar_one())


def test_an_entry_that_commits_late_with_a_lower_number_still_brings_its_state(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("alt")
    writer.drain(10)
    firm.write(version, ["neu"])
    with firm.engine.begin() as connection:
        late = "insert into index_outbox (id, version_id, version_seq, operation) overriding system value"
        connection.execute(sa.text(f"{late} values (0, :version, 1, 'index')"), {"version": version})
    writer.drain(10)
    found = row(client, alias, first(version))
    assert found is not None
    assert found[fields.TEXT] == "neu"


def test_two_writers_share_the_work_and_write_each_version_once(
    engine: sa.Engine, settings: Settings, alias: str, client: IndexClient, firm: Firm
) -> None:
    versions = [firm.indexed(f"Vertrag {number}") for number in range(60)]
    models = [StubEmbedding(dimensions=16), StubEmbedding(dimensions=16)]
    start = threading.Barrier(2)
    reports: list[DrainReport] = []

    def work(model: StubEmbedding) -> None:
        mine = connect(settings.opensearch)
        start.wait()
        reports.append(IndexWriter(engine, mine, model, settings).drain(1000))
        mine.close()

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.versions_indexed for report in reports) == 60
    asked = [text for model in models for call in model.calls for text in call]
    assert len(asked) == len(set(asked)) == 60
    assert live(client, alias) == {first(version) for version in versions}
    assert {entry.attempts for entry in firm.entries()} == {1}


def test_a_version_in_another_workers_hands_is_left_alone(writer: IndexWriter, firm: Firm, engine: sa.Engine) -> None:
    version = firm.indexed("eins")
    with engine.begin() as connection:
        [held] = claims.claim(connection, limit=10, lease_s=60)
    firm.queue(version)
    assert writer.drain(10) == DrainReport()
    firm.make_all_due()  # the other worker died: its lease is over
    assert writer.drain(10).versions_indexed == 1
    with engine.begin() as connection:
        assert claims.renew(connection, [held], lease_s=60) == []


class _Killed(BaseException):
    pass


def test_a_kill_between_write_and_mark_costs_a_second_write_only(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = firm.indexed("eins", "zwei")
    with monkeypatch.context() as patch:

        def die(*_: Any) -> None:
            raise _Killed

        patch.setattr(claims, "finish", die)
        with pytest.raises(_Killed):
            writer.drain(10)
    assert live(client, alias) == {first(version), first(version, 1)}
    assert not firm.is_marked(version)
    assert writer.drain(10) == DrainReport()
    firm.make_all_due()
    assert writer.drain(10) == DrainReport(versions_indexed=1, rows_written=2)
    assert firm.is_marked(version)
    assert live(client, alias) == {first(version), first(version, 1)}


class _HalfRefusing(IndexClient):
    """Reports one row as refused or not taken, as an engine would."""

    def __init__(self, inner: IndexClient, wrong: str, outcome: BulkOutcome) -> None:
        self._inner, self._wrong, self._outcome = inner, wrong, outcome

    def bulk(self, alias: str, writes: Sequence[Write], **more: Any) -> list[BulkItem]:
        good = iter(self._inner.bulk(alias, [one for one in writes if one.chunk_id != self._wrong], **more))
        return [
            BulkItem(one.chunk_id, self._outcome, "mapper_parsing_exception: bad")
            if one.chunk_id == self._wrong
            else next(good)
            for one in writes
        ]


@pytest.mark.parametrize("outcome", [BulkOutcome.REFUSED, BulkOutcome.UNAVAILABLE])
def test_a_version_with_a_row_that_is_not_there_is_not_indexed(
    outcome: BulkOutcome,
    engine: sa.Engine,
    client: IndexClient,
    embedding: StubEmbedding,
    settings: Settings,
    alias: str,
    firm: Firm,
) -> None:
    broken, fine = firm.indexed("eins", "zwei"), firm.indexed("drei")
    half = _HalfRefusing(client, first(broken, 1), outcome)
    report = IndexWriter(engine, half, embedding, settings).drain(10)
    assert (report.versions_indexed, report.versions_failed) == (1, 1)
    assert (firm.is_marked(broken), firm.is_marked(fine)) == (False, True)
    entry = firm.entries()[0]
    assert entry.done_at is None
    assert first(broken, 1) in entry.error
    assert "mapper_parsing_exception" in entry.error
    firm.make_all_due()
    assert IndexWriter(engine, client, embedding, settings).drain(10).versions_indexed == 1
    assert firm.is_marked(broken)


def test_each_failure_waits_twice_as_long(firm: Firm, engine: sa.Engine) -> None:
    firm.indexed("eins")
    waits = []
    for _ in range(4):
        firm.make_all_due()
        with engine.begin() as connection:
            [held] = claims.claim(connection, limit=1, lease_s=60)
            claims.fail(connection, held, "away")
            waited = sa.text("select extract(epoch from next_try_at - now())::int from index_outbox")
            waits.append(connection.execute(waited).scalar_one())
    assert waits == [5, 10, 20, 40]


class _Failing(StubEmbedding):
    """A model that fails, or refuses texts with a certain word."""

    def __init__(self, error: Exception, word: str = "") -> None:
        super().__init__(dimensions=16)
        self._error, self._word = error, word

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if any(self._word in text for text in texts):
            raise self._error
        return super().embed_passages(texts)


def test_a_model_that_is_away_leaves_everything_queued(
    engine: sa.Engine, client: IndexClient, settings: Settings, alias: str, firm: Firm
) -> None:
    firm.indexed("eins")
    report = IndexWriter(engine, client, _Failing(ProviderUnavailableError("throttled")), settings).drain(10)
    assert report == DrainReport(versions_failed=1, error="ProviderUnavailableError: throttled")
    [entry] = firm.entries()
    assert (entry.done_at, entry.attempts, entry.error) == (None, 1, "ProviderUnavailableError: throttled")


def test_a_text_that_the_model_refuses_is_named_and_costs_no_other_version(
    engine: sa.Engine, client: IndexClient, settings: Settings, alias: str, firm: Firm
) -> None:
    bad, good = firm.indexed("eins", "giftig"), firm.indexed("zwei")
    model = _Failing(ProviderRefusedError("content policy"), "giftig")
    report = IndexWriter(engine, client, model, settings).drain(10)
    assert (report.versions_indexed, report.versions_failed, report.error) == (1, 1, None)
    assert (firm.is_marked(bad), firm.is_marked(good)) == (False, True)
    assert firm.entries()[0].error == f"chunk {first(bad, 1)}: content policy"


def test_a_model_of_another_width_fails_loudly_and_loses_nothing(
    engine: sa.Engine, client: IndexClient, settings: Settings, alias: str, firm: Firm
) -> None:
    firm.indexed("eins")

    class Lying(StubEmbedding):
        def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            return [[1.0] * 8 for _ in texts]

    with pytest.raises(EmbeddingWidthError, match="16"):
        IndexWriter(engine, client, Lying(dimensions=16), settings).drain(10)
    [entry] = firm.entries()
    assert entry.done_at is None
    assert "EmbeddingWidthError" in entry.error


def test_an_engine_that_is_down_leaves_everything_queued(
    engine: sa.Engine, embedding: StubEmbedding, settings: Settings, firm: Firm
) -> None:
    away = settings.opensearch.model_copy(update={"url": "http://127.0.0.1:9", "deadline_s": 1.0})
    client = connect(away)
    versions = [firm.indexed(f"Vertrag {number}") for number in range(40)]
    report = IndexWriter(engine, client, embedding, settings).drain(100)
    client.close()
    # It stops at the first batch: the rest stays due at once, without an attempt.
    assert report.versions_failed == 32
    assert report.error is not None
    assert not any(firm.is_marked(version) for version in versions)
    assert sorted(entry.attempts for entry in firm.entries()) == [0] * 8 + [1] * 32


def test_a_missing_index_is_never_made_by_a_write(
    engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings, firm: Firm
) -> None:
    firm.indexed("eins")
    report = IndexWriter(engine, client, embedding, settings).drain(10)
    assert report.versions_failed == 1
    assert client.request("GET", f"/{settings.retrieval.index_name}*") == {}


def test_statements_do_not_grow_with_the_versions(
    writer: IndexWriter, engine: sa.Engine, firm: Firm, statements: list[str]
) -> None:
    firm.indexed("eins")
    statements.clear()
    writer.drain(100)
    once = len(statements)
    for number in range(10):
        firm.indexed("eins", f"zwei {number}")
    statements.clear()
    writer.drain(100)
    assert len(statements) == once


@pytest.fixture
def statements(engine: sa.Engine, firm: Firm) -> Iterator[list[str]]:
    """Every statement as it is sent."""
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "index_outbox" in statement or "chunks" in statement or "document_versions" in statement:
            sent.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(engine, "before_cursor_execute", note)


def test_the_head_does_not_know_the_title_of_a_later_version(
    writer: IndexWriter, client: IndexClient, alias: str, firm: Firm
) -> None:
    version = firm.indexed("eins", title="Entwurf")
    with firm.engine.begin() as connection:
        connection.execute(sa.update(documents).values(title="Geheime Endfassung", latest_final_version_id=uuid4()))
    writer.drain(10)
    found = row(client, alias, first(version))
    assert found is not None
    assert "Geheime" not in str(found)
