"""Word documents beyond the real files: tracked changes of every shape, content controls, packages that are odd."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from shared.db.tables.content import chunks
from shared.ingest.convert.docx import convert
from shared.ingest.metadata.read import read_facts
from shared.text.converted import ConvertedText
from tests.ingest.conftest import World
from tests.ingest.test_hostile import docx
from tests.ingest.test_office import changed, workbook
from tests.ingest.test_realfiles import path_of

W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
BEN = 'w:author="Ben" w:date="2024-03-01T10:00:00Z"'
ANNA = 'w:author="Anna" w:date="2024-03-02T10:00:00Z"'


def document(body: str, **parts: bytes) -> bytes:
    return docx(f"<w:document {W}><w:body>{body}</w:body></w:document>".encode(), **parts)


def read(body: str) -> ConvertedText:
    return convert(document(body)).text


def run(text: str, tag: str = "t") -> str:
    return f'<w:r><w:{tag} xml:space="preserve">{text}</w:{tag}></w:r>'


def p(*inner: str) -> str:
    return f"<w:p>{''.join(inner)}</w:p>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc>{properties}{p(run(text))}</w:tc>"


def sdt(inner: str) -> str:
    return f"<w:sdt><w:sdtPr><w:alias w:val='Feld'/></w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def record(author: str, date: str, text: str) -> dict[str, str]:
    return {"author": author, "date": date, "text": text}


PRICE = p(
    run("Kaufpreis "), f"<w:del {BEN}>{run('50.000', 'delText')}</w:del>", f"<w:ins {ANNA}>{run('75.000')}</w:ins>", run(" EUR")
)  # fmt: skip
DELETED = record("Ben", "2024-03-01T10:00:00Z", "50.000")
INSERTED = record("Anna", "2024-03-02T10:00:00Z", "75.000")


def test_a_redline_reads_as_accepted_and_keeps_both_changes() -> None:
    found = read(PRICE)
    assert found.text == "Kaufpreis 75.000 EUR"
    assert (found.meta["deletions"], found.meta["insertions"]) == ([DELETED], [INSERTED])


def test_what_a_redline_deleted_is_in_no_chunk(world: World) -> None:
    world.ingest({"a/vertrag.docx": document(PRICE + p(run("Im Übrigen bleibt es dabei. ") * 40))})
    texts = [row.text for row in world.rows(sa.select(chunks.c.text))]
    assert any("75.000" in text for text in texts)
    assert not any("50.000" in text for text in texts)


def test_a_paragraph_made_only_of_an_insertion_is_there() -> None:
    mark = f"<w:pPr><w:rPr><w:ins {ANNA}/></w:rPr></w:pPr>"
    found = read(p(run("Alt.")) + p(mark, f"<w:ins {ANNA}>{run('75.000')}</w:ins>") + p(run("Ende.")))
    assert found.text == "Alt.\n75.000\nEnde."
    assert found.meta["insertions"] == [INSERTED]


def test_what_one_added_and_another_deleted_is_deleted() -> None:
    found = read(
        p(run("Preis"), f"<w:ins {ANNA}>{run(' fest')}<w:del {BEN}>{run('50.000', 'delText')}</w:del></w:ins>")
    )
    assert found.text == "Preis fest"
    assert found.meta["deletions"] == [DELETED]
    assert [change["text"] for change in found.meta["insertions"]] == [" fest"]


def test_what_was_moved_stands_once_where_it_is_now() -> None:
    moved = "Die Haftung ist beschränkt."
    found = read(
        p(
            f'<w:moveFromRangeStart w:id="1" w:name="m"/><w:moveFrom {BEN}>{run(moved)}</w:moveFrom><w:moveFromRangeEnd w:id="1"/>'
        )
        + p(run("Mitte."))
        + p(f"<w:moveTo {BEN}>{run(moved)}</w:moveTo>")
    )
    assert found.text == f"Mitte.\n{moved}"
    assert found.meta["moves"] == [record("Ben", "2024-03-01T10:00:00Z", moved)]
    assert "deletions" not in found.meta
    assert "umlauts_lost" not in found.meta


def test_what_left_its_place_and_arrived_nowhere_was_deleted() -> None:
    found = read(p(run("Rest."), f"<w:moveFrom {BEN}>{run('50.000')}</w:moveFrom>"))
    assert found.text == "Rest."
    assert found.meta["deletions"] == [DELETED]


def test_rows_and_cells_that_were_deleted_or_added_are_records() -> None:
    marked = p(f"<w:ins {ANNA}>{run('75.000')}</w:ins>")
    rows = (
        f"<w:tr>{cell('Miete')}{cell('1.200')}</w:tr>"
        f"<w:tr><w:trPr><w:del {BEN}/></w:trPr>{cell('Größe')}{cell('50 m²')}</w:tr>"
        f"<w:tr><w:trPr><w:ins {ANNA}/></w:trPr>{cell('Kaution')}{cell('3.600')}</w:tr>"
        f"<w:tr><w:trPr><w:ins {ANNA}/></w:trPr><w:tc>{marked}</w:tc></w:tr>"
        f"<w:tr>{cell('Frist')}{cell('alt', f'<w:tcPr><w:cellDel {BEN}/></w:tcPr>')}</w:tr>"
    )
    found = read(f"<w:tbl>{rows}</w:tbl>")
    assert found.text == "Miete | 1.200\nKaution | 3.600\n75.000\nFrist"
    assert [change["text"] for change in found.meta["deletions"]] == ["Größe \n50 m²", "alt"]
    assert [change["text"] for change in found.meta["insertions"]] == ["Kaution | 3.600", "75.000"]
    assert "umlauts_lost" not in found.meta


def test_hidden_text_is_kept_apart() -> None:
    found = read(p(run("Sichtbar."), "<w:r><w:rPr><w:vanish/></w:rPr><w:t>Unsichtbar für Leser.</w:t></w:r>"))
    assert (found.text, found.meta["hidden_text"]) == ("Sichtbar.", "Unsichtbar für Leser.")
    assert "umlauts_lost" not in found.meta
    assert read(p('<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>Doch.</w:t></w:r>')).text == "Doch."


def test_content_controls_of_all_five_shapes_are_not_there_for_a_reader() -> None:
    picture = "<w:r><w:drawing/></w:r>"
    row = f"<w:tr>{cell('um die Zeile')}</w:tr>"
    body = (
        sdt(p(picture, run("Titel")))
        + p(run("vor "), sdt(run("mitten")), run(" nach"))
        + sdt(f"<w:tbl><w:tr>{cell('um die Tabelle')}</w:tr></w:tbl>")
        + f"<w:tbl>{sdt(row)}<w:tr>{sdt(cell('um die Zelle'))}{cell('daneben')}</w:tr></w:tbl>"
    )
    assert read(body).text == "Titel\nvor mitten nach\num die Tabelle\num die Zeile\num die Zelle | daneben"


def test_a_content_control_in_a_box_and_a_smart_tag_are_read_once() -> None:
    inner = f"<w:txbxContent>{sdt(p(run('im Kasten')))}</w:txbxContent>"
    box = (
        f"<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>{inner}</wps:txbx></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{inner}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    tag = f"<w:smartTag>{run('Köln')}</w:smartTag>"
    assert read(p(box, run("Ort: "), tag)).text == "Ort: Köln\nim Kasten"


def test_a_table_of_contents_is_read_without_its_field_codes() -> None:
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC \\o "1-3"</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    )
    entry = f'<w:hyperlink w:anchor="_Toc1">{run("1. Vertragsgegenstand")}<w:r><w:tab/></w:r>{run("3")}</w:hyperlink>'
    assert (
        read(sdt(p(field, entry) + p('<w:r><w:fldChar w:fldCharType="end"/></w:r>'))).text == "1. Vertragsgegenstand\t3"
    )


@pytest.mark.parametrize("target", ["NULL", "../NULL", "#_top", "/NULL", "", "media/fehlt.png", "http://[kaputt"])
def test_a_relation_that_leads_nowhere_is_no_obstacle(target: str) -> None:
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
            for n, kind in enumerate(("image", "header", "footnotes", "styles", "comments", "hyperlink"))
        )
        + "</Relationships>"
    )
    found = convert(document(p(run("Der Text.")), **{"word/_rels/document.xml.rels": rels.encode()}))
    assert found.text.text == "Der Text."


def test_the_file_number_of_a_letterhead_becomes_a_fact() -> None:
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
        ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/header" Target="header1.xml"/>'
        "</Relationships>"
    )
    head = f"<w:hdr {W}>{p(run('Kanzlei Beispiel, Kiel'))}{p(run('Unser Zeichen: 123/24 MU'))}</w:hdr>"
    reference = "<w:sectPr><w:headerReference w:type='default' r:id='r1'/></w:sectPr>"
    parts = {"word/_rels/document.xml.rels": rels.encode(), "word/header1.xml": head.encode()}
    text = convert(document(p(run("Sehr geehrte Damen und Herren,")) + reference, **parts)).text
    assert [page.locus for page in text.pages] == ["body", "header"]
    facts = read_facts(text, name="Brief.docx", mime="x", max_identifier_chars=256)
    assert [(one["kind"], one["canonical"]) for one in facts.identifiers] == [("reference", "123/24 MU")]


def test_a_strict_document_is_read_as_any_other() -> None:
    strict = document(PRICE)
    body = f"<w:document {W}><w:body>{PRICE}</w:body></w:document>".replace(
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    )
    found = convert(changed(strict, {"word/document.xml": body.encode()})).text
    assert (found.text, found.meta["deletions"]) == ("Kaufpreis 75.000 EUR", [DELETED])


def test_a_workbook_in_a_document_is_a_member() -> None:
    inner = workbook(lambda book: book.active.append(["Kaufpreis"]))
    [member] = convert(document(p(run("Siehe Tabelle.")), **{"word/embeddings/Tabelle.xlsx": inner})).members
    assert (member.name, member.content) == ("Tabelle.xlsx", inner)


def test_umlauts_that_do_not_come_out_are_counted() -> None:
    assert read(p(run("Schöne Grüße"))).meta == {}
    # No one knows this element, so its text is not read; that some is missing is seen.
    lost = read(p(run("Schöne"), "<w:unbekannt><w:r><w:t>Grüße für alle</w:t></w:r></w:unbekannt>"))
    assert (lost.text, lost.meta["umlauts_lost"]) == ("Schöne", 3)


@pytest.mark.parametrize("number", ["F01", "F03", "F05", "F09", "F16", "F20"])
def test_no_real_document_loses_an_umlaut(number: str) -> None:
    assert "umlauts_lost" not in convert(path_of(number).read_bytes()).text.meta


def test_a_document_of_redlines_only_has_no_empty_lines_for_them() -> None:
    gone = "".join(
        p(f"<w:pPr><w:rPr><w:del {BEN}/></w:rPr></w:pPr><w:del {BEN}>{run('weg', 'delText')}</w:del>") for _ in range(5)
    )
    found = read(p(run("Anfang.")) + gone + p(run("Ende.")))
    assert re.sub(r"\n+", "\n", found.text) == "Anfang.\nEnde."
    assert len(found.meta["deletions"]) == 5
