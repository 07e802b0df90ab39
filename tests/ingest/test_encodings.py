"""Encodings: mark, strict UTF-8, then cp1252; which it was, and how sure that is, is kept with the text."""

from __future__ import annotations

import codecs
import json

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects
from shared.ingest.convert import html, json_text, plain, xml_text
from shared.ingest.convert.encoding import decode
from shared.ingest.report import Outcome
from tests.ingest.conftest import World

PROSE = "Die Größe der Wohnung beträgt fünfzig Quadratmeter. " * 5


@pytest.mark.parametrize(
    ("content", "text", "encoding", "confidence"),
    [
        ("Name;Ort\nMüller;Köln\nGroß;Ulm\n".encode("cp1252"), "Name;Ort\nMüller;Köln\nGroß;Ulm", "cp1252", "assumed"),
        ("Ein kurzer Vermerk für die Akte".encode(), "Ein kurzer Vermerk für die Akte", "utf-8", "valid"),
        (b"Pantothens\xe4ure", "Pantothensäure", "cp1252", "assumed"),
        (
            "§ 1 \u201eKauf\u201c \u2013 5 \u20ac".encode("cp1252"),
            "§ 1 \u201eKauf\u201c \u2013 5 \u20ac",
            "cp1252",
            "assumed",
        ),
        (codecs.BOM_UTF8 + "Größe".encode(), "Größe", "utf-8", "marked"),
        (codecs.BOM_UTF16_BE + "Größe".encode("utf-16-be"), "Größe", "utf-16-be", "marked"),
        (codecs.BOM_UTF32_LE + "Größe".encode("utf-32-le"), "Größe", "utf-32-le", "marked"),
        (b"nur ASCII", "nur ASCII", "utf-8", "valid"),
    ],
)
def test_a_text_keeps_how_it_was_read(content: bytes, text: str, encoding: str, confidence: str) -> None:
    found = plain.convert(content).text
    assert found.text == text
    assert (found.meta["encoding"], found.meta["encoding_confidence"]) == (encoding, confidence)


@pytest.mark.parametrize(
    ("convert", "markup"),
    [
        (html.convert, "<html><body><p>{}</p></body></html>"),
        (json_text.convert, '{{"content": "{}"}}'),
        (xml_text.convert, '<?xml version="1.0"?><akte><text>{}</text></akte>'),
    ],
    ids=["html", "json", "xml"],
)
def test_every_format_made_of_text_reads_them_alike(convert, markup: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "cp1252"):
        found = convert(markup.format(PROSE).encode(encoding)).text
        assert found.text == PROSE.strip()
        assert found.meta["encoding"].lower() == encoding.removesuffix("-sig")
        assert found.meta["encoding_confidence"]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1))
def test_valid_utf_8_is_never_taken_for_anything_else(text: str) -> None:
    content = text.encode()
    if not content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        assert decode(content).text == text


@given(st.binary())
def test_no_bytes_are_lost_or_fatal(content: bytes) -> None:
    found = decode(content)
    if found.encoding == "cp1252":
        assert len(found.text) == len(content)


def test_json_that_is_escaped_is_the_same_text() -> None:
    assert json_text.convert(json.dumps({"content": PROSE}).encode()).text.text == PROSE.strip()


def test_what_postgresql_cannot_store_is_taken_out_of_text_json_and_names_and_nothing_is_lost(world: World) -> None:
    filling = "Der Zeuge blieb dabei. " * 400
    report = world.ingest(
        {
            "a/Brief.txt": f"Anfang {filling} Kün\x00digung der Miete {filling} Ende".encode(),
            "a/Urteil.json": json.dumps(
                {"content": "Nul\x00l und ein halbes \ud83d Zeichen. " + filling, "az\x00": "1 C 4/16"}
            ).encode(),
            "a/Bei\x00lage \udcfc.txt": b"Text",
        }
    )
    assert [(file.outcome, file.reason) for file in report.files] == [(Outcome.NEW, None)] * 3
    names = {row.name for row in world.rows(sa.select(source_objects.c.name))}
    assert names == {"Brief.txt", "Urteil.json", "Beilage .txt"}
    rows = world.rows(
        sa.select(documents.c.title, chunks.c.text)
        .join(document_versions, document_versions.c.document_id == documents.c.id)
        .join(chunks, chunks.c.version_id == document_versions.c.id)
        .where(chunks.c.kind == "chunk")
        .order_by(chunks.c.ordinal)
    )
    letter = [row.text for row in rows if row.title == "Brief"]
    # The chunk with the mark in it, and all around it.
    assert len(letter) > 3
    assert any("Kündigung der Miete" in text for text in letter)
    assert letter[0].startswith("Anfang")
    assert letter[-1].endswith("Ende")
    assert any("Null und ein halbes Zeichen" in " ".join(row.text.split()) for row in rows)
