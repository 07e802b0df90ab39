"""The live index is the configured one, is made so, or the error names what differs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyroaring import BitMap

from shared.errors import EngineUnavailableError, IndexMappingError
from shared.index import fields
from shared.index.client import IndexClient, Write
from shared.index.ensure import check_index, ensure_index, live_index
from shared.index.mapping import concrete_name, index_body
from shared.settings import Settings

SIGNATURE = "stub-16"


def ensured(client: IndexClient, settings: Settings, **changes: Any) -> str:
    retrieval = settings.retrieval.model_copy(update=changes)
    return ensure_index(client, retrieval, embedding_signature=SIGNATURE)


def test_an_index_is_made_once_behind_its_alias_and_fits(client: IndexClient, settings: Settings) -> None:
    with pytest.raises(EngineUnavailableError, match="does not exist"):
        check_index(client, settings.retrieval, embedding_signature=SIGNATURE)
    name = ensured(client, settings)
    assert name == concrete_name(settings.retrieval, embedding_signature=SIGNATURE)
    assert ensured(client, settings) == name
    assert check_index(client, settings.retrieval, embedding_signature=SIGNATURE) == name
    live = live_index(client, settings.retrieval.index_name)
    assert live is not None
    assert live.mappings["dynamic"] == "strict"
    assert live.mappings["properties"][fields.EMBEDDING]["method"]["engine"] == "lucene"


def test_several_processes_may_ensure_at_once(client: IndexClient, settings: Settings) -> None:
    names: list[str] = []
    start = threading.Barrier(3)

    def work() -> None:
        start.wait()
        names.append(ensured(client, settings))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == [concrete_name(settings.retrieval, embedding_signature=SIGNATURE)] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_dimensions": 1024}, "dimensions 16, the configuration says 1024.*reindex"),
        ({"vector_engine": "faiss"}, "engine lucene, the configuration says faiss.*reindex"),
        ({"vector_space_type": "l2"}, "space type cosinesimil, the configuration says l2.*reindex"),
    ],
)
def test_other_vectors_are_refused_naming_both(
    client: IndexClient, settings: Settings, changes: dict[str, Any], message: str
) -> None:
    ensured(client, settings)
    for call in (ensure_index, check_index):
        with pytest.raises(IndexMappingError, match=message):
            call(client, settings.retrieval.model_copy(update=changes), embedding_signature=SIGNATURE)


def test_vectors_of_another_model_are_refused(client: IndexClient, settings: Settings) -> None:
    ensured(client, settings)
    with pytest.raises(IndexMappingError, match=r"'stub-16'.*'other-16'"):
        check_index(client, settings.retrieval, embedding_signature="other-16")


def made_by_hand(client: IndexClient, settings: Settings, change: Callable[[dict[str, Any]], None]) -> str:
    body = index_body(settings.retrieval, embedding_signature=SIGNATURE)
    change(body)
    name = f"{settings.retrieval.index_name}-byhand"
    client.request("PUT", f"/{name}", body | {"aliases": {settings.retrieval.index_name: {}}})
    return name


def test_fields_and_subfields_that_are_missing_are_added(client: IndexClient, settings: Settings) -> None:
    def older(body: dict[str, Any]) -> None:
        del body["mappings"]["properties"][fields.PAGE_TO]
        del body["mappings"]["properties"][fields.TITLE]["fields"]["en"]

    name = made_by_hand(client, settings, older)
    with pytest.raises(IndexMappingError, match="page_to, title"):
        check_index(client, settings.retrieval, embedding_signature=SIGNATURE)
    assert ensured(client, settings) == name
    assert check_index(client, settings.retrieval, embedding_signature=SIGNATURE) == name


def _keyword_seq(body: dict[str, Any]) -> None:
    body["mappings"]["properties"][fields.VERSION_SEQ] = {"type": "keyword"}


def _loose(body: dict[str, Any]) -> None:
    body["mappings"]["dynamic"] = False


def _engines_own_stop_words(body: dict[str, Any]) -> None:
    body["settings"]["index"]["analysis"]["filter"]["ki_german_stop"]["stopwords"] = "_german_"


@pytest.mark.parametrize(
    ("change", "message"),
    [(_keyword_seq, "'version_seq'"), (_loose, "not strict"), (_engines_own_stop_words, "analyses text")],
)
def test_what_a_live_index_cannot_change_is_named(
    client: IndexClient, settings: Settings, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    made_by_hand(client, settings, change)
    with pytest.raises(IndexMappingError, match=message):
        ensured(client, settings)


def test_an_alias_of_two_indices_is_refused(client: IndexClient, settings: Settings, alias: str) -> None:
    made_by_hand(client, settings, lambda _: None)
    with pytest.raises(IndexMappingError, match="several indices"):
        ensured(client, settings)


def test_an_index_in_the_place_of_the_alias_is_refused(client: IndexClient, settings: Settings) -> None:
    name = f"{settings.retrieval.index_name}-plain"
    client.request("PUT", f"/{name}")
    with pytest.raises(IndexMappingError, match="not an alias"):
        ensured(client, settings, index_name=name)


def test_unknown_fields_are_refused_row_by_row(client: IndexClient, alias: str) -> None:
    good, bad = client.bulk(alias, [Write("a", 1, {"text": "x"}), Write("b", 1, {"txet": "x"})])
    assert (good.outcome, bad.outcome) == ("written", "refused")
    assert "txet" in (bad.reason or "")


@pytest.fixture
def numbered(client: IndexClient, alias: str) -> str:
    """Rows 1 to 5, each with its own version number; their vectors turn away from the first axis one by one."""
    rows = [
        Write(
            f"r{seq}",
            1,
            {
                fields.VERSION_SEQ: seq,
                fields.TEXT: "Miete",
                fields.DELETED: False,
                fields.EMBEDDING: [1.0, float(seq), *([0.0] * 14)],
            },
        )
        for seq in range(1, 6)
    ]
    assert {one.outcome for one in client.bulk(alias, rows)} == {"written"}
    client.refresh(alias)
    return alias


def bitmap(*seqs: int) -> dict[str, Any]:
    from base64 import b64encode

    return {"terms": {fields.VERSION_SEQ: [b64encode(BitMap(seqs).serialize()).decode()], "value_type": "bitmap"}}


def lexical(*filters: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"must": [{"match": {fields.TEXT: "Miete"}}], "filter": list(filters)}}


def semantic(*filters: dict[str, Any]) -> dict[str, Any]:
    vector = {"vector": [1.0, *([0.0] * 15)], "k": 3, "filter": {"bool": {"filter": list(filters)}}}
    return {"knn": {fields.EMBEDDING: vector}}


@pytest.mark.parametrize("leg", [lexical, semantic])
def test_a_bitmap_filters_both_legs_before_ranking(client: IndexClient, numbered: str, leg: Any) -> None:
    def found(*filters: dict[str, Any]) -> list[str]:
        [rows] = client.multi_search(numbered, [{"query": leg(*filters), "size": 3, "_source": False}])
        return sorted(row.chunk_id for row in rows)

    # A filter applied after ranking would find fewer than three: the three nearest are 1, 2 and 3.
    assert found(bitmap(3, 4, 5, 900)) == ["r3", "r4", "r5"]
    assert found(bitmap(4), {"term": {fields.DELETED: False}}) == ["r4"]
    assert found(bitmap(4), {"term": {fields.DELETED: True}}) == []
    assert found(bitmap()) == []


def test_an_engine_that_misreads_a_bitmap_is_not_trusted(
    client: IndexClient, settings: Settings, numbered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = client.count

    def blind(alias: str, query: dict[str, Any]) -> int:
        return 5 if query["terms"].get("value_type") == "bitmap" else real(alias, query)

    monkeypatch.setattr(client, "count", blind)
    with pytest.raises(IndexMappingError, match="finds 5 rows where a list finds 1"):
        check_index(client, settings.retrieval, embedding_signature=SIGNATURE)
