"""The date of a document: ISO is ISO, else the day comes first; what does not exist or is a deadline is none."""

from __future__ import annotations

from datetime import date

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import documents
from shared.ingest.metadata.dates import document_date, mail_date, named_date, written_dates
from tests.ingest.conftest import World


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("18.11.17", date(2017, 11, 18)),
        ("2023-12-06", date(2023, 12, 6)),
        ("1. März 2023", date(2023, 3, 1)),
        ("den 3.4.2021", date(2021, 4, 3)),
        ("31.02.2020", None),
        ("29.02.2023", None),
        ("29.02.2024", date(2024, 2, 29)),
        ("2023-06-12", date(2023, 6, 12)),
        ("2023-13-06", None),
        ("06.12.2023", date(2023, 12, 6)),
        ("12.13.2023", None),
        ("1.\u00a0März\u00a02023", date(2023, 3, 1)),
        ("3rd of April 2021", date(2021, 4, 3)),
        ("April 3, 2021", date(2021, 4, 3)),
    ],
)
def test_each_spelling_is_the_day_that_it_means(written: str, day: date | None) -> None:
    assert [found.day for found in written_dates(f"am {written} in Kiel")] == ([day] if day else [])


def test_an_impossible_day_is_no_date_of_a_document() -> None:
    assert document_date("Kiel, den 31.02.2020\n\nSehr geehrte Damen und Herren").day is None


def test_a_deadline_in_a_letter_is_not_its_date() -> None:
    letter = "Kiel, den 12.01.2026\n\nSehr geehrte Frau Beispiel,\n\nwir setzen eine Frist bis 15.01.2027."
    assert document_date(letter).day == date(2026, 1, 12)
    assert document_date(letter.replace("Kiel, den 12.01.2026\n\n", "")).day is None
    assert document_date("Frist bis 15.01.2027").day is None


@pytest.mark.parametrize(
    ("text", "day", "precision", "raw"),
    [
        ("Stand: März 2023\n", date(2023, 3, 1), "month", "März 2023"),
        ("Stand: 03/2023\n", date(2023, 3, 1), "month", "03/2023"),
        ("Datum: 2023-03\n", date(2023, 3, 1), "month", "2023-03"),
        ("Stand: 2023\n", date(2023, 1, 1), "year", "2023"),
        ("Allgemeine Bedingungen (Stand 2019)", date(2019, 1, 1), "year", "2019"),
        ("Stand: 3. März 2023", date(2023, 3, 3), "day", "3. März 2023"),
        # A day counts before a part of one, wherever it stands.
        ("Bedingungen (Stand 2019)\nKiel, den 3.4.2021", date(2021, 4, 3), "day", "3.4.2021"),
        ("Im Jahr 2019 war der Stand 2500 EUR.", None, None, None),
        ("Stand: 2019/20", None, None, None),
        ("Nach dem Stand 2023 wäre das anders.", None, None, None),
    ],
)
def test_a_partial_date_keeps_its_precision(
    text: str, day: date | None, precision: str | None, raw: str | None
) -> None:
    found = document_date(text)
    assert (found.day, found.precision, found.raw) == (day, precision, raw)


@pytest.mark.parametrize(
    ("header", "day"),
    [
        # Berlin is one hour ahead of UTC in winter and two in summer.
        ("Sun, 31 Dec 2023 23:30:00 +0100", date(2023, 12, 31)),
        ("Sun, 31 Dec 2023 22:30:00 +0000", date(2023, 12, 31)),
        ("Sun, 31 Dec 2023 23:30:00 +0000", date(2024, 1, 1)),
        ("Mon, 01 Jan 2024 00:30:00 +0100", date(2024, 1, 1)),
        ("Mon, 01 Jan 2024 00:30:00 +0200", date(2023, 12, 31)),
        ("Mon, 01 Jul 2024 22:30:00 +0000", date(2024, 7, 2)),
        ("Mon, 01 Jan 2024 00:30:00", date(2024, 1, 1)),
    ],
)
def test_the_day_of_a_moment_is_the_day_in_berlin(header: str, day: date) -> None:
    assert mail_date(header).day == day


def test_a_mails_day_is_stored_as_a_plain_day_and_a_year_as_its_first(world: World) -> None:
    mail = "From: a@b.example\nSubject: Eilt\nDate: Sun, 31 Dec 2023 23:30:00 +0100\n\nText"
    world.ingest({"a/eins.eml": mail, "a/zwei.txt": "Bedingungen\nStand: 2023\n", "a/drei.txt": "Ein Text."})
    rows = world.rows(
        sa.select(documents.c.doc_date, documents.c.doc_date_precision).order_by(documents.c.doc_date.desc())
    )
    assert sorted(rows, key=str) == [(None, None), (date(2023, 1, 1), "year"), (date(2023, 12, 31), "day")]


@pytest.mark.parametrize(
    ("name", "day", "precision"),
    [
        ("2023-12-06 Brief.docx", date(2023, 12, 6), "day"),
        ("Brief 06.12.2023.docx", date(2023, 12, 6), "day"),
        ("Protokoll 2023-12.docx", date(2023, 12, 1), "month"),
        ("Bericht März 2023.docx", date(2023, 3, 1), "month"),
        ("Brief 31.02.2020.docx", None, None),
        ("12_O_345-21.pdf", None, None),
    ],
)
def test_a_name_may_hold_a_date(name: str, day: date | None, precision: str | None) -> None:
    found = named_date(name)
    assert (found.day, found.precision) == (day, precision)
