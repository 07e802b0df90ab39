import time

import pytest

from shared.ingest.identifiers import extract

HOSTILE = [
    "§ 1 Abs. 2 S. 3 Nr. 4 ",
    "§§ 1, 2, 3 und 4 bis 5 ",
    "§ 1 a b c d e f ",
    "Art. 1 i. V. m. ",
    "1 C ",
    "12 O 34/",
    "I-1-",
    "HRB Nr. ",
    "Rechnungsnummer ",
    "ECLI:DE:BGH:2018:",
    "Az.: ",
    "A" * 40 + " ",
    "1" * 40 + "/",
    "- ",
    " \n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_holds_the_search_for_identifiers_up(piece: str) -> None:
    text = (piece * (60_000 // len(piece) + 1))[:60_000]
    began = time.process_time()
    extract(text)
    # Honest prose of this length takes 20 ms; a pattern that backtracks takes hours.
    assert time.process_time() - began < 3.0


def test_a_long_list_still_ends_in_its_law() -> None:
    found = extract("nach §§ 280 Abs. 1, 3, 281 BGB und Art. 6 Abs. 1 lit. f DSGVO sowie § 5 Abs. 2 und 3")
    assert [one.raw for one in found] == ["§§ 280 Abs. 1, 3, 281 BGB", "Art. 6 Abs. 1 lit. f DSGVO"]
