from __future__ import annotations

import pytest

from shared.search.hits import matched_identifiers
from shared.search.words import first_terms, runs


def test_a_short_query_stays_as_it_is() -> None:
    assert first_terms("Treu und Glauben!", limit=3) == "Treu und Glauben!"


def test_a_long_query_keeps_its_first_different_terms() -> None:
    assert first_terms("a b a c d", limit=3) == "a b c"
    assert first_terms("契約契約法", limit=3) == "契 約 法"


@pytest.mark.parametrize(
    ("query", "is_named"),
    [
        ("1 C 4/16", True),
        ("Urteil 1C4.16 vom Mai", True),
        ("1 c 4 / 16", True),
        ("1\u00a0C\u00a04/16", True),
        ("11 C 4/16", False),
        ("1 C 4/165", False),
        ("1 C 41/6", False),
        ("C 4/16", False),
        ("", False),
    ],
)
def test_an_identifier_is_named_when_it_stands_in_the_query_whole(query: str, is_named: bool) -> None:
    identifiers = [{"kind": "file", "raw": "1 C 4.16", "canonical": "1 C 4/16"}]
    assert matched_identifiers(identifiers, runs(query)) == (["1 C 4.16"] if is_named else [])


def test_an_identifier_without_letters_or_digits_is_never_named() -> None:
    assert matched_identifiers([{"kind": "file", "raw": "§", "canonical": "§"}], runs("§ 1")) == []
