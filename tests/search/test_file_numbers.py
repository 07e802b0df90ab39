"""File numbers and statutes as they are read from texts, found through the identifier leg however they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.ingest.identifiers import extract, within
from tests.world import World

Search = Callable[..., dict[str, Any]]

TEXTS = {
    "publisher": "Im Verfahren 1 C 4/16 wird Folgendes ausgeführt.",
    "court": "Im Verfahren 1 C 4.16 wird Folgendes ausgeführt.",
    "other chamber": "Im Verfahren 11 C 4/16 wird Folgendes ausgeführt.",
    "longer number": "Im Verfahren 1 C 416/16 wird Folgendes ausgeführt.",
    "hard spaces": "Wie der BGH (VI\u00a0ZR\u00a0194/17) ausführt.",
    "chamber for commerce": "Die Sache 12 O 34/21 KfH ruht.",
    "interim": "Der Beschluss L 9 AS 12/19 B ER ist ergangen.",
    "union": "Das Urteil C\u2011210/16 ist bekannt.",
    "constitution": "Der Beschluss 2 BvR 1/20 ist bekannt.",
    "list": "Die Haftung folgt aus §§ 280 Abs. 1, 3, 281 BGB.",
}


@pytest.fixture
def taken_in(world: World) -> None:
    project = world.project("nord")
    for title, text in TEXTS.items():
        found, _ = within(extract(text), max_chars=256)
        read = [{"kind": one.kind, "raw": one.raw, "canonical": one.canonical} for one in found]
        world.document(project, text, title=title, identifiers=read)
    world.publish()


@pytest.mark.usefixtures("taken_in")
@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("1 C 4/16", {"publisher", "court"}),
        ("1 C 4.16", {"publisher", "court"}),
        ("1\u00a0C\u00a04/16", {"publisher", "court"}),
        ("11 C 4/16", {"other chamber"}),
        ("VI ZR 194/17", {"hard spaces"}),
        ("12 O 34/21 KfH", {"chamber for commerce"}),
        ("L 9 AS 12/19 B ER", {"interim"}),
        ("C-210/16", {"union"}),
        ("2 BvR 1/20", {"constitution"}),
        ("§ 281 BGB", {"list"}),
        ("§ 280 BGB", {"list"}),
    ],
)
def test_every_spelling_hits_the_same_documents_and_no_neighbour(search: Search, query: str, titles: set[str]) -> None:
    results = search(query)["results"]
    assert {result["title"] for result in results if result["matched_identifiers"]} == titles
