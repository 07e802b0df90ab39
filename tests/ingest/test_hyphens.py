"""Words cut at a line's end, soft hyphens and ligatures: whole in the text, found in search, with spans that hold."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ingest.chunking import windows
from shared.ingest.convert import pdf, plain
from shared.ingest.convert.hyphens import is_table, join_cut_words
from shared.text.normalise import searched
from tests.ingest.pdfs import Pdf


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("Schadens-\nersatz", "Schadensersatz"),
        ("Schadens\u2010\nersatz", "Schadensersatz"),
        ("Schadens- \n   ersatz", "Schadensersatz"),
        ("Miet-\nund Pachtrecht", "Miet- und Pachtrecht"),
        ("Vor- und Nach-\nteile", "Vor- und Nachteile"),
        ("§ 573-\n575", "§ 573-575"),
        ("GmbH-\nGesetz", "GmbH-Gesetz"),
        ("GmbH-\nrechtlich", "GmbH-rechtlich"),
        ("E-\nmail", "E-mail"),
        ("den-\nnoch", "dennoch"),
        ("the parties there-\nto", "the parties thereto"),
        ("a mi-\nnor change", "a minor change"),
        ("a long-term lease is a long-\nterm lease", "a long-term lease is a long-term lease"),
        ("https://kanzlei.example/miet-\nrecht", "https://kanzlei.example/miet-recht"),
        ("(Schadens-\nersatz)", "(Schadensersatz)"),
        ("Seite -\n3", "Seite -\n3"),
        ("Liste:\n- eins\n- zwei", "Liste:\n- eins\n- zwei"),
        ("Ende -\nAnfang", "Ende -\nAnfang"),
        ("of-\nﬁziell", "ofﬁziell"),
    ],
)
def test_a_hyphen_at_a_line_end(cut: str, whole: str) -> None:
    assert join_cut_words(cut) == whole
    assert plain.convert(cut.encode()).text.text == whole


@given(st.text(alphabet="abXY12 -\n\u2010§.", max_size=60))
def test_joining_twice_is_joining_once_and_loses_no_letter(text: str) -> None:
    joined = join_cut_words(text)
    kept = str.maketrans("", "", "-\u2010 \n")
    assert joined.translate(kept) == text.translate(kept)
    # What a join brings to a line's end is a matter of its own line.
    assert len(join_cut_words(joined)) <= len(joined)


@pytest.mark.parametrize("row", ["Miete;500-\nPacht;700-\n", "a\tb-\nc\td-\n", "x,1-\ny,2-\n"])
def test_the_rows_of_a_table_stay_rows(row: str) -> None:
    assert is_table(row)
    assert plain.convert(row.encode()).text.text == row.strip()


def test_a_letter_with_commas_is_no_table() -> None:
    assert not is_table(
        "Sehr geehrte Damen, sehr geehrte Herren,\nder Vertrag, den Sie sandten, ist\nunter-\nschrieben."
    )


def test_soft_hyphens_and_ligatures_are_found_by_the_plain_word() -> None:
    text = plain.convert(
        "Wert\u00adpapier\u00adindex, Po\u00ad\nlitikwissenschaft, ﬁnanziell, ofﬁziell, m²".encode()
    ).text.text
    assert text == "Wertpapierindex, Politikwissenschaft, ﬁnanziell, ofﬁziell, m²"
    assert "finanziell, offiziell" in searched(text)


def test_what_is_shown_of_a_joined_text_is_found_again_in_it() -> None:
    paper = Pdf(height=400)
    lines = ["Der Schuldner haftet auf Schadens-", "ersatz nach Miet-", "und Pachtrecht, §§ 573-", "575 BGB."] * 4
    paper.text(lines)
    paper.text(lines)
    text = pdf.convert(paper.build()).text
    assert "Schadensersatz nach Miet- und Pachtrecht, §§ 573-575 BGB." in text.text
    for window in windows(text.text, chars=120, overlap=20):
        assert text.text[window.char_start : window.char_end] == window.text
    first, second = text.pages
    assert text.text[first.char_start : first.char_end] == text.text[second.char_start : second.char_end]


def test_a_file_without_a_space_costs_no_more_than_its_length() -> None:
    began = time.monotonic()
    for text in ("a" * 1_000_000, "a-" * 500_000, "a-\n" * 100_000, "- " * 500_000, "." * 1_000_000 + "-\na"):
        join_cut_words(text + "-\nb")
    assert time.monotonic() - began < 10
