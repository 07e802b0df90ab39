"""A rebuild is whole before anybody sees it, loses no write, and can be stopped anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from shared.db.tables.content import chunks
from shared.errors import (
    ConflictError,
    IndexComparisonError,
    IndexMappingError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from shared.index import backfill, fields, generations, mapping
from shared.index import reindex as reindex_module
from shared.index.analysis import analysis_settings
from shared.index.client import IndexClient, Write, connect
from shared.index.ensure import check_index, ensure_index, live_index
from shared.index.ids import chunk_id, head_id
from shared.index.reconcile import reconcile
from shared.index.reindex import Phase, Progress, drop_old, finish_interrupted, reindex
from shared.index.writer import IndexWriter
from shared.providers.embedding.protocol import Vector
from shared.settings import Settings
from shared.types import ChunkKind, OutboxOperation, VersionId
from tests.index.firm import Firm
from tests.stub_embedding import StubEmbedding


@pytest.fixture
def writer(
    engine: sa.Engine, client: IndexClient, embedding: StubEmbedding, settings: Settings, alias: str
) -> IndexWriter:
    return IndexWriter(engine, client, embedding, settings)


@pytest.fixture
def wider(settings: Settings) -> Settings:
    """The settings of a model with longer vectors."""
    return settings.model_copy(update={"retrieval": settings.retrieval.model_copy(update={"embedding_dimensions": 24})})


def live_name(client: IndexClient, alias: str) -> str:
    live = live_index(client, alias)
    assert live is not None
    return live.name


def texts_of(client: IndexClient, alias: str) -> dict[str, str]:
    """The text of every row that is no tombstone."""
    client.refresh(alias)
    body = {"query": {"term": {fields.DELETED: False}}, "size": 1000}
    hits = client.request("POST", f"/{alias}/_search", body)["hits"]["hits"]
    return {hit["_id"]: hit["_source"].get(fields.TEXT, "") for hit in hits}


def texts_in_sql(engine: sa.Engine) -> dict[str, str]:
    with engine.connect() as connection:
        return {str(row.id): row.text for row in connection.execute(sa.select(chunks.c.id, chunks.c.text))}


def assert_as_in_sql(engine: sa.Engine, client: IndexClient, alias: str) -> None:
    with engine.connect() as connection:
        differences = reconcile(connection, client, alias)
    assert differences.none, differences
    texts = {identifier: text for identifier, text in texts_of(client, alias).items() if text}
    assert texts == texts_in_sql(engine)


def before(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> None:
    """Do something once, just before a step of the rebuild."""
    real, left = getattr(module, name), [act]

    def step(*args: Any, **kwargs: Any) -> Any:
        if left:
            left.pop()()
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, step)


def test_another_width_gets_an_index_of_its_own_and_the_old_one_stays_until_dropped(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, wider: Settings, firm: Firm
) -> None:
    for number in range(5):
        firm.indexed(f"Vertrag {number}", "Anlage")
    bare = firm.indexed()
    writer.drain(100)
    old, model = live_name(client, alias), StubEmbedding(dimensions=24)
    with pytest.raises(IndexMappingError, match="ki reindex"):
        ensure_index(client, wider.retrieval, embedding_signature=model.signature)

    report = reindex(engine, client, model, wider)

    assert (report.versions, report.rows_compared, report.resumed) == (6, 11, False)
    assert report.previous == [old]
    assert report.waiting == 0
    assert check_index(client, wider.retrieval, embedding_signature=model.signature) == report.index != old
    assert ensure_index(client, wider.retrieval, embedding_signature=model.signature) == report.index
    assert_as_in_sql(engine, client, alias)
    assert str(head_id(bare)) in texts_of(client, alias)
    query = {"knn": {fields.EMBEDDING: {"vector": model.embed_queries(["Vertrag 3"])[0], "k": 3}}}
    assert len(client.search(alias, {"query": query, "size": 3}).rows) == 3
    assert generations.building(client, wider) is None
    assert drop_old(engine, client, wider) == [old]
    assert set(client.request("GET", f"/{alias}-*/_settings")) == {report.index}
    assert drop_old(engine, client, wider) == []


def test_another_analyser_makes_another_index(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    settings: Settings,
    embedding: StubEmbedding,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    firm.indexed("Die Miete")
    writer.drain(10)

    def found(word: str) -> int:
        client.refresh(alias)
        return client.count(alias, {"match": {fields.TEXT: word}})

    assert (found("die"), found("Miete")) == (0, 1)
    changed = analysis_settings()
    changed["filter"]["ki_german_stop"]["stopwords"] = ["miete"]
    monkeypatch.setattr(mapping, "analysis_settings", lambda: changed)
    with pytest.raises(IndexMappingError, match=r"analyses text in another way.*ki reindex"):
        check_index(client, settings.retrieval, embedding_signature=embedding.signature)
    old = live_name(client, alias)
    report = reindex(engine, client, embedding, settings)
    # The hash of the schema is another, so no generation is counted.
    assert report.index != old
    assert not report.index.endswith("-g2")
    assert (found("die"), found("Miete")) == (1, 0)


def test_the_same_settings_make_another_generation(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, settings: Settings, firm: Firm
) -> None:
    firm.indexed("eins")
    writer.drain(10)
    name, model = live_name(client, alias), StubEmbedding(dimensions=16)
    assert reindex(engine, client, model, settings).index == f"{name}-g2"
    assert reindex(engine, client, model, settings).index == f"{name}-g3"
    assert generations.previous(client, settings) == [name, f"{name}-g2"]
    firm.indexed("zwei")
    assert writer.drain(10).versions_indexed == 1
    assert_as_in_sql(engine, client, alias)


def test_a_lost_index_is_made_whole_from_sql(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, settings: Settings, firm: Firm
) -> None:
    firm.indexed("eins", "zwei")
    writer.drain(10)
    client.request("DELETE", f"/{live_name(client, alias)}")
    assert reindex(engine, client, StubEmbedding(dimensions=16), settings).previous == []
    assert_as_in_sql(engine, client, alias)


class _Watching(StubEmbedding):
    """Calls `seen` whenever it embeds: in the midst of the copy."""

    def __init__(self, seen: Callable[[], None], *, dimensions: int) -> None:
        super().__init__(dimensions=dimensions)
        self._seen = seen

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self._seen()
        return super().embed_passages(texts)


def test_searches_meet_the_whole_old_index_until_the_whole_new_one_is_there(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    wider: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backfill, "VERSIONS_AT_ONCE", 2)
    for number in range(7):
        firm.indexed(f"Vertrag {number}")
    writer.drain(100)
    client.refresh(alias)
    old = live_name(client, alias)
    seen: list[tuple[str, int]] = []
    phases: list[Progress] = []

    def look() -> None:
        seen.append((live_name(client, alias), client.count(alias, {"match": {fields.TEXT: "Vertrag"}})))

    before(monkeypatch, generations, "swap", look)
    before(monkeypatch, generations, "settle", look)
    report = reindex(engine, client, _Watching(look, dimensions=24), wider, progress=phases.append)
    new = (report.index, 7)
    assert new in seen
    first_new = seen.index(new)
    assert seen[:first_new] == [(old, 7)] * first_new
    assert seen[first_new:] == [new] * (len(seen) - first_new)
    assert first_new > 4
    assert [one.done for one in phases if one.phase is Phase.COPY] == [0, 2, 4, 6, 7]
    assert {one.phase for one in phases} == set(Phase)


@pytest.fixture
def busy_firm(firm: Firm, writer: IndexWriter) -> Iterator[Callable[[], None]]:
    """Ingest in a thread: new, rewritten, shortened and deleted versions, drained as they come. Call it to stop."""
    stop, problems = threading.Event(), []
    kept: list[VersionId] = [firm.indexed(f"Anfang {number}", "zwei", "drei") for number in range(20)]
    writer.drain(100)

    def work() -> None:
        turn = 0
        try:
            while not stop.is_set():
                turn += 1
                kept.append(firm.indexed(f"neu {turn}", "mehr"))
                rewritten, gone = kept[turn % len(kept)], kept.pop(turn * 7 % len(kept))
                if rewritten != gone:
                    stale = firm.write(rewritten, [f"Stand {turn}", *(["Zusatz"] * (turn % 3))])
                    firm.queue(rewritten, stale=stale)
                firm.remove(gone)
                firm.queue(gone, OutboxOperation.DELETE, [chunk_id(gone, ChunkKind.CHUNK, n) for n in range(3)])
                if turn % 2:
                    writer.drain(100)
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()
        assert problems == []

    yield end
    stop.set()
    thread.join(60)


def test_what_is_written_during_the_rebuild_is_all_there_afterwards(
    busy_firm: Callable[[], None],
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    settings: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backfill, "VERSIONS_AT_ONCE", 4)
    name = live_name(client, alias)
    mine = connect(settings.opensearch)
    report = reindex(engine, mine, StubEmbedding(dimensions=16), settings)
    again = reindex(engine, mine, StubEmbedding(dimensions=16), settings)
    mine.close()
    busy_firm()
    assert (report.index, again.index) == (f"{name}-g2", f"{name}-g3")
    assert live_name(client, alias) == again.index
    firm.make_all_due()
    writer.drain(10_000)
    assert all(entry.done_at is not None for entry in firm.entries())
    assert_as_in_sql(engine, client, alias)


def test_a_write_that_straddles_the_swap_is_not_lost(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    settings: Settings,
    firm: Firm,
    embedding: StubEmbedding,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shortened, new = firm.indexed("eins", "zwei"), firm.version("drei")
    writer.drain(10)
    real_swap, real_bulk = generations.swap, client.bulk

    def swap(*args: Any, **kwargs: Any) -> None:
        firm.queue(new)
        firm.queue(shortened, stale=firm.write(shortened, ["Eins"]))

        def bulk(target: str, writes: Sequence[Write], **more: Any) -> Any:
            monkeypatch.setattr(client, "bulk", real_bulk)
            items = real_bulk(target, writes, **more)
            # The rows are in the old index, and nothing is marked yet.
            real_swap(*args, **kwargs)
            return items

        monkeypatch.setattr(client, "bulk", bulk)
        assert writer.drain(10).versions_indexed == 2

    monkeypatch.setattr(generations, "swap", swap)
    report = reindex(engine, client, embedding, settings)
    assert report.waiting == 0
    assert firm.is_marked(new)
    assert_as_in_sql(engine, client, alias)


def test_a_crash_between_swap_and_queue_is_made_good_at_the_next_start(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    wider: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shortened = firm.indexed("eins", "zwei")
    writer.drain(10)
    model = StubEmbedding(dimensions=24)

    def late_write() -> None:
        firm.indexed("spät")
        firm.queue(shortened, stale=firm.write(shortened, ["Eins"]))
        assert writer.drain(10).versions_indexed == 2

    def crash(*_args: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        before(patched, generations, "swap", late_write)
        patched.setattr(reindex_module, "_finish", crash)
        with pytest.raises(KeyboardInterrupt):
            reindex(engine, client, model, wider)
    # Live already, but behind.
    assert check_index(client, wider.retrieval, embedding_signature=model.signature)
    assert "spät" not in texts_of(client, alias).values()
    assert finish_interrupted(engine, client, wider) == 2
    assert finish_interrupted(engine, client, wider) == 0
    assert IndexWriter(engine, client, model, wider).drain(10).versions_indexed == 2
    assert_as_in_sql(engine, client, alias)


def test_a_crash_after_the_swap_is_made_good_by_the_next_rebuild_alone(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    wider: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    firm.indexed("eins")
    writer.drain(10)
    model = StubEmbedding(dimensions=24)

    def crash(*_args: Any, **_kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        before(patched, generations, "swap", lambda: (firm.indexed("spät"), writer.drain(10)))
        patched.setattr(generations, "settle", crash)
        with pytest.raises(KeyboardInterrupt):
            reindex(engine, client, model, wider)
    swapped = live_name(client, alias)
    report = reindex(engine, client, model, wider)
    assert (report.index, report.resumed, report.versions) == (swapped, True, 0)
    assert_as_in_sql(engine, client, alias)


class _Failing(StubEmbedding):
    """Raises `error` for every request that holds `word`."""

    def __init__(self, error: Exception, word: str, *, dimensions: int = 24) -> None:
        super().__init__(dimensions=dimensions)
        self._error, self._word = error, word

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if any(self._word in text for text in texts):
            raise self._error
        return super().embed_passages(texts)


def test_a_stopped_copy_goes_on_where_it_was(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    wider: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backfill, "VERSIONS_AT_ONCE", 2)
    versions = [firm.indexed(f"Teil {number} von zwölf") for number in range(12)]
    writer.drain(100)
    old = live_name(client, alias)
    with pytest.raises(ProviderUnavailableError):
        reindex(engine, client, _Failing(ProviderUnavailableError("throttled"), "Teil 8"), wider)
    assert live_name(client, alias) == old
    half = generations.building(client, wider)
    assert half is not None
    # Meanwhile a version that was copied loses its text and one is new.
    firm.queue(versions[0], stale=firm.write(versions[0], []))
    firm.indexed("neu")
    writer.drain(10)
    model = StubEmbedding(dimensions=24)
    monkeypatch.setattr(reindex_module, "_MOST_ROUNDS", 0)
    monkeypatch.setattr(reindex_module, "reconcile", lambda *_args: pytest.fail("not before a round"))
    monkeypatch.setattr(reindex_module._Rebuild, "_caught_up", lambda *_args: pytest.fail("stop here"))
    with pytest.raises(pytest.fail.Exception, match="stop here"):
        reindex(engine, client, model, wider)
    # Eight were there; one batch of two is done again, and the rest with the new one.
    copied = [text for call in model.calls for text in call]
    assert [text.rpartition("\n")[2][:7].strip() for text in copied] == [
        *(f"Teil {number}" for number in range(6, 12)),
        "neu",
    ]
    monkeypatch.undo()
    report = reindex(engine, client, model, wider)
    assert (report.index, report.resumed, report.versions) == (half.name, True, 0)
    assert_as_in_sql(engine, client, alias)


def test_a_half_built_index_of_other_settings_is_dropped(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, wider: Settings, firm: Firm
) -> None:
    firm.indexed("giftig")
    writer.drain(10)
    with pytest.raises(ProviderUnavailableError):
        reindex(engine, client, _Failing(ProviderUnavailableError("away"), "giftig"), wider)
    half = generations.building(client, wider)
    assert half is not None
    plain = wider.model_copy(update={"retrieval": wider.retrieval.model_copy(update={"chunk_contextualize": False})})
    model = StubEmbedding(dimensions=24)
    report = reindex(engine, client, model, plain)
    assert not report.resumed
    assert model.calls[0] == ["giftig"]
    assert_as_in_sql(engine, client, alias)
    # The name is free again, so it is taken again; nothing of the half is left.
    assert set(client.request("GET", f"/{alias}-*/_settings")) == {report.index, *report.previous}


def test_a_half_built_index_that_is_given_up_is_dropped_with_the_old_ones(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, wider: Settings, firm: Firm
) -> None:
    firm.indexed("giftig")
    writer.drain(10)
    live = live_name(client, alias)
    with pytest.raises(ProviderUnavailableError):
        reindex(engine, client, _Failing(ProviderUnavailableError("away"), "giftig"), wider)
    half = generations.building(client, wider)
    assert half is not None
    assert drop_old(engine, client, wider) == [half.name]
    assert set(client.request("GET", f"/{alias}-*/_settings")) == {live}


def test_a_row_that_the_new_model_refuses_ends_the_rebuild_without_a_swap(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, wider: Settings, firm: Firm
) -> None:
    firm.indexed("eins", "giftig")
    writer.drain(10)
    old = live_name(client, alias)
    with pytest.raises(IndexComparisonError, match=r"lacks 1 rows and has 0 too many.*content policy"):
        reindex(engine, client, _Failing(ProviderRefusedError("content policy"), "giftig"), wider)
    assert live_name(client, alias) == old
    assert len(texts_of(client, alias)) == 2
    report = reindex(engine, client, StubEmbedding(dimensions=24), wider)
    assert not report.resumed
    assert_as_in_sql(engine, client, alias)


def test_a_surplus_row_ends_the_rebuild_without_a_swap(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    wider: Settings,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = firm.indexed("eins")
    writer.drain(10)
    old = live_name(client, alias)
    stray = str(chunk_id(version, ChunkKind.CHUNK, 77))
    row = {
        fields.CHUNK_ID: stray,
        fields.DELETED: False,
        fields.VERSION_SEQ: 1,
        fields.DOCUMENT_VERSION_ID: str(version),
    }
    before(monkeypatch, reindex_module, "reconcile", lambda: client.bulk(f"{alias}-next", [Write(stray, 1, row)]))
    with pytest.raises(IndexComparisonError, match="lacks 0 rows and has 1 too many"):
        reindex(engine, client, StubEmbedding(dimensions=24), wider)
    assert live_name(client, alias) == old


def test_a_head_that_was_copied_before_the_text_came_is_buried(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    alias: str,
    settings: Settings,
    embedding: StubEmbedding,
    firm: Firm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = firm.indexed()

    def text_comes() -> None:
        firm.write(version, ["eins"])
        firm.queue(version)

    before(monkeypatch, generations, "swap", text_comes)
    reindex(engine, client, embedding, settings)
    assert texts_of(client, alias) == {str(chunk_id(version, ChunkKind.CHUNK, 0)): "eins"}


def test_a_version_that_was_never_queued_is_left_to_its_ingest(
    engine: sa.Engine, client: IndexClient, alias: str, settings: Settings, embedding: StubEmbedding, firm: Firm
) -> None:
    firm.version("halb")
    assert reindex(engine, client, embedding, settings).versions == 0
    assert texts_of(client, alias) == {}


def test_a_writer_with_the_old_model_writes_nothing_into_the_new_index(
    writer: IndexWriter, engine: sa.Engine, client: IndexClient, alias: str, settings: Settings, firm: Firm
) -> None:
    firm.indexed("eins")
    writer.drain(10)
    other = StubEmbedding(dimensions=16, model_id="other")
    ahead = firm.indexed("zwei")
    # Before the swap nobody writes with the new model, of the same width, into the old index.
    assert IndexWriter(engine, client, other, settings).drain(10).versions_failed == 1
    firm.make_all_due()
    assert writer.drain(10).versions_indexed == 1
    reindex(engine, client, other, settings)
    late = firm.indexed("drei")
    report = writer.drain(10)
    assert (report.versions_failed, report.versions_indexed) == (1, 0)
    assert firm.entries()[-1].error is not None
    assert set(texts_of(client, alias).values()) == {"eins", "zwei"}
    firm.make_all_due()
    assert IndexWriter(engine, client, other, settings).drain(10).versions_indexed == 1
    assert firm.is_marked(late)
    assert firm.is_marked(ahead)
    assert_as_in_sql(engine, client, alias)


def test_one_rebuild_at_a_time(
    writer: IndexWriter,
    engine: sa.Engine,
    client: IndexClient,
    settings: Settings,
    embedding: StubEmbedding,
    firm: Firm,
) -> None:
    firm.indexed("eins")
    refused: list[type[Exception]] = []

    def other() -> None:
        for attempt in (
            lambda: reindex(engine, client, embedding, settings),
            lambda: drop_old(engine, client, settings),
        ):
            with pytest.raises(ConflictError, match="Another re-index") as error:
                attempt()
            refused.append(error.type)
        assert finish_interrupted(engine, client, settings) == 0

    with pytest.MonkeyPatch.context() as patched:
        before(patched, generations, "swap", other)
        reindex(engine, client, embedding, settings)
    assert refused == [ConflictError, ConflictError]


def test_an_index_of_an_earlier_product_gets_its_second_alias(
    client: IndexClient, alias: str, settings: Settings, embedding: StubEmbedding
) -> None:
    second = mapping.fitting_alias(settings.retrieval, embedding_signature=embedding.signature)
    name = live_name(client, alias)
    client.request("DELETE", f"/{name}/_alias/{second}")
    with pytest.raises(IndexMappingError, match="ki up"):
        check_index(client, settings.retrieval, embedding_signature=embedding.signature)
    assert ensure_index(client, settings.retrieval, embedding_signature=embedding.signature) == name
    assert check_index(client, settings.retrieval, embedding_signature=embedding.signature) == name
