"""Formats beyond the real files: encodings, kinds, mails, hyphens, pages."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from shared.errors import UnsupportedFileError
from shared.ingest.convert import eml, html, plain
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.hyphens import join_cut_words
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.pdf import convert as convert_pdf
from shared.ingest.stages.convert import member_name
from shared.text.converted import ConvertedText, Page


def pdf(*pages: list[str]) -> bytes:
    """Return a PDF whose pages hold these lines; a page without lines has nothing but a drawing."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", ""]
    kids = []
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    for lines in pages:
        drawn = "".join(f"({line}) Tj 0 -14 Td\n" for line in lines)
        stream = f"BT /F1 12 Tf 50 700 Td\n{drawn}ET" if lines else "10 10 100 100 re f"
        objects.append(f"<</Length {len(stream.encode('cp1252'))}>>\nstream\n{stream}\nendstream")
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {len(objects)} 0 R/Resources<</Font<</F1 {font}>>>>>>"
        objects.append(page)
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>"
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252")
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{o:010d} 00000 n \n" for o in offsets)
    return body + f"{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF".encode()


def test_each_page_of_a_pdf_has_its_span_and_an_empty_one_is_counted() -> None:
    text = convert_pdf(pdf(["Erste Seite"], [], ["Dritte Seite"])).text
    assert [text.text[page.char_start : page.char_end] for page in text.pages] == ["Erste Seite", "", "Dritte Seite"]
    assert [page.number for page in text.pages] == [1, 2, 3]
    assert text.meta["pages_without_text"] == [2]


def test_a_pdf_without_any_text_is_a_scan_and_says_so() -> None:
    with pytest.raises(UnsupportedFileError, match="none of the 2 pages holds text"):
        convert_pdf(pdf([], []))


def test_words_cut_at_a_line_end_of_a_pdf_are_whole() -> None:
    text = convert_pdf(pdf(["Der Schadens-", "ersatz nach Miet-", "und Pachtrecht der GmbH-", "Novelle"])).text.text
    assert text == "Der Schadensersatz nach Miet- und Pachtrecht der GmbH-Novelle"


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("Schadens-\nersatz", "Schadensersatz"),
        ("Miet-\nund Pachtrecht", "Miet- und Pachtrecht"),
        ("§ 573-\n575", "§ 573-575"),
        ("GmbH-\nGesetz", "GmbH-Gesetz"),
        ("Seite -\n3", "Seite -\n3"),
    ],
)
def test_a_hyphen_at_a_line_end(cut: str, whole: str) -> None:
    assert join_cut_words(cut) == whole


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Po\u00ad\nlitikwissenschaft", "Politikwissenschaft"),
        ("Wert\u00adpapier\u00adindex", "Wertpapierindex"),
        ("Ku\u0308ndigung", "Kündigung"),
        ("a\x00b", "ab"),
        ("a \r\nb\u2028c", "a\nb\nc"),
    ],
)
def test_stored_text_is_composed_and_without_what_cannot_be_seen(written: str, text: str) -> None:
    assert plain.convert(written.encode()).text.text == text


@pytest.mark.parametrize(
    ("content", "text", "encoding"),
    [
        ("Größe".encode("utf-8-sig"), "Größe", "utf-8"),
        ("ü".encode(), "ü", "utf-8"),
        (b"Pantothens\xe4ure", "Pantothensäure", "cp1252"),
        ("Preis;5 €;Größe".encode("cp1252"), "Preis;5 €;Größe", "cp1252"),
        ("Größe".encode("utf-16"), "Größe", "utf-16-le"),
        ("Größe und Maß".encode("utf-16-be"), "Größe und Maß", "utf-16-be"),
        (b"\x81\xe4", "\x81ä", "cp1252"),
    ],
)
def test_bytes_are_read_by_mark_then_utf_8_then_cp1252(content: bytes, text: str, encoding: str) -> None:
    found = decode(content)
    assert (found.text, found.encoding) == (text, encoding)


@pytest.mark.parametrize(
    ("content", "name", "mime"),
    [
        (b"%PDF-1.7\n", "x.txt", "application/pdf"),
        (b"<!DOCTYPE html><p>x", "x", "text/html"),
        (b'<?xml version="1.0"?><a/>', "x.txt", "application/xml"),
        (b"From: a@b.example\nSubject: x\n\ny", "x", "message/rfc822"),
        (b"Von: a\nBetreff: x\n\ny", "x.txt", "text/plain"),
        (b"Vermerk: Date: heute", "x.txt", "text/plain"),
        (b"# Plan", "x.md", "text/markdown"),
        (b"a;b", "x.csv", "text/csv"),
        (b'{"a": 1}', "x.json", "application/json"),
        (b"{unfertig", "x", "text/plain"),
        (b"Ein Text, der sich PDF nennt", "x.pdf", "text/plain"),
        (b"\x89PNG\r\n\x1a\n", "x.pdf", "image/png"),
        (bytes(range(256)) * 4, "x.txt", "application/octet-stream"),
        (b"MZ ist ein Kennzeichen", "x.txt", "text/plain"),
        (
            b"PK\x03\x04 abgeschnitten",
            "x.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (b"", "x.txt", "application/octet-stream"),
    ],
)
def test_the_kind_of_a_file_is_its_contents_before_its_name(content: bytes, name: str, mime: str) -> None:
    assert kind_of(content, name) == mime


def test_html_is_what_a_reader_sees() -> None:
    page = (
        "<html lang='en'><head><title>T</title><style>p{}</style></head><body><script>alert(1)</script>"
        "<h1>Lease</h1><p>One&nbsp;two <b>three</b>\n four</p><ul><li>a<li>b</ul>"
        "<table><tr><td>Rent</td><td><p>100</p><p>EUR</p></td></tr></table>after<br>break</body></html>"
    )
    text = html.convert(page.encode()).text
    assert text.text == "Lease\nOne\u00a0two three four\n- a\n- b\nRent | 100 EUR\nafter\nbreak"
    assert (text.title, text.meta["heading"], text.meta["language"]) == ("T", "Lease", "en")


def test_a_mail_prefers_plain_text_and_keeps_inline_pictures() -> None:
    message = EmailMessage()
    message["Subject"] = "Betreff"
    message.set_content("Der Text.")
    message.add_alternative("<p>Der <b>HTML</b>-Text.</p>", subtype="html")
    message.get_payload()[1].add_related(b"\x89PNG\r\n\x1a\n", "image", "png", filename="logo.png")
    found = eml.convert(message.as_bytes())
    assert found.text.text == "Subject: Betreff\n\nDer Text."
    assert [member.name for member in found.members] == ["logo.png"]


def test_a_mail_with_html_only_is_read_from_it() -> None:
    message = EmailMessage()
    message["Subject"] = "Betreff"
    message.set_content("<p>Der <b>Text</b>.</p>", subtype="html")
    assert eml.convert(message.as_bytes()).text.text.endswith("Der Text.")


def test_raw_8_bit_headers_are_read(recwarn) -> None:
    raw = "From: a@b.example\nSubject: Kündigung\nDate: Tue, 9 Jul 2019 14:02:11 +0200 (Mitteleuropäische Sommerzeit)\n\nx"
    for encoding in ("utf-8", "cp1252"):
        meta = eml.convert(raw.encode(encoding)).text.meta
        assert meta["subject"] == "Kündigung"
        assert meta["date"].endswith("(Mitteleuropäische Sommerzeit)")


def test_a_signature_is_noted_and_no_attachment() -> None:
    raw = (
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/signed; boundary=b\n\n--b\nContent-Type: text/plain\n\nText\n"
        "--b\nContent-Type: application/pkcs7-signature; name=smime.p7s\n\nabc\n--b--\n"
    )
    found = eml.convert(raw.encode())
    assert (found.text.meta["signed"], found.members) == ("present, not checked", ())


def test_parts_of_a_built_text_have_exact_spans() -> None:
    builder = TextBuilder()
    builder.page(1)
    builder.add("eins")
    builder.page(2)
    builder.page(3)
    builder.add("\u0308drei")
    text = builder.build()
    assert text.text == "eins\n\u0308drei"
    assert [(page.number, page.char_start, page.char_end) for page in text.pages] == [(1, 0, 4), (2, 4, 4), (3, 5, 10)]


def test_a_converted_text_comes_back_as_it_was_stored() -> None:
    text = ConvertedText("Größe", (Page(1, 0, 5), Page(None, 5, 5, "notes")), "T", {"a": [1, {"b": None}]})
    assert ConvertedText.from_json(text.to_json()) == text


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("../../../dangerous/touch.pl", "touch.pl"),
        ("..\\..\\x.txt", "x.txt"),
        ("Begründung \u2013 Anlage K1.pdf", "Begründung - Anlage K1.pdf"),
        ("a\x00b\x1b[31m.txt", "ab[31m.txt"),
        ("..", "file 3"),
        ("x" * 500 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
def test_a_members_name_is_a_name(name: str, clean: str) -> None:
    assert member_name(name, 3) == clean
