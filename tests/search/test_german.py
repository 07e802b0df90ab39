"""German words through the lexical leg alone: compounds, umlauts in every form of their letters, names."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from shared.search.service import SearchService
from tests.world import World

Words = Callable[[str], list[str]]


@pytest.fixture
def found(search: Callable[..., dict[str, Any]], service_with: Callable[..., SearchService]) -> Words:
    """Gives the titles that words find, without the leg of meaning, which finds the nearest text for any words."""
    words_only = service_with(weight_semantic=0.0)
    return lambda query: [result["title"] for result in search(query, using=words_only)["results"]]


def put(world: World, **texts: str) -> None:
    project = world.project("nord")
    for title, text in texts.items():
        world.document(project, text, title=title)
    world.publish()


def test_the_first_part_of_a_compound_finds_it_below_the_word_itself(world: World, found: Words) -> None:
    put(
        world,
        claim="Der Schadensersatzanspruch ist begründet",
        damages="Der Schadensersatz ist begründet",
        action="Die Kündigungsschutzklage ist begründet",
        protection="Der Kündigungsschutz ist begründet",
        bracket="Die Wandhalterung ist begründet",
    )
    assert found("Schadensersatz") == ["damages", "claim"]
    assert found("Kündigungsschutz") == ["protection", "action"]
    # A wrong split ("wand" and "alterung") neither finds the word nor takes its place.
    assert found("Alterung") == []
    assert found("Wandhalterung") == ["bracket"]


def test_a_name_is_found_in_each_spelling_and_stands_first_in_its_own(world: World, found: Words) -> None:
    put(
        world,
        firm="Uber B.V.",
        # Of "über" every letter is full.
        **{f"about{number}": f"Schreiben über die Kosten {number}" for number in range(9)},
        umlaut="Frau Müller kündigt",
        digraph="Frau Mueller kündigt",
        plain="Frau Muller kündigt",
        bear="Herr Bär kündigt",
        bar="Herr Bar kündigt",
    )
    assert found("Uber")[0] == "firm"
    # The choice: all spellings meet, and what is written as it was asked for stands first.
    for query, first in (("Müller", "umlaut"), ("Mueller", "digraph"), ("Muller", "plain")):
        assert found(query)[0] == first
        assert set(found(query)) == {"umlaut", "digraph", "plain"}
    assert found("Bär") == ["bear", "bar"]
    assert found("Bar") == ["bar", "bear"]


@pytest.mark.parametrize(
    "query",
    ["gütersloh", "GÜTERSLOH", "Gütersloh", unicodedata.normalize("NFD", "gütersloh"), "g%C3%BCtersloh"],
    ids=["as it is", "upper case", "capital", "decomposed", "out of an address"],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_with_an_umlaut_finds_the_one_text_that_holds_it(
    world: World, found: Words, query: str, form: Any
) -> None:
    one = unicodedata.normalize(form, "Das Amtsgericht Gütersloh hat entschieden")
    put(world, one=one, two="Die Güte des Gerichts, über alle Maßen", three="Terminverlegung nach Los Angeles")
    assert found(query) == ["one"]
