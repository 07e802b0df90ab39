"""Windows over a text: exact spans, whole letters, no gaps."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.ingest.chunking import profile_text, windows

_LETTERS = st.sampled_from([*"abc äöü.,-", "\n", "\n\n", "e\u0301\u0323", "👩\u200d⚖\ufe0f", "x" * 30])
_TEXTS = st.lists(_LETTERS, max_size=400).map("".join)


@settings(max_examples=200, deadline=None)
@given(_TEXTS, st.integers(min_value=8, max_value=200), st.integers(min_value=0, max_value=7))
def test_windows_cover_the_text_with_exact_spans_and_whole_letters(text: str, chars: int, overlap: int) -> None:
    found = windows(text, chars=chars, overlap=overlap)
    covered = set()
    for window in found:
        assert text[window.char_start : window.char_end] == window.text
        for edge in (window.char_start, window.char_end):
            if 0 < edge < len(text):
                assert unicodedata.category(text[edge]) not in {"Mn", "Me", "Mc"}
                assert text[edge] not in "\u200d\ufe0f"
        covered.update(range(window.char_start, window.char_end))
    assert {position for position, letter in enumerate(text) if not letter.isspace()} <= covered


def test_a_window_ends_at_a_blank_line_before_a_line_before_a_word() -> None:
    text = "a" * 60 + "\n\n" + "b" * 20 + "\n" + "c" * 50
    assert windows(text, chars=100, overlap=0)[0].text == "a" * 60 + "\n\n"
    text = "a" * 60 + "\n" + "b" * 60
    assert windows(text, chars=100, overlap=0)[0].text == "a" * 60 + "\n"
    text = "a" * 60 + " " + "b" * 60
    assert windows(text, chars=100, overlap=0)[0].text == "a" * 60 + " "


def test_the_next_window_begins_in_the_overlap_at_a_word() -> None:
    first, second = windows("wort " * 30, chars=100, overlap=12)
    assert second.char_start == first.char_end - 10
    assert second.text.startswith("wort ")


def test_a_text_without_any_break_is_cut_at_the_size() -> None:
    assert [len(window.text) for window in windows("x" * 250, chars=100, overlap=10)] == [100, 100, 70]


def test_blank_text_has_no_windows() -> None:
    assert windows("", chars=100, overlap=10) == []
    assert windows(" \n\n ", chars=100, overlap=10) == []


def test_a_profile_is_its_labelled_lines_and_the_beginning_of_the_text() -> None:
    text = "x" * 500
    assert profile_text([("Title", "Vertrag"), ("Date", "")], text) == "Title: Vertrag\n" + "x" * 400
