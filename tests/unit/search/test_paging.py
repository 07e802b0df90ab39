from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from shared.index.answers import PackedRow
from shared.index.row_ref import RowRef, packed
from shared.search import paging
from shared.search.paging import Asked, Candidates, Leg, legs_for, pool_size
from shared.search.request import MAX_WINDOW, parse_filter, parse_search
from shared.settings import load_settings
from shared.types import ChunkKind, VersionStatus

RETRIEVAL = load_settings({}).retrieval


def row(name: str, score: float, *, document: str = "", status: str = "final") -> PackedRow:
    """A row of version `ord(name)`, in a document of its own unless told otherwise."""
    ref = RowRef(name, document or name, ord(name[0]), 0, ChunkKind.CHUNK, VersionStatus(status))
    return packed(ref), score


def rows(names: str) -> list[PackedRow]:
    return [row(name, float(-at)) for at, name in enumerate(names)]


def order(answers: Mapping[Asked, Sequence[PackedRow]]) -> str:
    return "".join(one.ref.chunk_id for one in Candidates(answers, RETRIEVAL).ordered)


@pytest.mark.parametrize(("window", "size"), [(1, 400), (8, 400), (9, 2500), (50, 2500), (500, 2500)])
def test_a_window_is_served_by_one_of_two_pools(window: int, size: int) -> None:
    assert pool_size(window, factor=10) == size


def test_every_window_asks_for_five_times_its_candidates_rounded_up_to_a_tier() -> None:
    factor = RETRIEVAL.candidate_pool_factor
    assert factor == 10
    for window in range(1, MAX_WINDOW + 1):
        wanted = min(max(window * factor * 5, 50), 2500)
        assert pool_size(window, factor=factor) == min(tier for tier in (400, 2500) if tier >= wanted)


def test_a_window_is_what_lies_before_the_page_and_the_page() -> None:
    assert parse_search({"query": "Frist", "offset": 16, "limit": 8}, RETRIEVAL).window == 24
    assert parse_filter({"offset": 16, "limit": 8}).window == 24


def test_the_factor_of_one_keeps_the_contracts_window_of_five() -> None:
    assert pool_size(80, factor=1) == 400
    assert pool_size(81, factor=1) == 2500


def test_a_leg_that_weighs_nothing_is_not_sent() -> None:
    without = RETRIEVAL.model_copy(update={"weight_semantic": 0.0})
    assert legs_for(2500, without) == [Asked(Leg.LEXICAL, 2500), Asked(Leg.IDENTIFIER, 2500)]
    assert legs_for(400, RETRIEVAL) == [Asked(Leg.LEXICAL, 400), Asked(Leg.SEMANTIC, 400), Asked(Leg.IDENTIFIER, 400)]


def test_the_large_pool_sends_the_small_semantic_leg_as_well() -> None:
    assert Asked(Leg.SEMANTIC, 400) in legs_for(2500, RETRIEVAL)


def test_two_legs_are_fused_by_rank() -> None:
    # a: 1/60 + 1/62, b: 1/61 + 1/60, c: 1/62 + 1/61.
    assert order({Asked(Leg.LEXICAL, 400): rows("abc"), Asked(Leg.SEMANTIC, 400): rows("bca")}) == "bac"


def test_ties_stand_in_the_order_of_their_versions_whatever_the_engine_does() -> None:
    tied = [row(name, 1.0) for name in "dbca"]
    found = Candidates({Asked(Leg.LEXICAL, 400): tied}, RETRIEVAL).ordered
    assert "".join(one.ref.chunk_id for one in found) == "abcd"
    assert {one.place for one in found} == {0}


def test_a_draft_gives_way_to_a_final_one_of_nearly_the_same_rank() -> None:
    legs = {Asked(Leg.LEXICAL, 400): [row("a", 2.0, status="draft"), row("b", 1.0)]}
    assert order(legs) == "ba"


def test_the_large_pool_only_adds_behind_the_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SMALL_POOL", 3)
    small = {Asked(Leg.LEXICAL, 3): rows("abc"), Asked(Leg.SEMANTIC, 3): rows("dea")}
    # The graph, searched for more, finds another beginning; "f" would come first if the pools were not kept apart.
    large = {
        Asked(Leg.LEXICAL, 6): rows("abcfgh"),
        Asked(Leg.SEMANTIC, 6): rows("fdeaij"),
        Asked(Leg.SEMANTIC, 3): rows("dea"),
    }
    assert order(small) == "adbec"
    assert order(large) == "adbec" + "fgihj"
    places = [one.place for one in Candidates(large, RETRIEVAL).ordered]
    assert places == sorted(places)


def test_a_leg_that_is_full_may_hold_more() -> None:
    assert Candidates({Asked(Leg.LEXICAL, 3): rows("abc")}, RETRIEVAL).is_cut
    assert not Candidates({Asked(Leg.LEXICAL, 4): rows("abc")}, RETRIEVAL).is_cut
    assert not Candidates({}, RETRIEVAL).is_cut


def test_only_versions_of_the_identifier_leg_are_marked() -> None:
    legs = {Asked(Leg.LEXICAL, 400): rows("ab"), Asked(Leg.IDENTIFIER, 400): rows("b")}
    assert {one.ref.chunk_id: one.by_identifier for one in Candidates(legs, RETRIEVAL).ordered} == {
        "a": False,
        "b": True,
    }


def test_a_prefix_holds_so_many_documents_and_all_ties_of_the_last() -> None:
    legs = {
        Asked(Leg.LEXICAL, 400): [
            row("a", 5.0, document="x"),
            row("b", 4.0, document="x"),
            row("c", 3.0, document="y"),
            row("d", 3.0, document="z"),
            row("e", 2.0, document="v"),
        ]
    }
    found = Candidates(legs, RETRIEVAL)
    assert len(found.prefix(hits=1, rows_per_document=None)) == 1
    assert len(found.prefix(hits=2, rows_per_document=None)) == 4
    assert len(found.prefix(hits=9, rows_per_document=None)) == 5
    assert len(found.prefix(hits=2, rows_per_document=2)) == 2
    assert len(found.prefix(hits=2, rows_per_document=1)) == 4


def test_candidates_are_counted_no_further_than_asked() -> None:
    found = Candidates({Asked(Leg.LEXICAL, 400): rows("abc"), Asked(Leg.SEMANTIC, 400): rows("cb")}, RETRIEVAL)
    assert [found.holds_more_than(number) for number in (0, 2, 3, 4)] == [True, True, False, False]
    assert len(found.ordered) == 3


def test_a_profile_finds_the_best_passage_of_its_version_in_the_small_pool_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SMALL_POOL", 2)

    def of_version(name: str, ordinal: int, kind: ChunkKind = ChunkKind.CHUNK) -> str:
        return packed(RowRef(name, "d", 7, ordinal, kind, VersionStatus.FINAL))

    legs = {
        Asked(Leg.LEXICAL, 4): [
            (of_version("p", 0, ChunkKind.PROFILE), 9.0),
            (of_version("b", 2), 8.0),
            (of_version("c", 1), 8.0),
            (of_version("a", 0), 7.0),
        ],
    }
    found = Candidates(legs, RETRIEVAL)
    assert found.best_passages({7, 8}) == {7: "b"}
    monkeypatch.setattr(paging, "SMALL_POOL", 4)
    assert Candidates(legs, RETRIEVAL).best_passages({7}) == {7: "c"}
    first = next(one.ref.chunk_id for one in found.ordered if one.ref.kind is ChunkKind.CHUNK)
    assert first == "b"
