from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.excerpt import EXCERPT_CHARS, excerpt_of, query_stems


def marked(text: str, query: str) -> list[str]:
    excerpt = excerpt_of(text, query_stems(query))
    return [excerpt.text[start:end] for start, end in excerpt.highlights]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("Die Kündigung wirkt.", "kuendigung", ["Kündigung"]),
        ("Die Kuendigung wirkt.", "KÜNDIGUNG", ["Kuendigung"]),
        ("Die Straße und die Strasse", "Straßen", ["Straße", "Strasse"]),
        ("Verträge und Vertrag", "Vertrages", ["Verträge", "Vertrag"]),
        ("Kündi\u00adgung", "Kündigung", ["Kündi\u00adgung"]),
        ("The notices were given.", "notice", ["notices"]),
        ("Die Miete", "die", []),
        ("Der Mieter", "Vermieter", []),
        ("Az. VI\u00a0ZR\u00a0194/17", "VI ZR 194/17", ["VI", "ZR", "194", "17"]),
    ],
)
def test_words_are_marked_without_case_umlauts_and_endings(text: str, query: str, words: list[str]) -> None:
    assert marked(text, query) == words


def test_the_window_is_where_most_different_words_stand() -> None:
    filler = "Allgemeines steht hier. " * 30
    text = f"Frist Frist Frist. {filler}Die Kündigung wahrt die Frist. {filler}Ende"
    excerpt = excerpt_of(text, query_stems("Frist Kündigung"))
    assert "Die Kündigung wahrt die Frist." in excerpt.text
    assert len(excerpt.text) <= EXCERPT_CHARS
    assert text[excerpt.start :].startswith(excerpt.text)


def test_it_is_cut_between_words() -> None:
    text = "Kündigungsfristenregelung " * 40
    excerpt = excerpt_of(text, query_stems("nichts"))
    assert set(excerpt.text.split()) == {"Kündigungsfristenregelung"}


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt_of(" Die Miete. ", query_stems("x")).text == "Die Miete."
    assert excerpt_of("", query_stems("x")).text == ""


@given(st.text(max_size=900), st.text(max_size=40))
def test_whatever_the_text_offsets_are_true(text: str, query: str) -> None:
    excerpt = excerpt_of(text, query_stems(query), chars=80)
    assert text[excerpt.start : excerpt.start + len(excerpt.text)] == excerpt.text
    assert len(excerpt.text) <= 80 or not query_stems(query).isdisjoint(query_stems(excerpt.text))
    ends = 0
    for start, end in excerpt.highlights:
        assert ends <= start < end <= len(excerpt.text)
        ends = end
