"""RTF: what is seen is text, in the right letters; what is deleted, hidden or drawn is not."""

from __future__ import annotations

import time

import pytest

from shared.errors import LimitExceededError, UnreadableFileError
from shared.ingest.convert import rtf
from shared.ingest.convert.process import ConversionProcess

FONTS = (
    r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset238 Arial CE;}{\f2\fcharset2 Symbol;}{\f3\fcharset204 Arial Cyr;}"
    r"{\f4\fcharset128 MS Mincho;}}"
)
U = "\\" + "u"


def document(inner: str, *, head: str = r"\ansi\ansicpg1252\deff0") -> bytes:
    return ("{\\rtf1" + head + FONTS + inner + "}").encode("latin-1")


def text_of(inner: str, **more: str) -> str:
    return rtf.convert(document(inner, **more)).text.text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\'dcbersicht", "Übersicht"),
        (r"M\'fcller {\b \'c4}rger", "Müller Ärger"),
        (rf"{U}220?bersicht", "Übersicht"),
        (rf"{U}220\'dcbersicht", "Übersicht"),
        (rf"{{\uc2 {U}220\'c3\'9cbersicht}}", "Übersicht"),
        (rf"{{\uc0 {U}220 bersicht}}", "Übersicht"),
        (rf"{{\uc2{U}8364 ab}}c", "€c"),
        (rf"{U}220\bullet bersicht", "Übersicht"),
        (rf"{U}-10179?{U}-8704?", "😀"),
        (r"\'80 5 \endash  \ldblquote x\rdblquote\~y\_z", "€ 5 – “x”\u00a0y\u2011z"),
        (r"{\f1 \'a3\'f3d\'9f}", "Łódź"),
        (r"{\f3 \'cf\'f0\'e8\'e2\'e5\'f2}", "Привет"),
        (r"{\f4 \'93\'fa\'96\'7b}", "日本"),
        (r"{\f2\'b7} Punkt", "• Punkt"),
        (r"Silben\-trennung", "Silbentrennung"),
        (r"\{ \\ \}", "{ \\ }"),
    ],
)
def test_letters_are_read_in_the_code_page_of_their_font(written: str, read: str) -> None:
    assert text_of(written) == read


@pytest.mark.parametrize(
    ("head", "written", "read"),
    [
        (r"\ansi\ansicpg1250", r"\'b3", "ł"),
        (r"\mac", r"\'8a", "ä"),
        (r"\pca", r"\'84", "ä"),
        (r"\ansi\ansicpg99999", r"\'e4", "ä"),
    ],
)
def test_letters_without_a_font_are_in_the_documents_code_page(head: str, written: str, read: str) -> None:
    assert text_of(written, head=head) == read


def test_the_rows_of_a_table_are_lines() -> None:
    table = r"\trowd\intbl Pos.\cell Betrag\cell\row\trowd\intbl 1\cell\cell\row nach der Tabelle\par"
    assert text_of(table) == "Pos. | Betrag\n1 |\nnach der Tabelle"


def test_a_table_in_a_table_is_read() -> None:
    inner = r"\itap2 innen 1\nestcell innen 2\nestcell{\*\nesttableprops\trowd\nestrow}{\nonesttables\par}"
    assert text_of(rf"\trowd\intbl {inner}\intbl au\'dfen\cell\row") == "innen 1 | innen 2\naußen"


def test_deleted_and_hidden_text_stands_apart() -> None:
    found = rtf.convert(
        document(
            r"{\*\revtbl{Unknown;}{Anna Amsel;}}Der Preis ist {\deleted\revauthdel1\revdttmdel0 100}"
            r"{\revised\revauth1 200} Euro.{\v nur intern}\v  auch intern\v0  Ende \deleted weg\plain  da\par"
        )
    )
    assert found.text.text == "Der Preis ist 200 Euro. Ende  da"
    assert found.text.meta["deletions"] == [
        {"text": "100", "author": "Anna Amsel", "date": None},
        {"text": "weg", "author": None, "date": None},
    ]
    assert found.text.meta["insertions"] == [{"text": "200", "author": "Anna Amsel", "date": None}]
    assert found.text.meta["hidden_text"] == "nur intern auch intern"


def test_the_day_of_a_deletion_is_unpacked() -> None:
    packed = 5 | 14 << 6 | 12 << 11 | 2 << 16 | 124 << 20 | 1 << 29
    found = rtf.convert(document(rf"x{{\deleted\revdttmdel{packed} alt}}"))
    assert found.text.meta["deletions"][0]["date"] == "2024-02-12T14:05:00"


def test_notes_headers_and_footers_are_parts_of_their_own() -> None:
    found = rtf.convert(
        document(r"{\header Kanzlei}{\footerf Seite}Text{\super\chftn}{\footnote\chftn  Fu\'dfnote} weiter\par Ende")
    ).text
    assert found.text == "Text weiter\nEnde\nKanzlei\nSeite\nFußnote"
    assert [(page.locus, found.text[page.char_start : page.char_end]) for page in found.pages] == [
        ("body", "Text weiter\nEnde"),
        ("header", "Kanzlei"),
        ("footer", "Seite"),
        ("notes", "Fußnote"),
    ]


def test_the_title_is_the_one_in_the_properties() -> None:
    found = rtf.convert(document(rf"{{\info{{\title Vertrag {U}252?ber \'c4pfel}}{{\author Anna}}{{\company K}}}}Text"))
    assert (found.text.title, found.text.text) == ("Vertrag über Äpfel", "Text")


def test_comments_are_kept_apart_with_their_author() -> None:
    found = rtf.convert(
        document(r"Preis{\*\atnid AA}{\*\atnauthor Anna Amsel}\chatn{\*\annotation{\*\atnref 1}\pard zu hoch?} ist 5")
    )
    assert found.text.text == "Preis ist 5"
    assert found.text.meta["comments"] == [{"text": "zu hoch?", "author": "Anna Amsel", "date": None}]


def test_pictures_and_objects_are_dropped_and_counted() -> None:
    found = rtf.convert(
        document(
            r"vor {\*\shppict{\pict\pngblip 89504e47}}{\nonshppict{\pict\wmetafile8 0100}}"
            r"{\object\objemb{\*\objclass Word}{\*\objdata 0105}{\result{\pict 0100}}}{\pict\bin5 }}\'e4} nach"
        )
    )
    assert found.text.text == "vor  nach"
    assert (found.text.meta["dropped_pictures"], found.text.meta["dropped_objects"]) == (3, 1)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"{\*\do{\dptxbx{\dptxbxtext Alter Kasten\par}}}", "Alter Kasten"),
        (r"{\shp{\*\shpinst{\shptxt Kasten}}{\shprslt{\*\do{\dptxbxtext Kasten}}}}", "Kasten"),
        (
            r"Text{\headerl Kanzlei\par}{\headerr Kanzlei\par}{\headerf Kanzlei Erste Seite\par}",
            "Text\nKanzlei\n\nKanzlei Erste Seite",
        ),
        (r"{\field{\*\fldinst{HYPERLINK http://x.example}}{\fldrslt{\ul der Vertrag}}}", "der Vertrag"),
        (r"{\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt Im Kasten\par}}{\shprslt{\*\do Im Kasten}}}", "Im Kasten"),
        (rf"{{\upr{{a}}{{\*\ud{{{U}228 ?}}}}}}", "ä"),
        (r"{\listtext\'a7 1\tab}Geltung{\*\pn{\pntxta .}}", "§ 1\tGeltung"),
        (r"{\*\bkmkstart marke}Text{\*\bkmkend marke}{\*\unbekannt weg}", "Text"),
        (r"{\stylesheet{\s1 Standard;}}{\*\listtable{\list{\listname x;}}}{\colortbl;\red1;}Text", "Text"),
    ],
)
def test_of_groups_what_is_seen_is_read(written: str, read: str) -> None:
    assert text_of(written) == read


def test_html_that_is_wrapped_in_rtf_is_read_as_html() -> None:
    wrapped = (
        r"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0\fswiss Arial;}}"
        r"{\*\htmltag18 <html>}{\*\htmltag34 <head>}{\*\htmltag177 <style>p \{ color: red \}</style>}"
        r"{\*\htmltag41 </head>}{\*\htmltag50 <body>}\htmlrtf \lang1031 nur RTF\htmlrtf0 "
        r"{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 Sehr geehrte Frau M\'fcller,\htmlrtf\par}\htmlrtf0"
        r"{\*\htmltag72 </p>}{\*\htmltag64 <p>}a {\*\htmltag84 &lt;}\htmlrtf <\htmlrtf0  b{\*\mhtmltag84 doppelt}"
        r"{\*\htmltag72 </p>}{\*\htmltag58 </body>}}"
    )
    assert rtf.convert(wrapped.encode()).text.text == "Sehr geehrte Frau Müller,\na < b"
    assert rtf.text_of(wrapped.encode()) == "Sehr geehrte Frau Müller,\na < b"


def test_a_document_that_breaks_off_is_read_so_far_and_flagged() -> None:
    found = rtf.convert(document(r"Der Anfang des Vertrags {\b und")[:-1])
    assert found.text.text == "Der Anfang des Vertrags und"
    assert found.text.meta["breaks_off"] is True
    with pytest.raises(UnreadableFileError, match="breaks off"):
        rtf.convert(rb"{\rtf1\ansi{\fonttbl{\f0 Ari")


def test_a_document_of_many_pages_is_read_quickly(converter: ConversionProcess) -> None:
    line = r"\pard\plain\f0\fs22 Dies ist ein Satz mit Umlauten \'e4\'f6\'fc und {\b fett} und mehr.\par" + "\n"
    began = time.monotonic()
    text = converter.convert("rtf", document(line * 20_000), timeout_s=60).text.text
    assert text.count("Umlauten äöü und fett") == 20_000
    assert time.monotonic() - began < 6


@pytest.mark.parametrize(
    "inner",
    ["{" * 100_000, r"{\field{\*\fldinst HYPERLINK " * 50_000, r"{\fonttbl{\f0\fcharset0 " * 50_000],
    ids=["groups", "fields", "fonts"],
)
def test_groups_lie_in_one_another_only_so_deep(converter: ConversionProcess, inner: str) -> None:
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match="5000 deep"):
        converter.convert("rtf", document(inner), timeout_s=20)
    assert time.monotonic() - began < 3
    assert text_of("{" * 1000 + "Text" + "}" * 1000) == "Text"


@pytest.mark.parametrize("number", ["99999999999", "-1", "2147483648", ""])
def test_numbers_without_sense_stop_nothing(number: str) -> None:
    for word in ("u", "uc", "f", "ansicpg", "revdttmdel", "revauthdel", "fcharset", "bin", "deff", "v"):
        rtf.convert(document(f"Text \\{word}{number} mehr {{\\deleted weg}}"))


def test_a_text_that_is_no_rtf_is_unreadable() -> None:
    with pytest.raises(UnreadableFileError, match="no RTF"):
        rtf.convert(b"nur Text")
