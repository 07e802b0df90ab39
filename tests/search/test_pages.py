"""Pages are cuts of one order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shared.search.service import SearchService
from tests.world import World

Search = Callable[..., dict[str, Any]]
WORDS = "Kündigung Frist Miete Vertrag Haftung Schaden Klage Urteil Zins Zahlung".split()  # noqa: SIM905


@pytest.fixture
def many(world: World) -> int:
    """Documents with few different texts, so that most of them tie; some have several chunks and a profile."""
    rng = random.Random(7)
    project = world.project("nord")
    for number in range(120):
        texts = [" ".join(rng.sample(WORDS, 3)) for _ in range(1 + number % 3)]
        profile = f"Title: {texts[0]}" if number % 4 == 0 else None
        status = ("final", "draft", "executed", "unknown")[number % 4]
        world.document(project, *texts, title=f"{number}", profile=profile, status=status)
    world.publish()
    return 120


def walked(search: Search, size: int, **more: Any) -> list[tuple[str, Any]]:
    """Every hit of every page, as (version, chunk)."""
    found, offset = [], 0
    while True:
        answer = search("Kündigung Frist Vertrag", limit=size, offset=offset, **more)
        found += [(one["version_id"], [c["id"] for c in one["citation"]["chunks"]]) for one in answer["results"]]
        page = answer["page"]
        assert page["returned"] == len(answer["results"])
        if not page["has_more"]:
            return found
        assert page["returned"] == size
        offset = page["next_offset"]


@pytest.mark.usefixtures("many")
def test_every_page_size_walks_the_same_order_without_repeats(search: Search, many: int) -> None:
    whole = walked(search, 100)
    assert len(whole) == many
    assert max(Counter(version for version, _ in whole).values()) == 1
    for size in (7, 10, 20):
        assert walked(search, size) == whole


@pytest.mark.usefixtures("many")
def test_pages_of_chunks_are_stable_too(search: Search, service_with: Callable[..., SearchService]) -> None:
    service = service_with(collapse_per_document=False, max_chunks_per_document=2)
    whole = walked(search, 100, using=service)
    assert max(Counter(version for version, _ in whole).values()) == 2
    assert walked(search, 13, using=service) == whole


def test_a_first_page_from_the_small_pool_begins_the_order_of_the_large_one(
    world: World, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pools so small that the large one really adds and re-orders.
    from shared.search import paging

    for name, value in (("SMALL_POOL", 20), ("LARGE_POOL", 200)):
        monkeypatch.setattr(paging, name, value)
        monkeypatch.setattr(f"shared.search.service.{name}", value, raising=False)
    rng = random.Random(3)
    project = world.project("nord")
    for number in range(90):
        world.document(project, " ".join(rng.sample(WORDS, 4)), title=f"{number}")
    world.publish()
    shallow = [one["version_id"] for one in search("Kündigung Frist Vertrag Zins", limit=8)["results"]]
    deep = [one["version_id"] for one in search("Kündigung Frist Vertrag Zins", limit=80)["results"]]
    assert deep[:8] == shallow
    assert len(deep) == len(set(deep)) == 80
    second = [one["version_id"] for one in search("Kündigung Frist Vertrag Zins", limit=8, offset=8)["results"]]
    assert deep[8:16] == second


def test_long_documents_do_not_cut_a_page_short(world: World, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.search import paging

    monkeypatch.setattr(paging, "SMALL_POOL", 50)
    project = world.project("nord")
    world.document(project, *["Kündigung Frist"] * 70, title="lang")
    short = world.document(project, "Kündigung und die Frist dazu in einem viel längeren Satz", title="kurz")
    world.publish()
    sent: list[bytes] = []
    world.client.on_request = sent.append
    answer = search("Kündigung Frist", limit=1)
    assert [one["title"] for one in answer["results"]] == ["lang"]
    assert answer["page"]["has_more"] is True
    assert len(sent) == 2
    # With nothing else to see there is nothing to look for.
    world.wall(short)
    answer = search("Kündigung Frist", limit=1)
    assert (len(answer["results"]), answer["page"]["has_more"], len(sent)) == (1, False, 3)
