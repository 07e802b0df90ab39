"""The list by metadata on real engines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from shared.types import VersionId
from tests.world import World, caller

Listed = Callable[..., dict[str, Any]]


def titles(answer: dict[str, Any]) -> list[str]:
    return [result["title"] for result in answer["results"]]


def walked(listed: Listed, **body: Any) -> tuple[list[str], list[Any]]:
    """Follow the cursors to the end; return all titles and the total that each page states."""
    found: list[str] = []
    totals: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        answer = listed(**body, **more)
        found += titles(answer)
        totals.append(answer["page"].get("total"))
        if not answer["page"]["has_more"]:
            assert "next_cursor" not in answer["page"]
            return found, totals
        more = {"cursor": answer["page"]["next_cursor"]}


@pytest.fixture
def year(world: World) -> list[VersionId]:
    """Two documents on each of ten days, and three without a date."""
    project = world.project("nord")
    days: list[date | None] = [date(2024, 1, day) for day in range(1, 11) for _ in range(2)]
    made = [world.document(project, "Text", title=f"{day}", doc_date=day) for day in [*days, None, None, None]]
    world.publish()
    return made


EXPECTED = [f"2024-01-{day:02}" for day in range(10, 0, -1) for _ in range(2)] + ["None"] * 3


@pytest.mark.usefixtures("year")
def test_the_newest_day_comes_first_and_what_has_no_day_last(listed: Listed) -> None:
    answer = listed(limit=100)
    assert titles(answer) == EXPECTED
    assert answer["page"] == {
        "offset": 0,
        "limit": 100,
        "returned": 23,
        "has_more": False,
        "next_offset": None,
        "total": 23,
    }
    first = answer["results"][0]
    assert (first["score"], first["excerpt"], first["highlights"]) == (0.0, "", [])


@pytest.mark.usefixtures("year")
@pytest.mark.parametrize("limit", [1, 4, 22, 23])
def test_cursors_lead_through_the_whole_list_and_the_last_page_states_the_total(listed: Listed, limit: int) -> None:
    found, totals = walked(listed, limit=limit)
    assert found == EXPECTED
    assert totals == [None] * (len(totals) - 1) + [23]


@pytest.mark.usefixtures("year")
def test_offsets_cut_the_same_list(listed: Listed) -> None:
    pages = [listed(limit=5, offset=offset) for offset in (0, 5, 10, 15, 20, 25)]
    assert [title for page in pages for title in titles(page)] == EXPECTED
    assert [page["page"].get("total") for page in pages] == [None] * 4 + [23, 23]
    assert [page["page"]["next_offset"] for page in pages] == [5, 10, 15, 20, None, None]


@pytest.mark.usefixtures("year")
def test_both_ends_of_a_range_are_included_and_what_has_no_day_is_in_none(listed: Listed) -> None:
    assert titles(listed(filters={"date_from": "2024-01-02", "date_to": "2024-01-03"})) == [
        "2024-01-03",
        "2024-01-03",
        "2024-01-02",
        "2024-01-02",
    ]
    assert titles(listed(filters={"date_from": "2024-01-10", "date_to": "2024-01-10"})) == ["2024-01-10"] * 2
    assert listed(filters={"date_from": "1900-01-01"})["page"]["total"] == 20


def test_what_is_denied_moves_no_page_and_no_total(world: World, listed: Listed, year: list[VersionId]) -> None:
    # Walls go up behind the index's back: it still holds every row, under a scope that is compiled anew.
    for version in year[4:9]:
        world.wall(version)
    found, totals = walked(listed, limit=3)
    assert len(found) == totals[-1] == 18
    assert walked(listed, limit=3, who=caller("bert", "group:other"))[0] == []


def test_a_version_whose_rows_were_buried_is_not_listed(world: World, listed: Listed, year: list[VersionId]) -> None:
    world.bury(year[0])
    world.publish()
    assert listed(limit=100)["page"]["total"] == 22


def test_every_filter_narrows_the_list(world: World, listed: Listed) -> None:
    nord, south = world.project("nord"), world.project("south")
    matter = world.matter(nord, "nord-1")
    lease = {"doc_type": "contract.lease", "doc_type_ancestors": ["contract"]}
    world.document(nord, "Text", title="lease", matter_id=matter, **lease)
    world.document(south, "Text", title="draft", status="draft", language="en")
    world.publish()

    def only(**filters: Any) -> list[str]:
        return sorted(titles(listed(filters=filters)))

    assert only() == ["draft", "lease"]
    assert only(project_id=str(nord)) == ["lease"]
    assert only(matter_id=str(matter)) == ["lease"]
    assert only(doc_type="contract") == only(doc_type="contract.lease") == ["lease"]
    assert only(doc_type="court") == []
    assert only(version_status="draft") == only(language="en") == ["draft"]
    assert titles(listed(project_ids=[str(south)])) == ["draft"]
    assert titles(listed(project_ids=[str(south)], filters={"project_id": str(nord)})) == []


def test_a_filter_for_a_kind_of_row_lists_each_version_once(world: World, listed: Listed) -> None:
    project = world.project("nord")
    for number in range(5):
        world.document(project, "eins", "zwei", "drei", title=f"{number}", profile="Title" if number % 2 else None)
    world.publish()
    found, totals = walked(listed, limit=2, filters={"chunk_kind": "chunk"})
    assert sorted(found) == ["0", "1", "2", "3", "4"]
    assert totals[-1] == 5
    assert sorted(walked(listed, limit=1, filters={"chunk_kind": "profile"})[0]) == ["1", "3"]


def test_a_version_without_text_is_listed_with_its_metadata(world: World, listed: Listed) -> None:
    world.document(world.project("nord"), title="scan.tif")
    world.publish()
    (result,) = listed()["results"]
    assert (result["title"], result["citation"]["chunks"]) == ("scan.tif", [])


def test_more_than_a_batch_of_stale_rows_does_not_end_a_page(
    world: World, listed: Listed, monkeypatch: pytest.MonkeyPatch, service: Any
) -> None:
    """The first batches hold only rows that no longer verify."""
    monkeypatch.setattr("shared.search.listing._SPARE_ROWS", 1)
    project = world.project("nord")
    made = [world.document(project, "Text", title=f"{number}") for number in range(12)]
    world.publish()
    listed()  # the scope is kept now
    stale = service._access

    class Stale:
        """Hands out the scope as it was before the walls."""

        def __init__(self) -> None:
            with world.engine.connect() as connection:
                self._scope = stale.compile_scope(connection, caller())

        def compile_scope(self, *_: Any, **__: Any) -> Any:
            return self._scope

    monkeypatch.setattr(service, "_access", Stale())
    for version in made[:9]:
        world.wall(version)
    answer = listed(limit=2)
    assert titles(answer) == ["9", "10"]
    assert answer["page"]["has_more"] is True
    last = listed(limit=2, cursor=answer["page"]["next_cursor"])
    assert titles(last) == ["11"]
    assert last["page"]["total"] == 3
