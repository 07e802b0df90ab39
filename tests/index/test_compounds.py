"""Compounds are taken apart where that is certain, and left alone where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.index.compounds import parts_of, parts_text


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("schadensersatzanspruch", ("schaden", "schadensersatz", "ersatz", "ersatzanspruch", "anspruch")),
        ("kündigungsschutzklage", ("kündigung", "kündigungsschutz", "schutz", "schutzklage", "klage")),
        ("wettbewerbsverbot", ("wettbewerb", "verbot")),
        ("mietverträge", ("miet", "verträg")),
        ("kündigungsfristen", ("kündigung", "frist")),
        # The front is unknown, but certainly a word: it ends in -heit and a linking s.
        ("schönheitsreparaturen", ("schönheit", "reparatur")),
        # Only the front is known, and the linking s ends it.
        ("vertragswidrigkeit", ("vertrag",)),
    ],
)
def test_known_parts_and_their_joins_are_given(word: str, parts: tuple[str, ...]) -> None:
    assert parts_of(word) == parts


@pytest.mark.parametrize(
    "word",
    ["wandhalterung", "unrecht", "urteil", "beitrag", "arbeitnehmer", "grundstück", "verhandlungen", "klagenfurt",
     "angestellten", "interessen", "haftung", "vertrages", "ansprüche"],
)  # fmt: skip
def test_what_is_no_certain_compound_stays_whole(word: str) -> None:
    assert parts_of(word) == ()


def test_a_text_gives_the_parts_of_each_compound_as_often_as_it_occurs() -> None:
    assert parts_text("Die Mietminderung, das Urteil; eine MIETMINDERUNG.") == "miet minderung miet minderung"
    assert parts_text("The tenant shall pay. § 536 BGB 😀") == ""


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüß", min_size=1, max_size=60))
def test_a_part_is_always_a_proper_piece_of_the_word(word: str) -> None:
    for part in parts_of(word):
        assert part in word
        assert len(part) < len(word)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert set(parts_text(text).split()) <= {part for word in text.lower().split() for part in [*_pieces(word)]}


def _pieces(word: str) -> set[str]:
    return {word[start:stop] for start in range(len(word)) for stop in range(start + 1, len(word) + 1)}
