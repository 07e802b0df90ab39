"""Ranges of days on real engines: both ends belong to them, and what has no day is in none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from shared.errors import InvalidRequestError
from tests.world import World

Listed = Callable[..., dict[str, Any]]


@pytest.fixture
def turn_of_the_year(world: World) -> None:
    """Documents around new year, one that only names its year (kept as its first day), and two without a date."""
    project = world.project("nord")
    days = {
        "last day": date(2023, 12, 31),
        "first day": date(2024, 1, 1),
        "second day": date(2024, 1, 2),
        "none": None,
        "none either": None,
    }
    for title, day in days.items():
        world.document(project, "Text", title=title, doc_date=day)
    world.document(project, "Text", title="only the year", doc_date=date(2024, 1, 1), doc_date_precision="year")
    world.publish()


def _titles(listed: Listed, **filters: str) -> set[str]:
    return {result["title"] for result in listed(filters=filters, limit=100)["results"]}


@pytest.mark.usefixtures("turn_of_the_year")
def test_both_ends_of_a_range_belong_to_it_and_what_has_no_day_never_does(listed: Listed) -> None:
    first = {"first day", "only the year"}
    assert _titles(listed, date_from="2023-12-31", date_to="2023-12-31") == {"last day"}
    assert _titles(listed, date_from="2024-01-01", date_to="2024-01-01") == first
    assert _titles(listed, date_from="2023-12-31", date_to="2024-01-01") == {"last day", *first}
    assert _titles(listed, date_from="2024-01-01") == {*first, "second day"}
    assert _titles(listed, date_to="2023-12-31") == {"last day"}
    assert _titles(listed, date_from="2025-01-01") == set()


@pytest.mark.usefixtures("turn_of_the_year")
def test_the_newest_comes_first_what_has_no_day_last_and_equal_days_keep_their_order(listed: Listed) -> None:
    whole = [result["title"] for result in listed(limit=100)["results"]]
    assert whole[0] == "second day"
    assert set(whole[1:3]) == {"first day", "only the year"}
    assert whole[3] == "last day"
    assert set(whole[4:]) == {"none", "none either"}
    assert [result["title"] for result in listed(limit=100)["results"]] == whole


@pytest.mark.parametrize(
    "filters", [{"date_from": "2024-02-02", "date_to": "2024-02-01"}, {"date_from": "2024-02"}, {"date_to": "2024"}]
)
def test_a_range_that_goes_backwards_and_a_part_of_a_day_are_refused(listed: Listed, filters: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError):
        listed(filters=filters)
