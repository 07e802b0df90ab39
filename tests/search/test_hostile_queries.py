"""Whatever is typed, a search answers or says which field is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidRequestError
from tests.world import World

Search = Callable[..., dict[str, Any]]

LONG = {
    "single letters": "a b c d e f g h i j " * 100,
    "different words": " ".join(f"w{number}ort" for number in range(260)),
    "digits": "1 " * 1000,
    "file numbers": " ".join(f"{number} C {number}/16" for number in range(150)),
    "one word": "x" * 2000,
    "ideographs": "契約" * 1000,
    "hangul": "계약" * 1000,
    "emoji": "😀⚖" * 1000,
    "marks": "a\u0301" * 1000,
    "punctuation": "a.b,c;d:e/f-g_h'i " * 110,
    "thai": "สัญญา" * 400,
    "underscores": "a_" * 1000,
    "syntax": '"a:b AND ( NOT [ TO } ~* ?? \\' * 60,
    "presentation forms": "\ufdfa" * 90,
}


@pytest.fixture
def one_document(world: World) -> None:
    world.document(world.project("nord"), "Treu und Glauben", title="eins")
    world.publish()


@pytest.mark.usefixtures("one_document")
def test_no_query_within_the_limit_fails(search: Search) -> None:
    short = [
        "10/2019",
        "12 O 34/21",
        "der die das",
        '"Treu und Glauben"',
        "😀",
        "a:b AND (",
        "\u00ad?",
        "*",
        "\\",
        "§§",
    ]
    for query in [*short, *(text.strip()[:2000] for text in LONG.values())]:
        # The nearest text, whatever was asked.
        assert [result["title"] for result in search(query)["results"]] == ["eins"], query[:20]


def test_a_query_that_is_too_long_is_refused_with_the_limit(search: Search) -> None:
    with pytest.raises(InvalidRequestError, match="2000") as caught:
        search("x" * 10_000)
    assert caught.value.field == "query"


@pytest.mark.parametrize("query", ["", " ", "\u00a0\u00ad", "\x00", "\ud800"])
def test_a_blank_query_is_refused(search: Search, query: str) -> None:
    with pytest.raises(InvalidRequestError, match="blank") as caught:
        search(query)
    assert caught.value.field == "query"
