"""Pictures: scans, faxes of several pages, photographs, decoration, and bombs."""

from __future__ import annotations

import io
import struct
import zlib
from email.message import EmailMessage
from pathlib import Path

import pytest
import sqlalchemy as sa
from PIL import Image

from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.errors import LimitExceededError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.formats import format_of
from shared.ingest.convert.image import convert
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.ocr import PageReader
from shared.ingest.convert.process import ConversionProcess, conversion_process
from shared.ingest.report import Outcome
from tests.ingest.conftest import World
from tests.ingest.pdfs import scanned
from tests.ingest.test_pdf import page_texts, reader, saying, unasked

__all__ = ["reader"]


def written(picture: Image.Image, kind: str, **how: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **how)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"])
def test_a_picture_of_a_letter_is_its_text(reader: PageReader, kind: str) -> None:
    content = written(scanned(("Die Kündigung ist wirksam.",)), kind)
    assert format_of(kind_of(content, "Scan 0001")).name == "image"
    text = convert(content, reader).text
    assert page_texts(text) == ["Die Kündigung ist wirksam."]
    assert (text.meta["ocr_pages"], text.meta["picture"]["format"]) == ([1], kind)
    assert text.meta["ocr_confidence"]["1"] > 80


def test_each_page_of_a_fax_is_a_page(reader: PageReader) -> None:
    pages = [scanned((line,)).convert("1") for line in ("Erste Seite", "Zweite Seite")]
    blank = Image.new("1", pages[0].size, 1)
    content = written(pages[0], "TIFF", save_all=True, append_images=[blank, pages[1]], compression="group4")
    text = convert(content, reader).text
    assert page_texts(text) == ["Erste Seite", "", "Zweite Seite"]
    assert (text.meta["page_count"], text.meta["ocr_pages"], text.meta["blank_pages"]) == (3, [1, 3], [2])


def test_a_photograph_is_turned_as_its_camera_says(reader: PageReader) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    content = written(scanned(("Der Mietvertrag ist beendet.",)).rotate(90, expand=True), "JPEG", exif=exif)
    assert convert(content, reader).text.text == "Der Mietvertrag ist beendet."


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_scan_that_lies_on_its_side_or_on_its_head_is_read(reader: PageReader, angle: int) -> None:
    content = written(scanned(("Der Mietvertrag ist beendet.",)).rotate(angle, expand=True), "PNG")
    text = convert(content, reader).text
    assert text.text == "Der Mietvertrag ist beendet."
    assert text.meta["turned_pages"] == ([] if angle == 270 else [1])
    assert text.meta["low_confidence_pages"] == []


def test_letters_on_a_screen_are_read_too(reader: PageReader) -> None:
    small = scanned(("Rechnung Nr. 4711 vom 12.03.2024",), dpi=90)
    assert convert(written(small, "PNG"), reader).text.text == "Rechnung Nr. 4711 vom 12.03.2024"


def test_what_shows_through_is_paper(reader: PageReader) -> None:
    ink = scanned(("Unterschrift",))
    clear = Image.new("RGBA", ink.size, (0, 0, 0, 0))
    clear.putalpha(Image.eval(ink, lambda shade: 255 - shade))
    assert convert(written(clear, "PNG"), reader).text.text == "Unterschrift"


def test_of_an_animation_the_first_picture_counts(reader: PageReader) -> None:
    frames = [scanned((line,)) for line in ("Das erste Bild", "Das zweite Bild")]
    content = written(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert convert(content, reader).text.text == "Das erste Bild"


def test_a_picture_without_text_is_no_error() -> None:
    text = convert(written(Image.new("RGB", (60, 40), "navy"), "PNG"), unasked()).text
    assert (text.text, text.meta["no_text"], text.meta["blank_pages"]) == ("", True, [1])


def test_without_an_engine_a_picture_says_so() -> None:
    with pytest.raises(UnsupportedFileError, match="no text recognition is installed"):
        convert(written(Image.new("L", (60, 40)), "PNG"))


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size, and packs it into a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = zlib.compress(b"\x00" * ((width // 8 + 1) * min(height, 2000)), 9)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def test_a_picture_that_claims_too_many_pixels_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(LimitExceededError, match="200000 x 200000 pixels"):
        convert(png_of(200_000, 200_000), unasked())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"])
def test_a_picture_cut_off_anywhere_is_read_or_refused(kind: str) -> None:
    content = written(scanned(("Die Kündigung ist wirksam.",)), kind)
    refused: list[str] = []
    for part in range(20):
        try:
            convert(content[: len(content) * part // 20], saying("gelesen"))
        except (UnreadableFileError, SyntaxError) as error:
            refused.append(str(error))
    assert refused
    # No address of this process's memory: the reason would be another one with every try.
    assert "0x" not in "".join(refused)


def test_a_damaged_page_of_a_fax_is_counted_and_the_others_are_read() -> None:
    pages = [scanned((line,)) for line in ("Erste Seite", "Zweite Seite")]
    content = bytearray(
        written(pages[0], "TIFF", save_all=True, append_images=pages[1:], compression="tiff_adobe_deflate")
    )
    at = struct.unpack("<I", content[4:8])[0]
    start = next(
        struct.unpack("<I", content[at + 2 + 12 * entry + 8 :][:4])[0]
        for entry in range(struct.unpack("<H", content[at : at + 2])[0])
        if struct.unpack("<H", content[at + 2 + 12 * entry :][:2])[0] == 273
    )
    content[start : start + 40] = b"\xff" * 40
    text = convert(bytes(content), saying("gelesen")).text
    assert (text.meta["damaged_pages"], text.meta["ocr_pages"]) == ([1], [2])


def test_a_photograph_in_heic_stays_out_with_its_reason() -> None:
    content = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
    with pytest.raises(UnsupportedFileError, match="image/heic"):
        format_of(kind_of(content, "IMG_0001.HEIC"))


@pytest.fixture
def recognising(world: World):
    with conversion_process(world.settings.ingest, world.store) as process:
        yield process


def test_a_logo_in_a_mail_is_a_document_without_text(world: World, recognising: ConversionProcess) -> None:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@kanzlei.example", "Angebot"
    mail.set_content("Guten Tag")
    mail.add_attachment(written(Image.new("RGB", (60, 40), "navy"), "PNG"), "image", "png", filename="logo.png")
    mail.add_attachment(written(scanned(("Der Vertrag",)), "PNG"), "image", "png", filename="Scan.png")
    report = world.ingest({"a/Angebot.eml": mail.as_bytes()}, converter=recognising)
    assert {Path(file.path).name: file.outcome for file in report.files} == dict.fromkeys(
        ["Angebot.eml", "logo.png", "Scan.png"], Outcome.NEW
    )
    assert report.complete
    assert len(world.rows(sa.select(document_versions))) == 3
    texts = [row.text for row in world.rows(sa.select(chunks).where(chunks.c.kind == "chunk"))]
    assert "Der Vertrag" in texts
    assert all(text.strip() for text in texts)
