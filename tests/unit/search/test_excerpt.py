from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.excerpt import EXCERPT_CHARS, excerpt_of
from shared.search.marks import marks_for, matches


def marked(text: str, query: str) -> list[str]:
    excerpt = excerpt_of(text, marks_for(query))
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


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("Um 09:12:33 im Verfahren 12 O 345/21", "12 O 345/21", ["12", "O", "345", "21"]),
        ("Um 09:12:33 am 21. Mai", "12 O 345/21", []),
        ("Das Urteil 12 O 345/21, dort Seite 345", "Urteil 12 O 345/21", ["Urteil", "12", "O", "345", "21"]),
        ("In 12O345.21 und 12 O 99/20", "12 o 345/21", ["12", "O", "345", "21"]),
        ("Nur 345/21 steht hier und 12", "12 O 345/21", ["345", "21"]),
        ("112 O 345/211", "12 O 345/21", ["O", "345"]),
        ("112 O. 9, 345/211", "12 O 345/21", []),
        ("Az. 12\u00a0O\u00a0345/21", "1 C 4/16, 12 O 345/21", ["12", "O", "345", "21"]),
        ("12 und O und 345 und 21", "12 O 345/21", []),
        ("1 C 4/16", "1C4/16", ["1", "C", "4", "16"]),
        ("VI ZR 194/17 und VI. Abschnitt, 17 Seiten", "vi zr 194/17", ["VI", "ZR", "194", "17"]),
        ("Nach § 5 BGB, um 5 Uhr", "§ 5 BGB", ["5", "BGB"]),
        ("Am 5. Mai nach BGB", "§ 5 BGB", ["BGB"]),
        ("Das Jahr 2020", "Kündigung 2020", ["2020"]),
        ("Die Frist O ist 12", "Frist von 12 Monaten", ["Frist", "12"]),
    ],
)
def test_parts_of_an_identifier_are_marked_only_where_they_stand_together(
    text: str, query: str, words: list[str]
) -> None:
    assert marked(text, query) == words


FILLER = "Allgemeines steht hier. " * 30


def test_the_window_is_where_the_identifier_stands() -> None:
    text = f"Urteil zur Miete und Kündigung der Wohnung. {FILLER}Vergleiche 12 O 345/21. {FILLER}"
    assert "12 O 345/21" in excerpt_of(text, marks_for("Urteil Miete Kündigung 12 O 345/21")).text


MAIL = "From: Anna <anna@kanzlei.example>\nTo: Bert\nSubject: Kündigung Miete\n\n"


@pytest.mark.parametrize(
    ("text", "query", "begins"),
    [
        (f"{MAIL}Die Kündigung ist da.", "Kündigung Miete", "Die Kündigung"),
        (f"{MAIL}{FILLER}", "Kündigung", "From:"),
        (f"{MAIL}Die Kündigung ist da. {FILLER}", "Kündigung Miete", "Die Kündigung"),
        ("Von: Anna\nGesendet: Montag\nAn: Bert\nBetreff: Miete\n\nDie Miete ist da.", "Miete", "Die Miete"),
        (f"From: Anna\nTo: a,\n b,\n c\nDate: Mai\n\nDie Miete. {FILLER}", "Miete", "Die Miete"),
        ("Betreff: Miete\n\nDie Miete ist da.", "Miete", "Betreff: Miete"),
        (f"{MAIL}Bitte antworten.", "nichts", "From:"),
        (f"From: Anna\nSubject: Az. 12 O 345/21\n\nDas Urteil ist da. {FILLER}", "Urteil 12 O 345/21", "From:"),
    ],
)
def test_a_mail_begins_with_its_body_when_the_body_holds_the_match(text: str, query: str, begins: str) -> None:
    excerpt = excerpt_of(text, marks_for(query))
    assert excerpt.text.startswith(begins)
    assert text[excerpt.start :].startswith(excerpt.text)


def test_the_longest_query_of_digits_costs_little() -> None:
    text = "1 2 " * 2000
    for query in ("1 " * 1000, "1 2 " * 500, " ".join(f"{n} C {n}/16" for n in range(150)), "1/2-" * 500):
        began = time.process_time()
        matches(text, marks_for(query))
        assert time.process_time() - began < 1.0


def test_the_window_is_where_most_different_words_stand() -> None:
    text = f"Frist Frist Frist. {FILLER}Die Kündigung wahrt die Frist. {FILLER}Ende"
    excerpt = excerpt_of(text, marks_for("Frist Kündigung"))
    assert "Die Kündigung wahrt die Frist." in excerpt.text
    assert len(excerpt.text) <= EXCERPT_CHARS
    assert text[excerpt.start :].startswith(excerpt.text)


def test_it_is_cut_between_words() -> None:
    text = "Kündigungsfristenregelung " * 40
    excerpt = excerpt_of(text, marks_for("nichts"))
    assert set(excerpt.text.split()) == {"Kündigungsfristenregelung"}


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt_of(" Die Miete. ", marks_for("x")).text == "Die Miete."
    assert excerpt_of("", marks_for("x")).text == ""


@given(st.text(max_size=900), st.text(max_size=40))
def test_whatever_the_text_offsets_are_true(text: str, query: str) -> None:
    excerpt = excerpt_of(text, marks_for(query), chars=80)
    assert text[excerpt.start : excerpt.start + len(excerpt.text)] == excerpt.text
    assert len(excerpt.text) <= 80 or excerpt.highlights
    ends = 0
    for start, end in excerpt.highlights:
        assert ends <= start < end <= len(excerpt.text)
        ends = end
