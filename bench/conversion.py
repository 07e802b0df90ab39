"""How many pages a second each format's conversion reads, through the very process that the pipeline uses.

The files are made from invented prose, some pages each. A format without pages counts 3,000 characters of text as one.
Recognised pages are A4 at 200 dpi with 45 lines, each of them another, so that nothing that is kept helps.
"""

from __future__ import annotations

import ctypes
import io
import random
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it carries no types
import pptx
import pypdfium2 as pdfium
from PIL import Image
from pptx.util import Inches
from pypdfium2 import raw

from bench import corpus
from shared.ingest.convert.formats import format_of
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess, conversion_process
from shared.providers.storage import FileStore
from shared.settings import Ingest

PAGE_CHARS = 3000
_LINES, _LINE_CHARS = 45, 80
_WIDTH, _HEIGHT = 595, 842
_LEFT, _TOP, _LEADING, _SIZE = 60, 780, 16, 11
_DPI = 200
_TEXT_PAGES, _SCANNED_PAGES = 40, 4
_WORD_PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/'
        'document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"'
        "/></Types>"
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        'Target="word/document.xml"/></Relationships>'
    ),
}


_Kind = tuple[str, Callable[[random.Random], bytes], bool]


@dataclass(frozen=True, slots=True)
class Speed:
    """What one format's conversion took."""

    what: str
    files: int
    pages: float
    seconds: float

    @property
    def pages_per_s(self) -> float:
        """Pages a second."""
        return self.pages / self.seconds


def bench_conversion(limits: Ingest, *, rounds: int, progress: Callable[[str], None]) -> list[Speed]:
    """Convert a file of each format `rounds` times, a new one each time, after one that warms the process up."""
    chance = random.Random(11)
    with (
        tempfile.TemporaryDirectory(prefix="ki-bench-") as folder,
        conversion_process(limits, FileStore(Path(folder))) as process,
    ):
        speeds = []
        for kind in _FORMATS:
            progress(f"converting {kind[0]}")
            speeds.append(_speed(process, limits, kind, rounds, chance))
    return speeds


def _speed(process: ConversionProcess, limits: Ingest, kind: _Kind, rounds: int, chance: random.Random) -> Speed:
    what, make, is_paged = kind
    pages = seconds = 0.0
    for turn in range(rounds + 1):
        content = make(chance)
        chosen = format_of(kind_of(content, "bench"))
        began = time.perf_counter()
        found = process.convert(chosen.name, content, timeout_s=limits.convert_timeout_s).text
        took = time.perf_counter() - began
        # The first one starts the process and imports the parser.
        if turn:
            seconds += took
            pages += len(found.pages) if is_paged else len(found.text) / PAGE_CHARS
    return Speed(what, rounds, pages, seconds)


def _lines(chance: random.Random, pages: int) -> list[list[str]]:
    words, weights = corpus.vocabulary()
    made = []
    for _ in range(pages):
        page = []
        for _ in range(_LINES):
            line = " ".join(chance.choices(words, weights, k=12))
            page.append(line[:_LINE_CHARS].strip())
        made.append(page)
    return made


def _paragraphs(chance: random.Random) -> list[str]:
    return [" ".join(page[at : at + 9]) for page in _lines(chance, _TEXT_PAGES) for at in range(0, _LINES, 9)]


def _pdf(pages: Sequence[Sequence[str]]) -> Any:
    document = pdfium.PdfDocument.new()
    font = raw.FPDFText_LoadStandardFont(document.raw, b"Helvetica")
    for lines in pages:
        page = document.new_page(_WIDTH, _HEIGHT)
        for row, line in enumerate(lines):
            item = raw.FPDFPageObj_CreateTextObj(document.raw, font, _SIZE)
            coded = ctypes.create_string_buffer(line.encode("utf-16-le") + b"\x00\x00")
            raw.FPDFText_SetText(item, ctypes.cast(coded, ctypes.POINTER(raw.FPDF_WCHAR)))
            raw.FPDFPageObj_Transform(item, 1, 0, 0, 1, _LEFT, _TOP - row * _LEADING)
            raw.FPDFPage_InsertObject(page.raw, item)
        page.gen_content()
    return document


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    document.close()
    return out.getvalue()


def _text_pdf(chance: random.Random) -> bytes:
    return _saved(_pdf(_lines(chance, _TEXT_PAGES)))


def _pictures(chance: random.Random) -> list[Image.Image]:
    document = _pdf(_lines(chance, _SCANNED_PAGES))
    pictures = [page.render(scale=_DPI / 72, grayscale=True).to_pil().copy() for page in document]
    document.close()
    return pictures


def _scanned_pdf(chance: random.Random) -> bytes:
    document = pdfium.PdfDocument.new()
    for picture in _pictures(chance):
        page = document.new_page(_WIDTH, _HEIGHT)
        jpeg = io.BytesIO()
        picture.save(jpeg, "JPEG", quality=85)
        item = pdfium.PdfImage.new(document)
        item.load_jpeg(jpeg, inline=True)
        item.set_matrix(pdfium.PdfMatrix().scale(_WIDTH, _HEIGHT))
        page.insert_obj(item)
        page.gen_content()
    return _saved(document)


def _tiff(chance: random.Random) -> bytes:
    first, *others = (picture.convert("1") for picture in _pictures(chance))
    out = io.BytesIO()
    first.save(out, "TIFF", save_all=True, append_images=others, compression="group4")
    return out.getvalue()


def _docx(chance: random.Random) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in _paragraphs(chance))
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in _WORD_PARTS.items():
            archive.writestr(name, part)
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    return out.getvalue()


def _xlsx(chance: random.Random) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    for text in _paragraphs(chance):
        sheet.append(text.split(" ")[:40])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _pptx(chance: random.Random) -> bytes:
    show = pptx.Presentation()
    for text in _paragraphs(chance)[:40]:
        slide = show.slides.add_slide(show.slide_layouts[6])
        slide.shapes.add_textbox(Inches(1), Inches(1), Inches(8), Inches(5)).text_frame.text = text
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def _html(chance: random.Random) -> bytes:
    body = "".join(f"<p>{escape(text)}</p>" for text in _paragraphs(chance))
    return f"<!doctype html><html><head><title>Bench</title></head><body>{body}</body></html>".encode()


def _mail(chance: random.Random) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@kanzlei.example", "b@kanzlei.example", "Bench"
    message.set_content("\n\n".join(_paragraphs(chance)))
    return message.as_bytes()


def _rtf(chance: random.Random) -> bytes:
    body = "".join(f"{text}\\par\n" for text in _paragraphs(chance))
    return (r"{\rtf1\ansi\ansicpg1252 " + body + "}").encode("cp1252", "replace")


def _text(chance: random.Random) -> bytes:
    return "\n\n".join(_paragraphs(chance)).encode()


_FORMATS: tuple[_Kind, ...] = (
    ("PDF with text", _text_pdf, True),
    ("PDF, scanned", _scanned_pdf, True),
    ("TIFF", _tiff, True),
    ("DOCX", _docx, False),
    ("XLSX", _xlsx, False),
    ("PPTX", _pptx, True),
    ("HTML", _html, False),
    ("mail", _mail, False),
    ("RTF", _rtf, False),
    ("plain text", _text, False),
)
