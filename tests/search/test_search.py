"""Ranked search on real engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.search.service import SearchService
from tests.world import World

Search = Callable[..., dict[str, Any]]


def titles(answer: dict[str, Any]) -> list[str]:
    return [result["title"] for result in answer["results"]]


def test_a_result_says_what_was_found_and_where_it_stands(world: World, search: Search) -> None:
    project = world.project("nord")
    matter = world.matter(project, "nord-1")
    opening = "Zwischen den Parteien wird folgender Vertrag geschlossen."
    clause = "Die Kündigung bedarf der Schriftform. Die Frist beträgt drei Monate."
    version = world.document(
        project,
        opening,
        clause,
        title="Mietvertrag Lindenhof",
        matter_id=matter,
        doc_type="contract.lease",
        identifiers=[{"kind": "file", "raw": "VI ZR 194/17", "canonical": "VI ZR 194/17"}],
    )
    world.publish()

    answer = search("Kündigung Schriftform VI ZR 194/17")

    (result,) = answer["results"]
    assert result["version_id"] == str(version)
    assert result["title"] == "Mietvertrag Lindenhof"
    assert (result["doc_type"], result["doc_type_label"]) == ("contract.lease", "Mietvertrag")
    assert (result["doc_date"], result["language"]) == ("2024-03-01", "de")
    assert result["matter"]["key"] == "nord-1"
    assert (result["version_status"], result["version_ordinal"], result["is_latest_final"]) == ("final", 1, True)
    assert result["matched_identifiers"] == ["VI ZR 194/17"]
    citation = result["citation"]
    assert citation["project"]["key"] == "nord"
    assert citation["version"]["sha256"] == version.hex * 2
    assert [source["source"] for source in citation["sources"]] == ["ablage"]
    (chunk,) = citation["chunks"]
    text = f"{opening}\n{clause}"
    assert result["excerpt"] in text[chunk["char_start"] : chunk["char_end"]]
    assert text[result["excerpt_start"] :].startswith(result["excerpt"])
    marked = [result["excerpt"][start:end] for start, end in result["highlights"]]
    assert marked == ["Kündigung", "Schriftform"]
    assert answer["page"] == {"offset": 0, "limit": 8, "returned": 1, "has_more": False, "next_offset": None}
    assert answer["scope"]["versions"] == {"total": 1}


def test_a_title_and_a_text_share_the_words_of_a_query(world: World, search: Search) -> None:
    project = world.project("nord")
    world.document(project, "Er kann zum Jahresende gekündigt werden.", title="Mietvertrag")
    world.publish()
    assert titles(search("Mietvertrag Jahresende")) == ["Mietvertrag"]


def test_a_decision_stands_above_what_only_mentions_its_number(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    project, number = world.project("nord"), {"kind": "file", "raw": "VI ZR 194/17", "canonical": "VI ZR 194/17"}
    world.document(project, "Zu VI ZR 194/17 siehe dort.", title="Vermerk", identifiers=[number])
    verdict = "Das Urteil VI ZR 194/17 lautet: Die Revision hat Erfolg."
    world.document(project, verdict, title="Urteil - VI ZR 194/17 -", identifiers=[number])
    world.publish()
    identifiers_alone = service_with(weight_lexical=0.0, weight_semantic=0.0)
    expected = ["Urteil - VI ZR 194/17 -", "Vermerk"]
    assert titles(search("VI\u00a0ZR 194/17", using=identifiers_alone)) == expected
    assert titles(search("VI\u00a0ZR 194/17")) == expected


def test_what_is_denied_is_neither_shown_nor_counted(world: World, search: Search) -> None:
    project = world.project("nord")
    world.document(project, "Kündigung zum Jahresende", title="offen")
    walled = world.document(project, "Kündigung zum Jahresende", title="geheim")
    world.wall(walled)
    world.publish()
    answer = search("Kündigung zum Jahresende")
    assert titles(answer) == ["offen"]
    assert answer["scope"]["versions"] == {"total": 1}


@pytest.mark.parametrize("query", ["10/2019", "12 O 34/21", "der die das", "Treu und Glauben", "😀", "a:b AND ("])
def test_no_query_fails(world: World, search: Search, query: str) -> None:
    world.document(world.project("nord"), "Treu und Glauben", title="eins")
    world.publish()
    assert titles(search(query)) == ["eins"]  # the nearest text, whatever was asked
