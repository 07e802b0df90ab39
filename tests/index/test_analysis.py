"""German, English and identifier text on a real node: what a search finds, and in which order."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from shared.index import fields
from shared.index.analysis import ENGLISH, EXACT, GERMAN
from shared.index.client import IndexClient, Write
from shared.index.compounds import parts_text
from shared.text.normalise import searched

Find = Callable[..., list[str]]


@pytest.fixture
def put(client: IndexClient, alias: str) -> Callable[[Mapping[str, Mapping[str, Any]]], None]:
    def write(rows: Mapping[str, Mapping[str, Any]]) -> None:
        items = client.bulk(alias, [Write(name, 1, {"chunk_id": name, **row}) for name, row in rows.items()])
        assert {item.outcome for item in items} == {"written"}, items
        client.refresh(alias)

    return write


@pytest.fixture
def find(client: IndexClient, alias: str) -> Find:
    def search(query: Mapping[str, Any]) -> list[str]:
        return [row.chunk_id for row in client.search(alias, {"query": query, "size": 50, "_source": False}).rows]

    return search


def match(field: str, text: str) -> dict[str, Any]:
    return {"match": {field: {"query": text, "operator": "and"}}}


def phrase(field: str, text: str) -> dict[str, Any]:
    return {"match_phrase": {field: text}}


def terms(client: IndexClient, alias: str, analyser: str, text: str) -> list[str]:
    answer = client.request("POST", f"/{alias}/_analyze", {"analyzer": analyser, "text": text})
    return [token["token"] for token in answer["tokens"]]


def test_negations_stay_and_articles_go(client: IndexClient, alias: str) -> None:
    text = "Die Haftung ist nicht ohne Grund gegen keinen Mieter ausgeschlossen worden"
    assert terms(client, alias, GERMAN, text) == [
        "haftung", "nicht", "ohn", "grund", "geg", "kein", "miet", "ausgeschloss",
    ]  # fmt: skip
    assert terms(client, alias, ENGLISH, "The tenant's agreements are not void without a notice") == [
        "tenant", "agreement", "not", "void", "without", "notic",
    ]  # fmt: skip


def test_a_clause_that_excludes_is_told_from_one_that_accepts(put: Any, find: Find) -> None:
    put({"accepts": {"text": "Der Vermieter haftet"}, "excludes": {"text": "Der Vermieter haftet nicht"}})
    assert find(phrase(fields.TEXT, "haftet nicht")) == ["excludes"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Schadensersatzanspruch", "Schadensersatz"),
        ("Schadensersatzanspruch", "Anspruch"),
        ("Kündigungsschutzklage", "Kündigungsschutz"),
        ("Wettbewerbsverbote", "Wettbewerb"),
        ("Wettbewerbsverbote", "Verbot"),
        ("Mietverträge", "Vertrag"),
    ],
)
def test_a_compound_is_found_by_its_part(put: Any, find: Find, text: str, query: str) -> None:
    put({"whole": {"text": text, "text_parts": parts_text(text)}})
    assert find(match(fields.TEXT, query)) == []
    assert find(match(fields.TEXT_PARTS, query)) == ["whole"]


def test_the_exact_word_ranks_above_a_part_and_the_whole_word_stays(put: Any, find: Find) -> None:
    rows = {"compound": "Schadensersatzanspruch", "word": "Schadensersatz", "other": "Wandhalterung"}
    put({name: {"text": text, "text_parts": parts_text(text)} for name, text in rows.items()})

    def lexical(query: str) -> dict[str, Any]:
        return {"multi_match": {"query": query, "type": "most_fields", "fields": ["text", "text_parts^0.3"]}}

    assert find(lexical("Schadensersatz")) == ["word", "compound"]
    assert find(lexical("Schadensersatzanspruch"))[0] == "compound"
    assert find(lexical("Wandhalterung")) == ["other"]
    assert find(lexical("Alterung")) == []


def test_umlauts_fold_for_names_and_the_exact_form_keeps_uber_above_ueber(put: Any, find: Find) -> None:
    names = {"ü": "Müller", "ue": "Mueller", "bär": "Bär", "bar": "Bar"}
    put({name: {"text": text, "parties": [text]} for name, text in names.items()})
    put({"firm": {"text": "Uber B.V. trägt die Kosten"}, "about": {"text": "über die Kosten, über die Zinsen"}})
    assert set(find(match(fields.TEXT, "Müller"))) == set(find(match(fields.PARTIES, "Mueller"))) == {"ü", "ue"}
    assert set(find(match(fields.TEXT, "Uber"))) == {"firm", "about"}
    assert find(match(fields.TEXT_EXACT, "uber")) == ["firm"]
    both = {"bool": {"must": [match(fields.TEXT, "Uber")], "should": [match(fields.TEXT_EXACT, "Uber")]}}
    assert find(both) == ["firm", "about"]
    # The choice: a bear is also found as a bar, and ranks first when it is written so.
    exact_first = {"bool": {"must": [match(fields.TEXT, "Bär")], "should": [match(fields.TEXT_EXACT, "Bär")]}}
    assert find(exact_first) == ["bär", "bar"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_composed_and_decomposed_letters_find_each_other(put: Any, find: Find, form: Any, asked: Any) -> None:
    put({"one": {"text": searched(unicodedata.normalize(form, "Kündigung"))}, "other": {"text": "Kundin"}})
    for text in ("Kündigung", "KÜNDIGUNG"):
        assert find(match(fields.TEXT, searched(unicodedata.normalize(asked, text)))) == ["one"]


def test_an_umlaut_finds_one_document_not_all(put: Any, find: Find) -> None:
    put({"one": {"text": "Amtsgericht Gütersloh"}, "two": {"text": "über die Güte"}, "three": {"text": "Los und Ü"}})
    assert find(match(fields.TEXT, "gütersloh")) == ["one"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Wert\u00adpapier\u00adindex", "Wertpapierindex"),
        ("Po\u00adlitikwissenschaft", "Politikwissenschaft"),
        ("\ufb01nanziell", "finanziell"),
        ("of\ufb01ziell", "offiziell"),
        ("VI\u00a0ZR\u00a0194/17", "VI ZR 194/17"),
        ("Straße", "Strasse"),
    ],
)
def test_print_marks_do_not_hide_words(put: Any, find: Find, text: str, query: str) -> None:
    put({"one": {"text": searched(text)}})
    assert find(phrase(fields.TEXT, query)) == ["one"]


def test_marks_that_got_past_the_normaliser_are_folded_by_the_engine(client: IndexClient, alias: str) -> None:
    raw = "Wert\u00adpapier\u200bindex Miet\u2011 und\u00a0Pacht"
    assert terms(client, alias, EXACT, raw) == ["wertpapierindex", "miet", "und", "pacht"]


def test_english_text_meets_english_endings_only(put: Any, find: Find) -> None:
    put({"en": {"text_en": "The parties' indemnities survive"}, "de": {"text": "Die Parteien überleben"}})
    assert find(match(fields.TEXT_EN, "party's indemnity")) == ["en"]
    assert find(match(fields.TEXT_EXACT, "indemnities")) == ["en"]
    assert find(match(fields.TEXT_EXACT, "parteien")) == ["de"]


IDENTIFIERS = {
    "amtsgericht": "1 C 4/16",
    "bgh": "VI ZR 194/17",
    "verfassung": "2 BvR 1/20",
    "kammer": "12 O 34/21 KfH",
    "landgericht": "12 O 345/21",
    "sozial": "L 9 AS 12/19 B ER",
    "eugh": "C-210/16",
    "register": "HRB 12345 B",
    "norm": "§ 433 Abs. 2 BGB",
    "ecli": "ECLI:DE:BGH:2018:041218UVIZR194.17.0",
    "iban": "DE89370400440532013000",
    "distractor-front": "11 C 4/16",
    "distractor-back": "1 C 4/165",
    "distractor-split": "1 C 41/6",
}


@pytest.fixture
def identified(put: Any) -> None:
    put({name: {"identifiers": [text], "identifiers_text": [text]} for name, text in IDENTIFIERS.items()})


def identifier_leg(query: str) -> dict[str, Any]:
    legs = [{"match": {fields.IDENTIFIERS_JOINED: query}}, phrase(fields.IDENTIFIERS_PARTS, query)]
    return {"dis_max": {"queries": legs}}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("1 C 4.16", "amtsgericht"),
        ("1 C 4/16", "amtsgericht"),
        ("1C4/16", "amtsgericht"),
        ("vi zr 194/17", "bgh"),
        ("VIZR194/17", "bgh"),
        ("2 BvR 1/20", "verfassung"),
        ("2BVR1/20", "verfassung"),
        ("12 O 34/21 KfH", "kammer"),
        ("12O345/21", "landgericht"),
        ("345/21", "landgericht"),
        ("L 9 AS 12/19 B ER", "sozial"),
        ("C‑210/16", "eugh"),
        ("HRB12345B", "register"),
        ("§433 Abs.2 BGB", "norm"),
        ("ecli:de:bgh:2018:041218uvizr194.17.0", "ecli"),
        ("DE89 3704 0044 0532 0130 00", "iban"),
        ("Was steht im Urteil VI ZR 194/17 zur Frage der Haftung?", "bgh"),
    ],
)
@pytest.mark.usefixtures("identified")
def test_an_identifier_is_found_however_it_is_spaced(find: Find, query: str, found: str) -> None:
    assert find(identifier_leg(query)) == [found]


@pytest.mark.parametrize(
    "query", ["Kündigung 2020 und 21", "4", "16", "O", "zur Haftung", "11 C 4", "der die das", " ", "§"]
)
@pytest.mark.usefixtures("identified")
def test_words_and_loose_numbers_find_no_identifier_as_a_whole(find: Find, query: str) -> None:
    assert find({"match": {fields.IDENTIFIERS_JOINED: query}}) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("1 C 4/16 " * 200, {"amtsgericht"}),
        (" ".join(f"wort{number}" for number in range(220)) + " VI ZR 194/17", {"bgh"}),
        ("a:b AND (", set()),
        ("\U0001f600 \U0001f642", set()),
        ("x" * 2000, set()),
    ],
)
@pytest.mark.usefixtures("identified")
def test_long_and_hostile_queries_are_answered(find: Find, query: str, found: set[str]) -> None:
    assert set(find({"match": {fields.IDENTIFIERS_JOINED: query}})) == found
    find(identifier_leg(query))


def test_a_phrase_does_not_cross_from_one_identifier_to_the_next(put: Any, find: Find) -> None:
    put({"two": {"identifiers_text": ["12 O 34/21", "5 U 6/22"]}})
    assert find(phrase(fields.IDENTIFIERS_PARTS, "21 5")) == []
    assert find(phrase(fields.IDENTIFIERS_PARTS, "5 U")) == ["two"]
