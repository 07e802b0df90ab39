"""Which part of a text is read."""

from __future__ import annotations

import pytest

from shared.catalog.document_answer import passage
from shared.catalog.requests import MAX_TEXT_CHARS, NOBODYS_ID, DocumentRead, identifier
from shared.errors import InvalidRequestError
from shared.text.converted import ConvertedText, Page

TEXT = ConvertedText(
    "eins zwei drei Fuß",
    (Page(1, 0, 5), Page(2, 5, 10), Page(3, 10, 15), Page(None, 15, 18, "footnotes")),
)


def read(**asked: int) -> DocumentRead:
    return DocumentRead.model_validate(asked)


def test_without_more_the_text_is_read_from_its_beginning() -> None:
    part = passage(TEXT, read())
    assert (part.content, part.char_start, part.char_end, part.total_chars) == (TEXT.text, 0, 18, 18)
    assert [page.number for page in part.pages] == [1, 2, 3, None]
    assert part.page_count == 3


def test_a_page_is_read_by_its_number() -> None:
    part = passage(TEXT, read(page=2))
    assert (part.content, part.char_start, part.char_end, part.limit) == ("zwei ", 5, 10, 10)
    assert [page.number for page in part.pages] == [2]


def test_a_long_page_comes_in_pieces() -> None:
    part = passage(TEXT, read(page=2, max_chars=2))
    assert (part.content, part.char_end, part.limit) == ("zw", 7, 10)


def test_characters_are_read_across_pages() -> None:
    part = passage(TEXT, read(offset=3, max_chars=4))
    assert part.content == "s zw"
    assert [page.number for page in part.pages] == [1, 2]


def test_beyond_the_end_there_is_nothing() -> None:
    part = passage(TEXT, read(offset=99))
    assert (part.content, part.char_start, part.char_end, part.pages) == ("", 18, 18, ())


@pytest.mark.parametrize("page", [4, 99])
def test_a_page_that_is_not_there_is_refused_with_those_that_are(page: int) -> None:
    with pytest.raises(InvalidRequestError, match="pages 1 to 3") as refused:
        passage(TEXT, read(page=page))
    assert refused.value.field == "page"


def test_a_text_without_pages_says_so() -> None:
    with pytest.raises(InvalidRequestError, match="use offset"):
        passage(ConvertedText("eins"), read(page=1))


def test_too_many_characters_are_clamped() -> None:
    assert read(max_chars=10**9).chars == MAX_TEXT_CHARS


@pytest.mark.parametrize("raw", ["", "x", "{12345678-1234-5678-1234-567812345678}", "12345678123456781234567812345678",
                                 "urn:uuid:12345678-1234-5678-1234-567812345678", "\x00", "٤" * 36])  # fmt: skip
def test_an_id_has_one_spelling(raw: str) -> None:
    assert identifier(raw) == NOBODYS_ID


def test_an_id_is_read_in_either_case() -> None:
    spelt = "ABCDEF12-1234-5678-1234-567812345678"
    assert str(identifier(spelt)) == spelt.lower()
