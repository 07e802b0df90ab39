from __future__ import annotations

from bench.conversion import Speed
from bench.indexing import IndexingBench
from bench.paired import Comparison
from bench.report import conversion_rows, handler_row, indexing_row, scope_rows, search_row
from bench.search import SearchBench


def comparison(*, ours: float, raw: float) -> Comparison:
    return Comparison(40, ours, 2 * ours, raw, 2 * raw, ours / raw, ours / raw - 0.1, ours / raw + 0.1)


def searched(*, ours: float, raw: float) -> SearchBench:
    return SearchBench(3000, 40, 8, 200, comparison(ours=ours, raw=raw))


def test_a_search_within_its_bound_is_met_and_one_beyond_it_is_missed() -> None:
    assert search_row(searched(ours=15, raw=10), is_bound=True).is_met
    assert not search_row(searched(ours=15.1, raw=10), is_bound=True).is_met


def test_a_search_that_is_given_for_information_misses_nothing() -> None:
    row = search_row(searched(ours=90, raw=10), is_bound=False)
    assert row.is_met
    assert (row.ours, row.bare, row.measured) == ("90.0 ms", "10.0 ms", 9)


def test_the_handler_is_held_to_what_it_adds() -> None:
    assert handler_row(comparison(ours=53, raw=50)).is_met
    assert not handler_row(comparison(ours=53.1, raw=50)).is_met


def test_indexing_is_held_to_its_ratio() -> None:
    assert indexing_row(IndexingBench(10, 100, 3, 15, 10, 1.5)).is_met
    assert not indexing_row(IndexingBench(10, 100, 3, 16, 10, 1.6)).is_met


def test_only_scope_figures_with_a_goal_can_be_missed() -> None:
    names = ("cold_ms", "unchanged_ms", "unchanged_from_table_ms", "after_document_deny_ms")
    slow = dict.fromkeys((*names, "after_project_deny_ms", "after_tombstone_ms", "verify_100_ms"), 10_000.0)
    rows = scope_rows({"visible": 5, "versions": 10, **slow})
    missed = [row.what.rpartition(" ")[2] for row in rows if not row.is_met]
    assert missed == ["cold", "unchanged", "after_document_deny"]


def test_the_speed_of_a_conversion_is_shown_without_a_bound() -> None:
    [row] = conversion_rows([Speed("PDF with text", files=2, pages=80, seconds=0.5)])
    assert (row.what, row.measured, row.unit) == ("conversion, PDF with text: 80 pages in 0.5 s", 160, " pages/s")
    assert row.is_met
