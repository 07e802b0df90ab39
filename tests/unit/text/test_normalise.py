import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text.normalise import searched, single_line, stored


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("VI\u00a0ZR\u202f194/17", "VI ZR 194/17"),
        ("Po\u00adlitik", "Politik"),
        ("12\u201313\u2212a\u2011b", "12-13-a-b"),
        ("of\ufb01ziell", "offiziell"),
        (unicodedata.normalize("NFD", "Kündigung"), "Kündigung"),
        ("a\x00b\ud800c", "abc"),
        ("  a \n\t b  ", "a b"),
    ],
)
def test_queries_and_identifiers_get_one_form(raw: str, expected: str) -> None:
    assert single_line(raw) == expected


def test_stored_text_keeps_what_a_reader_sees() -> None:
    assert stored("50\u00a0m\u00b2 \u2013 of\ufb01ziell") == "50\u00a0m\u00b2 \u2013 of\ufb01ziell"


def test_searched_text_keeps_line_breaks() -> None:
    assert searched("a\u00a0b\nc") == "a b\nc"


@given(st.text(st.characters(codec=None, categories=None)))
def test_every_form_is_storable_and_stable(text: str) -> None:
    for form in (stored, searched, single_line):
        once = form(text)
        once.encode("utf-8")
        assert "\x00" not in once
        assert form(once) == once
