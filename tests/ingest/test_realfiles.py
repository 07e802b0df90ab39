"""Real files from public trackers: each supported one has its text, each other one its reason (realfiles/index.tsv)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.errors import EncryptedFileError, PermanentError, UnreadableFileError
from shared.ingest.convert.formats import Conversion, format_of
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.metadata.read import read_facts
from shared.types import Language

FILES = Path(os.environ.get("KI_TEST_SHARED") or Path(__file__).parents[3] / "shared") / "realfiles"

# What must stand in the text, each exactly once.
HOLDS = {
    "F01": [
        "A Nepalese name for Tilaka",
        "A nickname for Petrika",
        "March 2009: Apache Tika Release",
    ],
    "F03": [
        "This text is inside of a text box in the body of the document.",
        "This text is directly in the body",
        "This text is inside of a text box in the header of the document.",
        "This text is inside of a text box in the footer of the document.",
    ],
    "F05": ["Statement", "Seasoned professional", "Experience", "BigCompany", "Cell0 | Rich_text_in_cell | Cell2"],
    "F06": ["COVER TITLE INSIDE SDT\nBODY TEXT OUTSIDE SDT"],
    "F08": ["FIRST PAGE HEADER", "REGULAR HEADER", "FIRST PAGE FOOTER", "REGULAR FOOTER"],
    "F09": [
        "This is a simple header, with a € euro symbol in it.",
        "The footer, with Molière, has Unicode in it.",
    ],
    "F10": ["Pole 1 | Pole 2\nslove", "snoska"],
    "F12": ["This is the first paragraph that has a comment attached to it."],
    "F13": ["Some text"],
    "F15": ["The quick brown fox."],
    "F16": ["Simple paragraph with a emphasized word.", "Col 1 | Col 2", "ROW 2 | ROW 2"],
    "F18": ["This is a link to my website."],
    "F19": ["This XML has a byte order mark."],
    "F20": ["optionalhyphen"],
    "F21": ["optionalhyphen"],
    "F26": ['Here should not be the POI web site: "&testent;"'],
    "F29": ["pdf encryption test"],
    "F38": ["Visible heading line", "Invisible OCR text layer"],
    "F50": ["aTextField: TIKA-1226", "aCheckBox: Yes", "aComboBox: comboExportB", "aListBox: exportListItemC"],
    "F52": ["Multiple files are bound together in this PDF Package."],
    "F53": ["Mietrechnung (387) Nr. 9314110911/00/M/00/N vom 01.10.2018"],
    "F54": ["Left column line 1\nLeft column line 2\nRight column line 1\nRight column line 2"],
    "F58": ["Subject: testing", "This is the first part."],
    "F60": ["Subject: Säying Hello", "body"],
    "F61": ["This is a test-email with an invalid date format."],
    "F62": ["This is a test of inline"],
    "F65": ["text"],
    "F66": ["Subject: Subject öäü Subject", "Body öäü Body"],
    "F68": ["Subject: test email", "Test email with 1 msg attachment, 1 pdf"],
    "F70": ["These are five files.", "Five files from Hell!"],
    "F71": ["dangerous/dont/touch.pl"],
    "F74": ["unencrypted.txt", "\nencrypted.txt"],
    "F75": ["droste.jpg", "droste.zip"],
    "F77": ["审计压缩包文件检索测试/集团邮件审计系统2021年自动巡检需求文档_V4.0.doc"],
    "F79": ["Übersicht"],
    "F80": ["This is a sample text"],
    "F82": ["Jahresabschluss zum Geschäftsjahr vom 01.01.2020 bis zum 31.12.2020"],
    "F87": [
        "Aktenzeichen Empfänger: 12345BG1234567 987654321#",
        "Aktenzeichen: 12345BG1234567 987654321\n",
        "Gericht: 9D0000",
        "Datei: Testdokumentname 01\nDatei: Testdokument 02",
    ],
    "F89": ["file_number: VI\u00a0ZR\u00a0194/17", "Die Beklagte trägt die Kosten des Rechtsstreits."],
}
LACKS = {"F01": "A pendant worn in place of the red spot", "F80": "\x00", "F15": "Sub ", "F03": "Fallback"}
MEMBERS = {
    "F52": ["PDF1.pdf", "PDF2.pdf"],
    "F53": ["factur-x.xml"],
    "F58": ["ForwardedMessage.eml"],
    "F62": ["t.txt"],
    "F68": ["Test Attachment.msg", "smbprn.00009008.KdcPjl.pdf"],
    "F70": ["quick.doc", "quick.html", "quick.pdf", "quick.txt", "quick.xml"],
    "F71": ["touch.pl"],
    "F74": ["unencrypted.txt", "encrypted.txt"],
    "F75": ["droste.jpg", "droste.zip"],
    "F77": ["集团邮件审计系统2021年自动巡检需求文档_V4.0.doc"],
}
TITLES = {"F60": "Säying Hello", "F66": "Subject öäü Subject", "F80": "Title", "F12": "Document with Comments"}
# Of the rest: the error, and the words that its reason must hold.
REASONS: dict[str, tuple[type[PermanentError], str]] = {
    "F23": (EncryptedFileError, "password"),
    "F25": (UnreadableFileError, "no whole ZIP package"),
}


def path_of(number: str) -> Path:
    [path] = FILES.glob(f"{number}_*")
    return path


@pytest.fixture(scope="session")
def converted(converter: ConversionProcess):
    kept: dict[str, Conversion] = {}

    def convert(number: str) -> Conversion:
        if number not in kept:
            path = path_of(number)
            content = path.read_bytes()
            kept[number] = converter.convert(format_of(kind_of(content, path.name)).name, content, timeout_s=60)
        return kept[number]

    return convert


def facts_of(converted, number: str):
    path = path_of(number)
    mime = kind_of(path.read_bytes(), path.name)
    return read_facts(converted(number).text, name=path.name, mime=mime, max_identifier_chars=256)


def test_every_real_file_has_its_expectation() -> None:
    assert {path.name.partition("_")[0] for path in FILES.glob("F*")} == HOLDS.keys() | REASONS.keys()


@pytest.mark.parametrize("number", sorted(HOLDS))
def test_a_supported_file_has_its_text(converted, number: str) -> None:
    text = converted(number).text.text
    assert {words: text.count(words) for words in HOLDS[number]} == dict.fromkeys(HOLDS[number], 1)
    if number in LACKS:
        assert LACKS[number] not in text


@pytest.mark.parametrize("number", sorted(HOLDS))
def test_the_parts_of_a_file_lie_in_its_text_one_after_the_other(converted, number: str) -> None:
    text = converted(number).text
    ends = [0, *(page.char_end for page in text.pages)]
    assert all(end <= page.char_start <= page.char_end for end, page in zip(ends, text.pages, strict=False))
    assert ends[-1] <= len(text.text)


@pytest.mark.parametrize("number", sorted(HOLDS))
def test_the_files_in_a_file_are_its_members(converted, number: str) -> None:
    assert [member.name for member in converted(number).members] == MEMBERS.get(number, [])


@pytest.mark.parametrize("number", sorted(REASONS))
def test_a_file_that_cannot_be_read_says_why(converted, number: str) -> None:
    error, words = REASONS[number]
    with pytest.raises(error, match=words):
        converted(number)


@pytest.mark.parametrize("number", sorted(TITLES))
def test_a_title_comes_from_the_file(converted, number: str) -> None:
    assert facts_of(converted, number).title == TITLES[number]


def test_deleted_text_is_kept_apart_with_its_author_and_day(converted) -> None:
    deletions = converted("F01").text.meta["deletions"]
    assert any("A pendant worn in place of the red spot" in deletion["text"] for deletion in deletions)
    assert all(deletion["author"] and deletion["date"] for deletion in deletions)


def test_comments_are_kept_apart_and_one_may_have_no_author(converted) -> None:
    text = converted("F12").text
    assert len(text.text) == 233
    assert [comment["author"] for comment in text.meta["comments"]].count(None) == 1
    assert len(text.meta["comments"]) == 3


def test_macros_are_flagged_and_never_text(converted) -> None:
    assert converted("F15").text.meta["has_macros"] is True


def test_a_pdf_that_only_restricts_is_read_and_flagged(converted) -> None:
    assert converted("F29").text.meta["encryption_revision"] == 6


def test_an_invisible_text_layer_is_text_and_flagged(converted) -> None:
    meta = converted("F38").text.meta
    assert meta["invisible_text_pages"] == [1]
    assert (meta["coverage"], meta["ocr_pages"]) == ("0 of 1 pages without text", [])


@pytest.mark.parametrize("number", ["F21", "F29", "F38", "F50", "F52", "F53", "F54"])
def test_the_text_of_every_real_pdf_is_legible(converted, number: str) -> None:
    meta = converted(number).text.meta
    assert (meta["unreadable_pages"], meta["partly_readable_pages"], meta["damaged_pages"]) == ([], [], [])


def test_an_empty_field_for_a_signature_is_no_signature(converted) -> None:
    assert "signatures" not in converted("F50").text.meta


def test_a_mail_without_a_date_that_can_be_read_has_none_and_keeps_what_was_written(converted) -> None:
    when = facts_of(converted, "F61").doc_date
    assert (when.day, when.precision, when.raw) == (None, None, "INVALID-DATE-FORMAT")


def test_a_message_in_a_message_is_a_message_with_its_own_text(converted, converter: ConversionProcess) -> None:
    member = converted("F68").members[0]
    assert kind_of(member.content, member.name) == "application/vnd.ms-outlook"
    inner = converter.convert("msg", member.content, timeout_s=60)
    assert (inner.text.meta["subject"], inner.text.text[-14:]) == ("Test Attachment", "Blah blah blah")


def test_a_signature_is_noted_and_not_judged(converted) -> None:
    assert converted("F65").text.meta["signed"] == "present, not checked"


def test_an_invoice_has_its_number_whole_and_its_date(converted) -> None:
    facts = facts_of(converted, "F53")
    assert "9314110911/00/M/00/N" in [identifier["canonical"] for identifier in facts.identifiers]
    assert facts.doc_date.day is not None
    assert facts.doc_date.day.isoformat() == "2018-10-01"
    assert facts.doc_type == "finance.invoice"


def test_a_judgments_file_number_has_plain_spaces_in_its_canonical_form(converted) -> None:
    facts = facts_of(converted, "F89")
    assert {"kind": "file_number", "raw": "VI\u00a0ZR\u00a0194/17", "canonical": "VI ZR 194/17"} in facts.identifiers
    assert facts.doc_date.day is not None
    assert facts.doc_date.day.isoformat() == "2018-04-09"
    assert (facts.language, facts.doc_type) == (Language.GERMAN, "court.order")


def test_the_file_numbers_of_a_court_message_are_one_and_each_is_kept_as_it_was_written(converted) -> None:
    meta = converted("F87").text.meta
    assert {one["canonical"] for one in meta["identifiers"]} == {"12345BG1234567 987654321"}
    assert [one["raw"] for one in meta["identifiers"]] == ["12345BG1234567 987654321#", "12345BG1234567 987654321"]
    assert {"kind": "file_number", "raw": "12345BG1234567 987654321#", "canonical": "12345BG1234567 987654321"} in (
        facts := facts_of(converted, "F87").identifiers
    )
    assert "12345BG1234567" not in [one["canonical"] for one in facts]
    assert meta["courts"] == ["9D0000"]
    assert meta["files"] == ["Testdokumentname 01", "Testdokument 02"]


def test_a_declared_language_counts_where_the_text_is_short(converted) -> None:
    assert facts_of(converted, "F82").language is Language.GERMAN
