"""The firm's files: always the same, and readable by the ordinary readers of each format."""

import io
import zipfile
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pypdfium2
import pytest
from lxml import etree

from local.samples.build import build, render
from local.samples.manifest import ENTRIES, HAFENKONTOR, HELIX, NORDLICHT, WESTERKAMP
from local.samples.prose import parse

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FILES = render()
BROKEN = f"ablage/{WESTERKAMP}/Verträge/Anteilskaufvertrag_Entwurf_v2_defekt.docx"
MARKUP = f"ablage/{NORDLICHT}/Verträge/SPA_Entwurf_v3_Markup.docx"


def named(suffix: str) -> list[str]:
    return [name for name in FILES if name.endswith(suffix) and name != BROKEN]


def part(name: str, member: str) -> etree._Element:
    with zipfile.ZipFile(io.BytesIO(FILES[name])) as archive:
        assert archive.testzip() is None
        return etree.fromstring(archive.read(member))


def words(name: str, member: str = "word/document.xml") -> str:
    return "".join(node.text or "" for node in part(name, member).iter(f"{W}t"))


def pdf_pages(content: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(content)
    try:
        texts = []
        for page in document:
            textpage = page.get_textpage()
            texts.append(textpage.get_text_range())
            textpage.close()
            page.close()
        return texts
    finally:
        document.close()


def mail(name: str) -> EmailMessage:
    message = message_from_bytes(FILES[name], policy=default)
    assert isinstance(message, EmailMessage)
    for inner in message.walk():
        assert not inner.defects
    return message


def test_two_builds_write_the_same_bytes(tmp_path: Path) -> None:
    first, second = build(tmp_path / "one"), build(tmp_path / "two")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [path.relative_to(tmp_path / "one") for path in first] == [
        path.relative_to(tmp_path / "two") for path in second
    ]


def test_a_second_build_touches_no_file_that_is_right_and_repairs_one_that_is_not(tmp_path: Path) -> None:
    paths = build(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in paths}
    paths[0].write_bytes(b"changed")
    build(tmp_path)
    assert paths[0].read_bytes() == FILES[ENTRIES[0].path]
    assert {path: path.stat().st_mtime_ns for path in paths[1:]} == {path: before[path] for path in paths[1:]}


def test_there_are_about_forty_files_of_every_kind() -> None:
    assert len(FILES) == len(ENTRIES)
    assert 40 <= len(FILES) <= 50
    kinds = {name.rpartition(".")[2] for name in FILES}
    assert kinds == {"docx", "pdf", "md", "html", "txt", "eml", "dwg"}


@pytest.mark.parametrize("name", named(".docx"))
def test_each_docx_opens_and_its_parts_are_well_formed(name: str) -> None:
    with zipfile.ZipFile(io.BytesIO(FILES[name])) as archive:
        members = archive.namelist()
    assert members[0] == "[Content_Types].xml"
    for member in members:
        part(name, member)
    assert len(words(name)) > 400


def test_the_broken_docx_does_not_open() -> None:
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(FILES[BROKEN]))


def test_the_markup_keeps_the_old_price_as_a_deletion_with_author_and_date() -> None:
    document = part(MARKUP, "word/document.xml")
    deleted = ["".join(node.text or "" for node in item.iter(f"{W}delText")) for item in document.iter(f"{W}del")]
    inserted = ["".join(node.text or "" for node in item.iter(f"{W}t")) for item in document.iter(f"{W}ins")]
    assert "46.000.000" in deleted
    assert "47.250.000" in inserted
    assert "46.000.000" not in words(MARKUP)
    change = next(document.iter(f"{W}ins"))
    assert change.get(f"{W}author") == "Dr. Emil Sommer"
    assert change.get(f"{W}date") == "2024-03-11T16:42:00Z"
    identifiers = [item.get(f"{W}id") for item in document.iter(f"{W}ins", f"{W}del")]
    assert len(set(identifiers)) == len(identifiers)


def test_the_report_carries_its_reference_in_the_header_and_a_footnote() -> None:
    report = f"ablage/{NORDLICHT}/Vermerke/Due_Diligence_Bericht_Legal.docx"
    assert "Unser Zeichen: 2023-0412" in words(report, "word/header1.xml")
    assert "UR-Nr. 233/2011" in words(report, "word/footnotes.xml")
    assert "UR-Nr. 233/2011" not in words(report)
    assert len(list(part(report, "word/document.xml").iter(f"{W}tbl"))) == 1


def test_each_draft_of_the_contract_states_its_own_price() -> None:
    prices = {"v1": "48.500.000", "v2": "46.000.000", "final": "47.250.000"}
    for variant, price in prices.items():
        (entry,) = (item for item in ENTRIES if item.text == "nordlicht/spa" and item.variant == variant)
        text = words(entry.path)
        assert [other for other in prices.values() if f"beträgt EUR {other}" in text] == [price]


@pytest.mark.parametrize("name", named(".pdf"))
def test_the_text_of_each_pdf_comes_out_with_umlauts_page_by_page(name: str) -> None:
    pages = pdf_pages(FILES[name])
    english = HELIX in name
    for number, page in enumerate(pages, start=1):
        assert (f"Page {number} of {len(pages)}" if english else f"Seite {number} von {len(pages)}") in page
    if not english:
        assert any(letter in "".join(pages) for letter in "äöüÄÖÜß")
        assert "�" not in "".join(pages)


def test_a_pdf_keeps_paragraph_signs_and_has_several_pages() -> None:
    pages = pdf_pages(FILES[f"ablage/{NORDLICHT}/Verträge/SPA_unterzeichnet_2024-03-28.pdf"])
    assert len(pages) >= 3
    assert "§ 15 Abs. 3 GmbHG" in "".join(pages)
    assert "gez. Dr. Quandt, Notar" in pages[-1]


def test_a_mail_carries_the_very_files_of_the_matter() -> None:
    message = mail(f"post/{NORDLICHT}/2024-02-12_AW_Kaufpreisanpassung.eml")
    contract, letter = message.iter_attachments()
    assert contract.get_content() == FILES[f"ablage/{NORDLICHT}/Verträge/SPA_Entwurf_v2.docx"]
    assert letter.get_content() == FILES[f"ablage/{NORDLICHT}/Korrespondenz/LOI_Nordlicht_2023-11-06.pdf"]
    assert letter.get_filename() == "Absichtserklärung.pdf"
    assert message["subject"] == "AW: Brandt Turbinenbau - Kaufpreisanpassung und geänderter § 4"
    assert message["from"].addresses[0].display_name == "Anna Reuter"
    body = message.get_body(("plain",))
    assert body is not None
    assert "Earn-out sowie die Absichtserklärung" in body.get_content()


def test_a_reply_names_the_mail_that_it_answers() -> None:
    question = mail(f"post/{NORDLICHT}/2024-02-12_AW_Kaufpreisanpassung.eml")
    answer = mail(f"post/{NORDLICHT}/2024-02-13_AW_AW_Kaufpreisanpassung.eml")
    assert answer["in-reply-to"] == question["message-id"]
    assert answer["references"].split() == [*question["references"].split(), question["message-id"]]
    body = answer.get_body()
    assert body is not None
    assert body.get_content_charset() == "iso-8859-1"
    assert "der Vorstand ist einverstanden" in body.get_content()


def test_attachment_names_are_readable_in_both_ways_of_writing_them() -> None:
    offer = f"post/{WESTERKAMP}/2024-02-15_Gegenangebot.eml"
    names = [item.get_filename() for item in mail(offer).walk() if item.get_filename()]
    assert names == ["Entwurf Kaufvertrag für Verwaltungsrat.docx", "Indikatives Angebot.pdf"]
    assert b'filename="=?utf-8?B?' in FILES[offer]
    assert b"Content-Disposition: inline" in FILES[offer]
    assert b"filename*=utf-8''" in FILES[f"post/{NORDLICHT}/2024-02-12_AW_Kaufpreisanpassung.eml"]


def test_a_forwarded_mail_lies_inside_the_mail_that_forwards_it() -> None:
    (attached,) = mail(f"post/{HAFENKONTOR}/2022-03-07_WG_Terminsladung.eml").iter_attachments()
    inner = attached.get_content()
    assert inner["subject"].startswith("Terminsladung 12 O 345/21 und Übersendung")
    assert [item.get_filename() for item in inner.iter_attachments()] == [
        "Klageschrift Hafenkontor-Brückner.docx",
        "Anlage K1.pdf",
    ]


def test_the_telephone_note_is_cp1252_and_no_utf_8() -> None:
    content = FILES[f"ablage/{HAFENKONTOR}/Vermerke/Telefonnotiz_2023-01-11.txt"]
    with pytest.raises(UnicodeDecodeError):
        content.decode()
    assert "„diskutabel“" in content.decode("cp1252")
    assert "185.000 €" in content.decode("cp1252")


def test_a_source_without_a_value_for_its_placeholder_is_refused() -> None:
    with pytest.raises(KeyError, match="preis"):
        parse("title: t\n---\nEUR {{preis}}", values={})
