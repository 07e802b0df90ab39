"""Workbooks, presentations and open documents: what a reader sees, in order, with what is hidden or removed apart."""

from __future__ import annotations

import datetime as dt
import io
import random
import re
import time
import zipfile
from collections.abc import Mapping

import openpyxl
import pytest
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.util import Inches

from shared.errors import LimitExceededError, PermanentError, UnreadableFileError
from shared.ingest.convert import pptx, xlsx, xlsx_grid
from shared.ingest.convert.formats import FORMATS
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess


def workbook(fill) -> bytes:
    book, made = openpyxl.Workbook(), io.BytesIO()
    fill(book)
    book.save(made)
    return made.getvalue()


def changed(package: bytes, parts: Mapping[str, bytes]) -> bytes:
    """Return a package in which these parts are others."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in [*old.namelist(), *(name for name in parts if name not in old.namelist())]:
            new.writestr(name, parts[name] if name in parts else old.read(name))
    return made.getvalue()


def part(package: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return archive.read(name)


def prices(book: openpyxl.Workbook) -> None:
    sheet = book.active
    sheet.title = "Preise"
    sheet["A1"], sheet["B1"] = "Kaufpreis", 75000.5
    sheet["C1"], sheet["D1"] = dt.date(2024, 2, 29), dt.datetime.fromisoformat("2024-02-29T13:30")
    sheet["A3"], sheet["C3"], sheet["D3"] = "Größe\nMaß", 0.05, 0.1 + 0.2
    sheet["C3"].number_format = "0.00%"
    sheet["E3"], sheet["F3"] = True, dt.time(9, 15)
    sheet["A1"].comment = Comment("Bitte prüfen.", "Anna")
    hidden = book.create_sheet("Reserve")
    hidden.sheet_state = "veryHidden"
    hidden["B2"] = "versteckt"
    book.create_sheet("leer")


def test_a_workbook_is_its_cells_sheet_by_sheet() -> None:
    content = workbook(prices)
    found = xlsx.convert(content).text
    assert found.text == (
        "Kaufpreis | 75000.5 | 2024-02-29 | 2024-02-29T13:30:00\nGröße Maß | 5 % | 0.3 | TRUE | 09:15:00\nversteckt"
    )
    assert [(page.number, page.locus) for page in found.pages] == [
        (1, "sheet Preise"),
        (2, "sheet Reserve"),
        (3, "sheet leer"),
    ]
    assert [sheet["hidden"] for sheet in found.meta["sheets"]] == [False, True, False]
    assert found.meta["comments"] == [
        {"sheet": "Preise", "cell": "A1", "author": "Anna", "date": None, "text": "Bitte prüfen."}
    ]
    assert kind_of(content, "x.bin") in FORMATS


def test_each_cell_is_found_again_by_its_address() -> None:
    found = xlsx.convert(workbook(prices)).text
    begins = {
        f"{sheet['name']}!{address}": start for sheet in found.meta["sheets"] for address, start in sheet["cells"]
    }
    wanted = {
        "Preise!A1": "Kaufpreis", "Preise!D1": "2024-02-29T13", "Preise!A3": "Größe", "Preise!F3": "09:15",
        "Reserve!B2": "versteckt",
    }  # fmt: skip
    assert {address: found.text[begins[address] :][: len(text)] for address, text in wanted.items()} == wanted


def test_a_formula_counts_by_the_value_it_had_and_one_without_is_counted() -> None:
    content = workbook(lambda book: book.active.append(["=1+1", "=2+2", "Summe"]))
    sheet = part(content, "xl/worksheets/sheet1.xml").decode()
    with_value = re.sub(r"<f>2\+2</f><v ?/?>(?:</v>)?", "<f>2+2</f><v>4</v>", sheet)
    assert with_value != sheet
    found = xlsx.convert(changed(content, {"xl/worksheets/sheet1.xml": with_value.encode()})).text
    assert found.text == "4 | Summe"
    assert found.meta["formulas_without_value"] == 1


def test_numbers_that_are_names_keep_every_digit() -> None:
    content = workbook(lambda book: book.active.append(["x"]))
    sheet = part(content, "xl/worksheets/sheet1.xml").decode()
    row = '<row r="1"><c r="A1"><v>123456789012345678</v></c><c r="B1"><v>1E+3</v></c><c r="C1" t="e"><v>#REF!</v></c></row>'
    sheet = re.sub(r"<row.*</row>", row, sheet, flags=re.DOTALL)
    found = xlsx.convert(changed(content, {"xl/worksheets/sheet1.xml": sheet.encode()})).text
    assert found.text == "123456789012345678 | 1000 | #REF!"


def test_days_count_from_1904_where_the_workbook_says_so() -> None:
    def fill(book: openpyxl.Workbook) -> None:
        book.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
        book.active["A1"] = dt.date(2024, 2, 29)

    assert xlsx.convert(workbook(fill)).text.text == "2024-02-29"


def test_a_strict_workbook_and_rich_strings_are_read() -> None:
    content = workbook(lambda book: book.active.append(["Kaufpreis"]))
    strings = (
        '<sst xmlns="http://purl.oclc.org/ooxml/spreadsheetml/main"><si><r><t>Kauf</t></r><r><t>preis</t></r>'
        "<rPh sb='0' eb='1'><t>Lesung</t></rPh></si></sst>"
    )
    parts = {"xl/sharedStrings.xml": strings.encode()}
    for name in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels", "_rels/.rels"):
        text = part(content, name).decode()
        text = text.replace(
            "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main"
        )
        parts[name] = text.replace(
            "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
            "http://purl.oclc.org/ooxml/officeDocument/relationships",
        ).encode()
    assert xlsx.convert(changed(content, parts)).text.text == "Kaufpreis"


def test_a_workbook_of_very_many_cells_is_read_in_part_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx_grid, "MAX_CELLS", 1000)
    found = xlsx.convert(workbook(lambda book: [book.active.append([n, "x"]) for n in range(1, 601)])).text
    assert found.text.endswith("\n500 | x")
    assert found.meta["cells_left_out"] == 200


def test_a_million_empty_styled_rows_are_nothing(converter: ConversionProcess) -> None:
    content = workbook(lambda book: book.active.append(["x"]))
    sheet = part(content, "xl/worksheets/sheet1.xml").decode()
    rows = "".join(f'<row r="{n}" s="1" customFormat="1"><c r="A{n}" s="1"/></row>' for n in range(2, 1_000_001))
    sheet = sheet.replace("</row></sheetData>", f"</row>{rows}</sheetData>")
    began = time.monotonic()
    found = converter.convert("xlsx", changed(content, {"xl/worksheets/sheet1.xml": sheet.encode()}), timeout_s=120)
    assert found.text.text == "x"
    assert time.monotonic() - began < 100


def slides() -> bytes:
    deck, made = Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.placeholders[1].text = "Punkt eins\nPunkt zwei"
    slide.shapes.title.text = "Überblick"
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text, table.cell(1, 1).text = "Miete", "1.200 €", "kalt"
    outer = slide.shapes.add_group_shape()
    inner = outer.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, 10, 10).text_frame.text = "in der Gruppe"
    slide.notes_slide.notes_text_frame.text = "Nicht vorlesen."
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Reserve"
    hidden._element.set("show", "0")
    deck.slides.add_slide(deck.slide_layouts[6])
    deck.core_properties.title = "Vortrag"
    deck.save(made)
    return made.getvalue()


def test_a_presentation_is_a_page_a_slide_with_its_notes_apart() -> None:
    content = slides()
    found = pptx.convert(content).text
    texts = [(page.number, page.locus, found.text[page.char_start : page.char_end]) for page in found.pages]
    assert texts == [
        (1, None, "Überblick\nPunkt eins\nPunkt zwei\nMiete | 1.200 €\n | kalt\nin der Gruppe"),
        (1, "notes", "Nicht vorlesen."),
        (2, None, "Reserve"),
        (3, None, ""),
    ]
    assert (found.title, found.meta["heading"], found.meta["hidden_slides"]) == ("Vortrag", "Überblick", [2])
    assert kind_of(content, "x.bin") in FORMATS


def test_a_presentation_with_relations_that_lead_nowhere_opens() -> None:
    content = slides()
    name = "ppt/slides/_rels/slide1.xml.rels"
    rels = part(content, name).replace(
        b"</Relationships>",
        b'<Relationship Id="r99" Type="http://x/image" Target="../NULL"/><Relationship Id="r98" Type="http://x/hyperlink"'
        b' Target="#_top"/></Relationships>',
    )
    assert pptx.convert(changed(content, {name: rels})).text.text.startswith("Überblick")


def test_slides_come_in_the_order_of_the_presentation() -> None:
    content = slides()
    text = part(content, "ppt/presentation.xml").decode()
    first, second, third = re.findall(r"<p:sldId [^>]*/>", text)
    turned = text.replace(first + second + third, third + second + first)
    assert turned != text
    found = pptx.convert(changed(content, {"ppt/presentation.xml": turned.encode()})).text
    assert found.text.startswith("Reserve\nÜberblick")


def test_files_in_an_office_file_are_its_members() -> None:
    inner = workbook(prices)
    found = pptx.convert(changed(slides(), {"ppt/embeddings/Tabelle1.xlsx": inner}))
    assert [(member.name, member.content) for member in found.members] == [("Tabelle1.xlsx", inner)]


WHOLE = {"xlsx": lambda: workbook(prices), "pptx": slides}


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_an_office_file_cut_off_anywhere_is_unreadable(converter: ConversionProcess, name: str) -> None:
    whole = WHOLE[name]()
    for share in range(20):
        with pytest.raises(UnreadableFileError):
            converter.convert(name, whole[: len(whole) * share // 20], timeout_s=30)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_an_office_file_with_broken_bytes_has_a_text_or_a_reason(converter: ConversionProcess, name: str) -> None:
    whole = WHOLE[name]()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist() if entry.endswith((".xml", ".rels"))}
    for seed in range(100):
        chance = random.Random(seed)
        if seed % 2:
            broken = bytearray(whole)
        else:
            entry = chance.choice(sorted(parts))
            broken = bytearray(parts[entry])
        for _ in range(5):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        content = bytes(broken) if seed % 2 else changed(whole, {entry: bytes(broken)})
        try:
            converter.convert(name, content, timeout_s=30)
        except PermanentError:
            continue


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_an_office_bomb_is_stopped_at_the_limit(converter: ConversionProcess, name: str) -> None:
    entry = {"xlsx": "xl/worksheets/sheet1.xml", "pptx": "ppt/slides/slide1.xml"}[name]
    bomb = changed(WHOLE[name](), {entry: b"<a>" + b" " * (210 * 2**20)})
    assert len(bomb) < 2**20
    with pytest.raises(LimitExceededError, match="unpacks to more than"):
        converter.convert(name, bomb, timeout_s=60)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_entities_of_an_office_file_are_neither_expanded_nor_fetched(converter: ConversionProcess, name: str) -> None:
    entry = {"xlsx": "xl/worksheets/sheet1.xml", "pptx": "ppt/slides/slide1.xml"}[name]
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha">' + b"".join(
        b'<!ENTITY a%d "%s">' % (n, (b"&a%d;" % (n - 1) if n else b"&a;") * 10) for n in range(12)
    ) + b'<!ENTITY f SYSTEM "file:///etc/passwd">]>'  # fmt: skip
    text = part(WHOLE[name](), entry)
    text = re.sub(rb"^<\?xml[^>]*\?>", b"", text).replace(b"t>", b"t>&a11;&f;", 1)
    try:
        found = converter.convert(name, changed(WHOLE[name](), {entry: laughs + text}), timeout_s=30).text.text
    except PermanentError:
        return
    assert "haha" not in found
    assert "root:" not in found
