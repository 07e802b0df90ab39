"""OpenDocument: the accepted text, what was removed apart, sheets with addresses, slides as pages."""

from __future__ import annotations

import io
import random
import time
import zipfile

import pytest

from shared.errors import EncryptedFileError, LimitExceededError, PermanentError, UnreadableFileError
from shared.ingest.convert.formats import FORMATS
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.odt import convert
from shared.ingest.convert.process import ConversionProcess

NAMES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        **{
            short: f"urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"
            for short, long in {
                "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style",
                "presentation": "presentation", "meta": "meta",
            }.items()
        },
        "dc": "http://purl.org/dc/elements/1.1/",
    }.items()
)  # fmt: skip


def document(kind: str, body: str, *, styles: str = "", automatic: str = "", prologue: str = "", **more: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}", zipfile.ZIP_STORED)
        package.writestr(
            "content.xml",
            f"{prologue}<office:document-content {NAMES}><office:automatic-styles>{automatic}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        )
        package.writestr("styles.xml", f"<office:document-styles {NAMES}>{styles}</office:document-styles>")
        for name, content in more.items():
            package.writestr(name.replace("__", "/").replace("_", "."), content)
    return made.getvalue()


LETTER = document(
    "text",
    "<text:tracked-changes><text:changed-region text:id='d1'><text:deletion><office:change-info><dc:creator>Ben</dc:creator>"
    "<dc:date>2024-03-01T10:00:00</dc:date></office:change-info><text:p>50.000</text:p></text:deletion></text:changed-region>"
    "<text:changed-region text:id='i1'><text:insertion><office:change-info><dc:creator>Anna</dc:creator>"
    "<dc:date>2024-03-02T10:00:00</dc:date></office:change-info></text:insertion></text:changed-region></text:tracked-changes>"
    "<text:h text:outline-level='1'>Kaufvertrag</text:h>"
    "<text:p>Kaufpreis <text:change text:change-id='d1'/><text:change-start text:change-id='i1'/><text:span>75.000</text:span>"
    "<text:change-end text:change-id='i1'/> EUR<text:note text:note-class='footnote'><text:note-citation>1</text:note-citation>"
    "<text:note-body><text:p>Ohne Umsatzsteuer.</text:p></text:note-body></text:note>.</text:p>"
    "<text:p>Links<text:tab/>rechts<text:s text:c='3'/>und<text:line-break/>unten"
    "<office:annotation><dc:creator>Carl</dc:creator><dc:date>2024-03-03T08:00:00</dc:date><text:p>Stimmt das?</text:p></office:annotation></text:p>"
    "<text:list><text:list-item><text:p>erstens</text:p></text:list-item><text:list-item><text:p>zweitens</text:p></text:list-item></text:list>"
    "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Miete</text:p></table:table-cell>"
    "<table:table-cell><text:p>1.200 €</text:p></table:table-cell></table:table-row></table:table-header-rows></table:table>"
    "<text:p>Im Kasten:<draw:frame><draw:text-box><text:p>Nur einmal.</text:p></draw:text-box></draw:frame></text:p>",
    styles="<office:master-styles><style:master-page><style:header><text:p>Kanzlei Nord, Az. 12 O 34/21</text:p></style:header>"
    "<style:footer><text:p>Seite <text:page-number>1</text:page-number></text:p></style:footer></style:master-page>"
    "<style:master-page><style:header><text:p>Kanzlei Nord, Az. 12 O 34/21</text:p></style:header></style:master-page></office:master-styles>",
    meta_xml=f"<office:document-meta {NAMES}><office:meta><dc:title>Vertrag</dc:title></office:meta></office:document-meta>",
)


def test_a_text_document_is_its_accepted_text() -> None:
    found = convert(LETTER).text
    assert found.text == (
        "Kaufvertrag\nKaufpreis 75.000 EUR[1].\nLinks\trechts   und\nunten\nerstens\nzweitens\nMiete | 1.200 €\n"
        "Im Kasten:\nNur einmal.\nKanzlei Nord, Az. 12 O 34/21\nSeite 1\n[1] Ohne Umsatzsteuer."
    )
    assert [page.locus for page in found.pages] == ["body", "header", "footer", "notes"]
    assert (found.title, found.meta["heading"]) == ("Vertrag", "Kaufvertrag")


def test_what_was_removed_and_added_is_kept_apart_with_author_and_day() -> None:
    meta = convert(LETTER).text.meta
    assert meta["deletions"] == [{"author": "Ben", "date": "2024-03-01T10:00:00", "text": "50.000"}]
    assert meta["insertions"] == [{"author": "Anna", "date": "2024-03-02T10:00:00", "text": "75.000"}]
    assert meta["comments"] == [{"author": "Carl", "date": "2024-03-03T08:00:00", "text": "Stimmt das?"}]


def test_an_insertion_over_paragraphs_is_one() -> None:
    body = (
        "<text:tracked-changes><text:changed-region text:id='i1'><text:insertion><office:change-info/></text:insertion>"
        "</text:changed-region></text:tracked-changes><text:p>Alt. <text:change-start text:change-id='i1'/>Neu</text:p>"
        "<text:p>und mehr<text:change-end text:change-id='i1'/>.</text:p>"
    )
    found = convert(document("text", body)).text
    assert found.text == "Alt. Neu\nund mehr."
    assert found.meta["insertions"] == [{"author": None, "date": None, "text": "Neu\nund mehr"}]


def test_a_field_for_the_title_is_text_and_the_title_of_a_picture_is_not() -> None:
    body = (
        "<text:p>Betreff: <text:title>Vertrag</text:title><draw:frame xmlns:svg='urn:oasis:names:tc:opendocument:xmlns:"
        "svg-compatible:1.0'><svg:title>Logo</svg:title><svg:desc>Ein Logo</svg:desc></draw:frame></text:p>"
    )
    assert convert(document("text", body)).text.text == "Betreff: Vertrag"


def sheets(rows: str) -> bytes:
    return document(
        "spreadsheet",
        f"<table:table table:name='Preise'>{rows}</table:table>"
        "<table:table table:name='Reserve' table:style-name='ta2'><table:table-row><table:table-cell><text:p>versteckt</text:p>"
        "</table:table-cell></table:table-row></table:table>",
        automatic="<style:style style:name='ta2' style:family='table'><style:table-properties table:display='false'/></style:style>",
    )


def test_sheets_have_their_cells_by_address_and_dates_in_iso_form() -> None:
    found = convert(
        sheets(
            "<table:table-row><table:table-cell office:value-type='string'><text:p>Kaufpreis</text:p></table:table-cell>"
            "<table:table-cell table:number-columns-repeated='2'/>"
            "<table:table-cell office:value-type='currency' office:value='75000'><text:p>75.000,00 €</text:p></table:table-cell>"
            "<table:table-cell office:value-type='date' office:date-value='2024-02-29'><text:p>29.02.24</text:p></table:table-cell></table:table-row>"
            "<table:table-row table:number-rows-repeated='1048000'><table:table-cell table:number-columns-repeated='16384'/></table:table-row>"
            "<table:table-row><table:table-cell table:number-columns-repeated='2'><text:p>x</text:p></table:table-cell></table:table-row>"
        )
    ).text
    assert found.text == "Kaufpreis | 75.000,00 € | 2024-02-29\nx | x\nversteckt"
    assert [page.locus for page in found.pages] == ["sheet Preise", "sheet Reserve"]
    assert [sheet["hidden"] for sheet in found.meta["sheets"]] == [False, True]
    assert found.meta["sheets"][0]["cells"] == [["A1", 0], ["D1", 12], ["E1", 26], ["A1048002", 37], ["B1048002", 41]]


def test_slides_are_pages_and_notes_are_apart() -> None:
    body = (
        "<draw:page draw:name='eins'><draw:frame><draw:text-box><text:p>Überblick</text:p></draw:text-box></draw:frame>"
        "<draw:g><draw:custom-shape><text:p>im Kasten</text:p></draw:custom-shape></draw:g>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>Nicht vorlesen.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
        "<draw:page draw:name='zwei'/>"
    )
    found = convert(document("presentation", body)).text
    assert [(page.number, page.locus, found.text[page.char_start : page.char_end]) for page in found.pages] == [
        (1, None, "Überblick\nim Kasten"),
        (1, "notes", "Nicht vorlesen."),
        (2, None, ""),
    ]


@pytest.mark.parametrize("kind", ["text", "spreadsheet", "presentation"])
def test_an_open_document_is_known_by_its_content(kind: str) -> None:
    assert kind_of(document(kind, ""), "x.bin") in FORMATS


def test_an_encrypted_document_says_so() -> None:
    manifest = "<m:manifest xmlns:m='urn:oasis:names:tc:opendocument:xmlns:manifest:1.0'><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"
    with pytest.raises(EncryptedFileError, match="password"):
        convert(document("text", "<text:p>x</text:p>", **{"META-INF__manifest_xml": manifest}))


def test_cells_and_rows_that_stand_for_millions_take_no_memory(converter: ConversionProcess) -> None:
    began = time.monotonic()
    rows = (
        "<table:table-row table:number-rows-repeated='1000000'><table:table-cell table:number-columns-repeated='16384'>"
        "<text:p>x</text:p></table:table-cell></table:table-row>"
        * 20
        + f"<table:table-row table:number-rows-repeated='{'9' * 5000}'/>"
    )
    text = converter.convert("odt", sheets(rows), timeout_s=30).text.text
    assert text.count("x") == 20 * 10 * 10
    assert time.monotonic() - began < 20


def test_spaces_that_stand_for_millions_are_few(converter: ConversionProcess) -> None:
    text = converter.convert(
        "odt", document("text", "<text:p>a<text:s text:c='999999999'/>b</text:p>"), timeout_s=30
    ).text
    assert len(text.text) < 2000


def test_a_bomb_and_entities_are_stopped(converter: ConversionProcess) -> None:
    with pytest.raises(LimitExceededError, match="unpacks to more than"):
        converter.convert("odt", document("text", " " * (210 * 2**20)), timeout_s=60)
    laughs = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'><!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
    found = converter.convert("odt", document("text", "<text:p>&b;&f;</text:p>", prologue=laughs), timeout_s=30)
    assert found.text.text == "&b;&f;"


def test_a_document_cut_off_or_broken_anywhere_has_a_text_or_a_reason(converter: ConversionProcess) -> None:
    for share in range(20):
        with pytest.raises(UnreadableFileError):
            converter.convert("odt", LETTER[: len(LETTER) * share // 20], timeout_s=30)
    with zipfile.ZipFile(io.BytesIO(LETTER)) as archive:
        content = archive.read("content.xml")
    for seed in range(100):
        chance = random.Random(seed)
        broken = bytearray(LETTER if seed % 2 else content)
        for _ in range(3):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        whole = bytes(broken)
        if seed % 2 == 0:
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w") as package:
                package.writestr("content.xml", whole)
            whole = made.getvalue()
        try:
            converter.convert("odt", whole, timeout_s=30)
        except PermanentError:
            continue
