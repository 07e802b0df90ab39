"""Dates, names, types, languages and identifiers, read without a model."""

from __future__ import annotations

import time
from datetime import date

import pytest

from shared.ingest.identifiers import extract, within
from shared.ingest.metadata.dates import document_date, mail_date, named_date, written_dates
from shared.ingest.metadata.languages import language_of
from shared.ingest.metadata.names import read_name
from shared.ingest.metadata.read import read_facts
from shared.ontology.tree import load_ontology
from shared.text.converted import ConvertedText
from shared.types import Language, VersionStatus


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("18.11.17", date(2017, 11, 18)),
        ("2023-12-06", date(2023, 12, 6)),
        ("1. März 2023", date(2023, 3, 1)),
        ("1.\u00a0März\u00a02023", date(2023, 3, 1)),
        ("den 3.4.2021", date(2021, 4, 3)),
        ("31.02.2020", None),
        ("January 7, 2024", date(2024, 1, 7)),
        ("7th of May 2024", date(2024, 5, 7)),
        ("12.5.99", date(1999, 5, 12)),
        ("Az. 1.2.2020.7", None),
        ("Version 10.11.12.13", None),
    ],
)
def test_a_written_date_is_read_day_first_unless_it_is_iso(written: str, day: date | None) -> None:
    assert [found.day for found in written_dates(written)] == ([day] if day else [])


@pytest.mark.parametrize(
    ("text", "day", "precision"),
    [
        ("Hamburg, den 14. September 2021\nSehr geehrte Damen", date(2021, 9, 14), "day"),
        ("An das Landgericht Hamburg. Hamburg, den 14. September 2021.", date(2021, 9, 14), "day"),
        ("Brief\nDatum: 03.02.2026\nFrist bis 15.01.2027", date(2026, 2, 3), "day"),
        ("Frist bis 15.01.2027", None, None),
        ("Termin am Dienstag, den 26. April 2022, 10:30 Uhr", None, None),
        ("Wir verweisen auf unser Schreiben, zahlbar bis 1.3.2024.", None, None),
        ("Urteil vom 12. März 2020\nTatbestand", date(2020, 3, 12), "day"),
        ("Stand: März 2023", date(2023, 3, 1), "month"),
        ("Vermerk\n\n3. April 2021\n\nText", date(2021, 4, 3), "day"),
        ("geboren am 1.1.1970 in Bremen", None, None),
    ],
)
def test_a_document_has_the_date_that_it_gives_itself(text: str, day: date | None, precision: str | None) -> None:
    found = document_date(text)
    assert (found.day, found.precision) == (day, precision)


@pytest.mark.parametrize(
    ("header", "day"),
    [
        ("Mon, 12 Feb 2024 23:30:00 +0000", date(2024, 2, 13)),
        ("Mon, 12 Feb 2024 00:30:00 +0200", date(2024, 2, 11)),
        ("Tue, 9 Jul 2019 14:02:11 +0200 (Mitteleuropäische Sommerzeit)", date(2019, 7, 9)),
        ("Mon, 6 Jun 2005 22:21:22 -0000", date(2005, 6, 6)),
        ("Sat, 12 Feb 100 10:00:00 +0100", date(2000, 2, 12)),
        ("Tue, 9 Jan 2001 10:27:54 EST5EDT", date(2001, 1, 9)),
        ("Tue, 9 Jan 2001 10:27:54 (GMT+02:00)", date(2001, 1, 9)),
        ("Tue, 9 Jan 2001 23:59:00", date(2001, 1, 9)),
        ("Tue, 9 Jan 20 01 10:27", None),
        ("Tue, 9 Jan 100", None),
        ("INVALID-DATE-FORMAT", None),
        ("Mon, 31 Feb 2024 10:00:00 +0100", None),
        ("", None),
    ],
)
def test_a_mails_date_is_the_day_in_berlin_or_nothing(header: str, day: date | None) -> None:
    found = mail_date(header)
    assert (found.day, found.raw) == (day, header.strip() or None)


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("LOI_Nordlicht_2023-11-06.pdf", date(2023, 11, 6)),
        ("20240328 Schreiben.docx", date(2024, 3, 28)),
        ("Schreiben 28.03.2024.docx", date(2024, 3, 28)),
        ("Urteil_12_O_345-21.pdf", None),
        ("20249999.pdf", None),
    ],
)
def test_a_file_name_may_hold_a_date(name: str, day: date | None) -> None:
    assert named_date(name).day == day


@pytest.mark.parametrize(
    ("name", "family", "number", "status"),
    [
        ("SPA_Entwurf_v1.docx", "spa", (1,), VersionStatus.DRAFT),
        ("SPA_Entwurf_v3_Markup.docx", "spa", (3,), VersionStatus.DRAFT),
        ("SPA_final.docx", "spa", None, VersionStatus.FINAL),
        ("SPA_unterzeichnet_2024-03-28.pdf", "spa", None, VersionStatus.EXECUTED),
        ("SPA v1.2 (draft) 2024-01-05.docx", "spa", (1, 2), VersionStatus.DRAFT),
        ("Lease - executed.pdf", "lease", None, VersionStatus.EXECUTED),
        ("Vertrag.docx", None, None, VersionStatus.UNKNOWN),
        ("Anlage_1.docx", None, None, VersionStatus.UNKNOWN),
        ("Protokoll_2024-01-05.docx", None, None, VersionStatus.UNKNOWN),
        ("Schreiben 2024-01-05 Entwurf.docx", "schreiben 2024 01 05", None, VersionStatus.DRAFT),
        ("Finalisierung.docx", None, None, VersionStatus.UNKNOWN),
        ("final.docx", None, None, VersionStatus.FINAL),
    ],
)
def test_a_name_says_its_family_number_and_status(name, family, number, status) -> None:
    found = read_name(name)
    assert (found.family, found.number, found.status) == (family, number, status)


@pytest.mark.parametrize(
    ("words", "doc_type"),
    [
        ("Anteilskauf- und Übertragungsvertrag", "contract.purchase.shares"),
        ("Gewerbemietvertrag_2016", "contract.lease.commercial"),
        ("Klageerwiderung_12_O_345-21", "pleading.defence"),
        ("Klageschrift", "pleading.claim"),
        ("Urteil LG Hamburg", "court.judgment"),
        ("Hinweisbeschluss", "court.order"),
        ("Statement of Defence", "pleading.defence"),
        ("Procedural_Order_No_1", "court.order"),
        ("Telefonnotiz", "note"),
        ("Lageplan", None),
        ("Vertragen sich", None),
    ],
)
def test_a_type_is_read_from_what_a_document_is_called(words: str, doc_type: str | None) -> None:
    assert load_ontology(None).doc_type_of(mime="text/plain", names=(words,)) == doc_type


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Beklagte wird verurteilt, an die Klägerin 212.400 EUR zu zahlen.", Language.GERMAN),
        ("The tenant shall pay the rent monthly in advance to the landlord.", Language.ENGLISH),
        ("DIE PARTEIEN VEREINBAREN STILLSCHWEIGEN ÜBER DEN INHALT.", Language.GERMAN),
        ("Le locataire paie le loyer chaque mois au bailleur.", Language.UNDETERMINED),
        ("12.345,00 | 67.890,00 | 1 | 2 | 3", Language.UNDETERMINED),
        ("", Language.UNDETERMINED),
    ],
)
def test_the_language_of_a_text(text: str, language: Language) -> None:
    assert language_of(text) is language
    assert language_of(text) is language


@pytest.mark.parametrize(
    ("text", "kind", "canonical"),
    [
        ("1 C 4.16", "file_number", "1 C 4/16"),
        ("1 C 4/16", "file_number", "1 C 4/16"),
        ("11 C 4/16", "file_number", "11 C 4/16"),
        ("1 C 4/165", None, None),
        ("VI\u00a0ZR\u00a0194/17", "file_number", "VI ZR 194/17"),
        ("VI ZR\n194/17", "file_number", "VI ZR 194/17"),
        ("2 BvR 1/20", "file_number", "2 BvR 1/20"),
        ("12 O 34/21 KfH", "file_number", "12 O 34/21 KfH"),
        ("L 9 AS 12/19 B ER", "file_number", "L 9 AS 12/19 B ER"),
        ("M 12 K 19.1234", "file_number", "M 12 K 19.1234"),
        ("123 Js 456/20", "file_number", "123 Js 456/20"),
        ("C-210/16", "eu_case", "C-210/16"),
        ("C\u2011210/16", "eu_case", "C-210/16"),
        ("ECLI:DE:BGH:2018:090418UVIZR194.17.0", "ecli", "ECLI:DE:BGH:2018:090418UVIZR194.17.0"),
        ("HRB 78214", "register", "HRB 78214"),
        ("HRB\u00a0Nr. 12345 B", "register", "HRB 12345 B"),
        ("Urkundenrolle Nr. 812/2024", "deed", "UR 812/2024"),
        ("§ 573 Abs. 2 Nr. 3 BGB", "statute", "§ 573 Abs. 2 Nr. 3 BGB"),
        ("§§ 280 Abs. 1, 3, 281 BGB", "statute", "§§ 280 Abs. 1, 3, 281 BGB"),
        ("Artikel 6 Absatz 1 Buchst. f DSGVO", "statute", "Art. 6 Abs. 1 lit. f DSGVO"),
        ("nach § 4 dieses Vertrages. Die GmbH", None, None),
        ("am 3.4.21 gezahlt", None, None),
        ("EUR 2.500.000 und 12/21", None, None),
    ],
)
def test_an_identifier_has_one_canonical_form_whatever_its_spelling(text, kind, canonical) -> None:
    assert [(i.kind, i.canonical) for i in extract(text)] == ([(kind, canonical)] if kind else [])


def test_an_identifiers_span_is_where_it_is_written() -> None:
    text = "Im Verfahren VI\u00a0ZR\u00a0194/17 gilt § 543 BGB; HRB 78214."
    assert [text[i.start : i.end] for i in extract(text)] == ["VI\u00a0ZR\u00a0194/17", "§ 543 BGB", "HRB 78214"]


def test_an_identifier_longer_than_allowed_is_dropped_with_a_note() -> None:
    text = ConvertedText("Unser Zeichen: " + "ü1" * 20_000 + "\nIm Verfahren 1 C 4/16.")
    facts = read_facts(text, name="x.txt", mime="text/plain", max_identifier_chars=256)
    assert [identifier["canonical"] for identifier in facts.identifiers] == ["1 C 4/16"]
    assert facts.notes == ("1 identifiers of more than 256 bytes were left out",)


def test_each_canonical_form_is_kept_once() -> None:
    found, dropped = within(extract("1 C 4.16, 1 C 4/16 und 1 C 4/16"), max_chars=256)
    assert ([i.raw for i in found], dropped) == (["1 C 4.16"], 0)


@pytest.mark.parametrize(
    "text", ["§ 1" + ", 1" * 50_000, "§ 1 " + "Abs. 1 " * 50_000, "1 " * 200_000, "VI ZR " * 50_000, "12. " * 80_000]
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    started = time.monotonic()
    extract(text)
    document_date(text)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Microsoft Word - Dokument1.docx", "Brief an Mandant"),
        ("Untitled", "Brief an Mandant"),
        ("C:\\temp\\x.doc", "Brief an Mandant"),
        ("Anteilskaufvertrag", "Anteilskaufvertrag"),
        (None, "Brief an Mandant"),
    ],
)
def test_a_title_that_says_nothing_gives_way_to_the_files_name(title: str | None, expected: str) -> None:
    text = ConvertedText("Text", title=title)
    assert read_facts(text, name="Brief an Mandant.docx", mime="x", max_identifier_chars=256).title == expected


def test_a_text_that_calls_itself_a_draft_is_one_and_says_so() -> None:
    text = ConvertedText("Anteilskaufvertrag\n\nEntwurf, nicht beurkundet. Änderungen bleiben vorbehalten.")
    facts = read_facts(text, name="Vertrag.docx", mime="x", max_identifier_chars=256)
    assert facts.status is VersionStatus.DRAFT
    assert facts.status_evidence[0]["kind"] == "text"
