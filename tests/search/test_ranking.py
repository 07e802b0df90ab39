"""Which row stands for a document, and in which order documents come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from shared.access.audit import AuditHasher
from shared.access.service import AccessService
from shared.errors import MisconfiguredError
from shared.search.service import SearchService
from shared.settings import Settings
from tests.world import World

Search = Callable[..., dict[str, Any]]


def titles(answer: dict[str, Any]) -> list[str]:
    return [result["title"] for result in answer["results"]]


def test_a_document_comes_once_with_its_best_passage(world: World, search: Search) -> None:
    project = world.project("nord")
    world.document(project, "Allgemeines über Kündigung", "Kündigung der Miete zum Jahresende", title="Mietvertrag")
    world.document(project, "Ganz anderes", title="Brief")
    world.publish()
    answer = search("Kündigung Miete Jahresende")
    assert titles(answer) == ["Mietvertrag", "Brief"]
    assert answer["results"][0]["excerpt"] == "Kündigung der Miete zum Jahresende"


def test_without_collapsing_a_document_comes_with_its_best_chunks_only(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    project = world.project("nord")
    world.document(project, *[f"Kündigung Nummer {number}" for number in range(6)], title="lang")
    world.document(project, "Kündigung", title="kurz")
    world.publish()
    service = service_with(collapse_per_document=False, max_chunks_per_document=3)
    assert sorted(titles(search("Kündigung", using=service))) == ["kurz", "lang", "lang", "lang"]


def test_a_final_version_stands_above_a_draft_of_the_same_words(world: World, search: Search) -> None:
    project = world.project("nord")
    for status in ("draft", "unknown", "final", "executed"):
        world.document(project, "Kündigung zum Jahresende", title="Vertrag", status=status)
    world.publish()
    found = [result["version_status"] for result in search("Kündigung zum Jahresende")["results"]]
    assert found == ["executed", "final", "unknown", "draft"]


def test_the_latest_final_version_stands_for_a_document_when_several_match_alike(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    first = world.document(world.project("nord"), "Kündigung zum Jahresende", title="Vertrag")
    second = world.version(world.document_of(first), "Kündigung zum Jahresende", ordinal=2)
    world.publish()
    # Without profiles and headers of their own both versions look the same to the legs.
    (result,) = search("Kündigung zum Jahresende")["results"]
    assert result["version_id"] == str(second)
    assert (result["is_latest_final"], result["version_ordinal"]) == (True, 2)


def test_a_profile_that_wins_shows_the_best_passage_of_its_version(world: World, search: Search) -> None:
    texts = ["Zwischen den Parteien", "Die Miete ist monatlich zu zahlen", "Schluss"]
    profile = "Title: Lindenhof\nMatter: Nordwerk\nMiete Lindenhof Nordwerk monatlich"
    world.document(world.project("nord"), *texts, title="Vertrag", profile=profile)
    world.publish()
    (result,) = search("Miete monatlich Lindenhof Nordwerk")["results"]
    (chunk,) = result["citation"]["chunks"]
    assert (chunk["kind"], result["excerpt"]) == ("chunk", "Die Miete ist monatlich zu zahlen")


def test_a_profile_without_a_passage_shows_the_opening_that_it_quotes(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    opening = "Zwischen den Parteien wird vereinbart, was folgt. " * 12
    world.document(world.project("nord"), opening, "Schluss", title="x", profile=f"Matter: Nordwerk\n{opening[:400]}")
    world.publish()
    words_only = service_with(weight_semantic=0.0)
    (result,) = search("Nordwerk", using=words_only)["results"]
    (chunk,) = result["citation"]["chunks"]
    assert (chunk["kind"], chunk["char_start"], chunk["char_end"]) == ("profile", 0, 400)
    assert result["excerpt"] in opening[chunk["char_start"] : chunk["char_end"]]
    assert result["excerpt"]


def test_a_filter_for_profiles_still_shows_text_that_can_be_found_again(world: World, search: Search) -> None:
    world.document(world.project("nord"), "Die Miete", title="x", profile="Matter: Nordwerk")
    world.publish()
    (result,) = search("Nordwerk", filters={"chunk_kind": "profile"})["results"]
    assert result["excerpt"] == "Die Miete"


@pytest.mark.parametrize(
    ("query", "is_first"),
    [
        ("1 C 4/16", True),
        ("1 C 4.16", True),
        ("1C4/16", True),
        ("Urteil vom Mai, 1 C 4/16, zur Miete", True),
        ("11 C 4/16", False),
        ("1 C 4/165", False),
        ("1 C 41/6", False),
    ],
)
def test_a_pasted_file_number_finds_its_document_and_no_other(
    world: World, search: Search, service_with: Callable[..., SearchService], query: str, is_first: bool
) -> None:
    number = {"kind": "file", "raw": "1 C 4.16", "canonical": "1 C 4/16"}
    project = world.project("nord")
    world.document(project, "Zur Miete", title="gesucht", identifiers=[number])
    world.document(project, "Zur Pacht", title="anderes")
    world.publish()
    by_number = service_with(weight_semantic=0.0, weight_lexical=0.0)
    answer = search(query, using=by_number)
    assert titles(answer) == (["gesucht"] if is_first else [])
    if is_first:
        assert answer["results"][0]["matched_identifiers"] == ["1 C 4.16"]


def test_a_file_number_printed_with_hard_spaces_is_found_with_plain_ones(world: World, search: Search) -> None:
    number = {"kind": "file", "raw": "VI\u00a0ZR\u00a0194/17", "canonical": "VI ZR 194/17"}
    world.document(
        world.project("nord"), "Urteil VI\u00a0ZR\u00a0194/17 zur Miete", title="Urteil", identifiers=[number]
    )
    world.publish()
    (result,) = search("VI ZR 194/17")["results"]
    assert result["matched_identifiers"] == ["VI\u00a0ZR\u00a0194/17"]
    assert [result["excerpt"][start:end] for start, end in result["highlights"]] == ["VI", "ZR", "194", "17"]


@pytest.mark.parametrize("query", ["Mueller", "Müller", "muller"])
def test_a_name_is_found_however_its_umlaut_is_typed(
    world: World, search: Search, service_with: Callable[..., SearchService], query: str
) -> None:
    world.document(world.project("nord"), "Frau Müller kündigt", title="eins")
    world.publish()
    assert titles(search(query, using=service_with(weight_semantic=0.0))) == ["eins"]


def test_a_part_of_a_compound_finds_it_below_the_word_itself(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    project = world.project("nord")
    world.document(project, "Es gilt ein Wettbewerbsverbot im Vertrag", title="zusammen")
    world.document(project, "Es gilt ein Verbot von Wettbewerb im Vertrag", title="einzeln")
    world.publish()
    found = titles(search("Wettbewerb Verbot", using=service_with(weight_semantic=0.0)))
    assert found == ["einzeln", "zusammen"]


def test_english_text_is_found_by_its_stems(
    world: World, search: Search, service_with: Callable[..., SearchService]
) -> None:
    world.document(world.project("nord"), "termination notices are given in writing", title="eins")
    with world.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE chunks SET language = 'en'")
    world.publish()
    assert titles(search("notice termination", using=service_with(weight_semantic=0.0))) == ["eins"]


class Judge:
    def scores(self, query: str, passages: Mapping[str, str]) -> Mapping[str, float]:  # noqa: ARG002
        return {key: float(text.partition("\n")[0]) for key, text in passages.items()}


def test_a_reranker_reorders_the_first_twenty_and_pages_fit_together(
    world: World, settings: Settings, service: SearchService, search: Search
) -> None:
    project = world.project("nord")
    for number in range(30):
        world.document(project, f"Kündigung Nummer {number}", title=f"{number}")
    world.publish()
    retrieval = settings.retrieval.model_copy(update={"rerank_enabled": True})
    changed = settings.model_copy(update={"retrieval": retrieval})
    parts = (world.engine, service._access, world.client, service._embedding, changed, AuditHasher(b"k" * 16))
    with pytest.raises(MisconfiguredError):
        SearchService(*parts)
    judging = SearchService(*parts, reranker=Judge())
    plain = titles(search("Kündigung Nummer", limit=30))
    pages = [titles(search("Kündigung Nummer", limit=8, offset=at, using=judging)) for at in (0, 8, 16, 24)]
    expected = [*sorted(plain[:20], key=lambda title: -float(title)), *plain[20:]]
    assert [title for page in pages for title in page] == expected


def test_a_large_scope_finds_what_a_list_of_numbers_finds(
    world: World, settings: Settings, service: SearchService, search: Search
) -> None:
    project = world.project("nord")
    for number in range(12):
        world.document(project, f"Kündigung Nummer {number}", title=f"{number}")
    world.wall(world.document(project, "Kündigung Nummer 13", title="geheim"))
    world.publish()
    security = settings.security.model_copy(update={"scope_bitmap_threshold": 0})
    access = AccessService(world.engine, security)
    bitmaps = SearchService(world.engine, access, world.client, service._embedding, settings, AuditHasher(b"k" * 16))
    sent: list[bytes] = []
    world.client.on_request = sent.append
    assert titles(search("Kündigung", limit=20, using=bitmaps)) == titles(search("Kündigung", limit=20))
    assert [b"bitmap" in body for body in sent] == [True, False]
