"""How far a version has come, and what says so: name before text, text before signature fields, doubt is unknown."""

from __future__ import annotations

import time

import pytest

from shared.ingest.metadata.names import read_name
from shared.ingest.metadata.read import read_facts
from shared.ingest.metadata.signature import text_status
from shared.text.converted import ConvertedText
from shared.types import VersionStatus

DRAFT, FINAL, EXECUTED, UNKNOWN = (
    VersionStatus.DRAFT,
    VersionStatus.FINAL,
    VersionStatus.EXECUTED,
    VersionStatus.UNKNOWN,
)
BODY = "Kaufvertrag\n\nDie Parteien vereinbaren das Folgende.\n\n"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("SPA_Entwurf.docx", DRAFT),
        ("SPA_final.docx", FINAL),
        ("SPA redline.docx", DRAFT),
        ("SPA_unterzeichnet.pdf", EXECUTED),
        ("SPA signed.pdf", EXECUTED),
        ("SPA (executed).pdf", EXECUTED),
        ("SPA_final_signed.pdf", EXECUTED),
        # Which of the two?
        ("SPA_final_Entwurf.docx", UNKNOWN),
        ("SPA_Entwurf_unterzeichnet.pdf", UNKNOWN),
        ("SPA redline executed.pdf", UNKNOWN),
        # A clean text is one without marks of changes, a copy one of something: neither says how far it is.
        ("SPA_v3_clean.docx", UNKNOWN),
        ("SPA - Kopie.pdf", UNKNOWN),
        ("SPA clean final.docx", FINAL),
        ("Finalisierung der Entwürfe.docx", UNKNOWN),
        ("Unsigned SPA.pdf", UNKNOWN),
        ("not executed.pdf", UNKNOWN),
        ("SPA nicht unterzeichnet.pdf", UNKNOWN),
    ],
)
def test_a_files_name_says_how_far_it_is_unless_it_says_two_things(name: str, status: VersionStatus) -> None:
    assert read_name(name).status is status


def test_a_clean_text_and_its_redline_are_versions_of_one_document() -> None:
    names = (
        "SPA_v3_clean.docx",
        "SPA_v3_redline.docx",
        "SPA_v4.docx",
        "SPA_v3_clean - Kopie.docx",
        "Copy of SPA_v2.docx",
    )
    assert {read_name(name).family for name in names} == {"spa"}
    # A copy alone is no version of something: with the same bytes it is the same version anyway.
    assert read_name("Rechnung - Kopie.pdf").family is None


@pytest.mark.parametrize(
    ("text", "status", "kinds"),
    [
        ("ENTWURF vom 3. Mai 2024\n" + BODY, DRAFT, ["text"]),
        (BODY + "Seite eins\n" * 300 + "\nENTWURF\n\nSeite zwei", DRAFT, ["text"]),
        (BODY + "Seite eins\n" * 300 + "\nE N T W U R F\n", DRAFT, ["text"]),
        ("Execution Version\n" + BODY, FINAL, ["text"]),
        (BODY + "gez. Karl Muster", EXECUTED, ["signature"]),
        (BODY + "Hamburg, den 28.03.2024\n\ngez. Unterschrift Karl Muster\n", EXECUTED, ["signature"]),
        (BODY + "By: /s/ Jane Doe\nName: Jane Doe", EXECUTED, ["signature", "signature_block"]),
        (BODY + "DocuSigned by:\nJane Doe", EXECUTED, ["signature"]),
        (BODY + "Ort, Datum, Unterschrift: Hamburg, 28.03.2024, K. Muster", EXECUTED, ["signature_block"]),
        (BODY + "Hamburg, 28.03.2024, Karl Muster\nOrt, Datum, Unterschrift", EXECUTED, ["signature_block"]),
        ("Execution Version\n" + BODY + "gez. Karl Muster", EXECUTED, ["text", "signature"]),
        # Nobody has signed yet, or only one side: no status.
        (BODY + "____________________\nOrt, Datum, Unterschrift", UNKNOWN, ["signature_block"]),
        (BODY + "Ort, Datum: ______________\nUnterschrift: ______________", UNKNOWN, ["signature_block"] * 2),
        (BODY + "By: ____________\nName: Jane Doe", UNKNOWN, ["signature_block"]),
        (BODY + "Unterschrift: [Name]", UNKNOWN, ["signature_block"]),
        (BODY + "By: /s/ Jane Doe\n\nBy: ____________", UNKNOWN, ["signature", "signature_block", "signature_block"]),
        # A draft that is signed is one of both.
        ("Entwurf\n" + BODY + "gez. Karl Muster", UNKNOWN, ["text", "signature"]),
        # What only looks like it.
        (BODY + "Die Unterschrift des Verkäufers ist zu beglaubigen.", UNKNOWN, []),
        (BODY + "Der Entwurf lag bei.", UNKNOWN, []),
        (BODY + "Unterschriften müssen gezeichnet werden.", UNKNOWN, []),
        (BODY + "By signing this deed the parties agree.", UNKNOWN, []),
        ("", UNKNOWN, []),
    ],
)
def test_a_text_says_by_its_marks_how_far_it_is(text: str, status: VersionStatus, kinds: list[str]) -> None:
    found, evidence = text_status(text, {})
    assert (found, [mark["kind"] for mark in evidence]) == (status, kinds)


def test_the_evidence_is_what_is_written() -> None:
    _, evidence = text_status(BODY + "By: /s/ Jane Doe\n\nBy: ________", {})
    assert [mark["value"] for mark in evidence] == ["/s/ Jane Doe", "By: filled in", "By: empty"]


def test_signature_fields_count_only_where_the_text_says_nothing() -> None:
    assert text_status(BODY, {"signatures": 2}) == (EXECUTED, ({"kind": "pdf_signature", "value": "2"},))
    assert text_status(BODY, {"signatures": 0}) == (UNKNOWN, ())
    assert text_status("ENTWURF\n" + BODY, {"signatures": 1})[0] is DRAFT
    assert text_status(BODY + "By: ________", {"signatures": 1})[0] is UNKNOWN


@pytest.mark.parametrize(
    ("name", "text", "meta", "status", "kind"),
    [
        ("SPA_final.pdf", "Entwurf\n" + BODY, {}, FINAL, "file_name"),
        ("SPA_Entwurf.pdf", BODY + "gez. Karl Muster", {"signatures": 1}, DRAFT, "file_name"),
        ("SPA.pdf", "Entwurf\n" + BODY, {"signatures": 1}, DRAFT, "text"),
        ("SPA.pdf", BODY, {"signatures": 1}, EXECUTED, "pdf_signature"),
        ("SPA_v2.pdf", BODY, {}, UNKNOWN, "version_number"),
        # Its name contradicts itself, and the text is not asked any more.
        ("SPA_final_Entwurf.pdf", "Entwurf\n" + BODY, {}, UNKNOWN, "file_name"),
    ],
)
def test_the_name_counts_before_the_text_and_the_text_before_fields(
    name: str, text: str, meta: dict[str, int], status: VersionStatus, kind: str
) -> None:
    facts = read_facts(ConvertedText(text, meta=meta), name=name, mime="x", max_identifier_chars=256)
    assert (facts.status, facts.status_evidence[0]["kind"]) == (status, kind)


def test_a_mail_that_mentions_signatures_is_not_signed() -> None:
    text = ConvertedText("Lieber Bruno,\n\nanbei der Vertrag.\n\ngez. Karl Muster")
    facts = read_facts(text, name="x.eml", mime="message/rfc822", max_identifier_chars=256)
    assert (facts.status, facts.status_evidence) == (UNKNOWN, ())


@pytest.mark.parametrize("piece", ["Unterschrift: ", "gez. ", "_ ", "By: \n", "E ", " \n", "Ort, Datum\n", "(", "/s/ "])
def test_hostile_text_costs_no_more_than_prose(piece: str) -> None:
    began = time.process_time()
    text_status(piece * (200_000 // len(piece)), {})
    assert time.process_time() - began < 2.0
