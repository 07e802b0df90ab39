"""Identifiers by kind: each spelling has one canonical form and a span that is exactly what is written."""

from __future__ import annotations

import time

import pytest

from shared.ingest.identifiers import Identifier, extract, within


def _found(text: str) -> list[tuple[str, str, str]]:
    return [(one.kind, one.raw, one.canonical) for one in extract(text)]


def _canonicals(text: str) -> set[tuple[str, str]]:
    return {(one.kind, one.canonical) for whole in extract(text) for one in whole.each()}


FILE_NUMBERS = [
    ("1 C 4.16", "1 C 4/16"),
    ("1 C 4/16", "1 C 4/16"),
    ("1\u00a0C\u00a04/2016", "1 C 4/16"),
    ("11 C 4/16", "11 C 4/16"),
    ("VI ZR 194/17", "VI ZR 194/17"),
    ("VI\u00a0ZR\u00a0194/17", "VI ZR 194/17"),
    ("VI ZR 194/2017", "VI ZR 194/17"),
    ("IVa ZR 76/82", "IVa ZR 76/82"),
    ("2 BvR 1/20", "2 BvR 1/20"),
    ("12 O 34/21 KfH", "12 O 34/21 KfH"),
    ("4 KfH O 12/20", "4 KfH O 12/20"),
    ("3 HK O 1234/19", "3 HK O 1234/19"),
    ("2-03 O 123/20", "2-03 O 123/20"),
    ("I-15 U 45/19", "I-15 U 45/19"),
    ("L 9 AS 12/19 B ER", "L 9 AS 12/19 B ER"),
    ("B 4 AS 1/20 R", "B 4 AS 1/20 R"),
    ("S 33 KR 1376/12", "S 33 KR 1376/12"),
    ("2 AZR 1/20", "2 AZR 1/20"),
    ("1 ABR 22/18", "1 ABR 22/18"),
    ("5 TaBV 6/19", "5 TaBV 6/19"),
    ("7 Ca 812/20", "7 Ca 812/20"),
    ("IX R 1/20", "IX R 1/20"),
    ("6 K 1234/20 E", "6 K 1234/20 E"),
    ("M 12 K 19.1234", "M 12 K 19.1234"),
    ("22 ZB 16.1234", "22 ZB 16.1234"),
    ("VG 14 L 123/20", "VG 14 L 123/20"),
    ("4 K 27/15.KO", "4 K 27/15.KO"),
    ("36a IN 1234/20", "36a IN 1234/20"),
    ("6 VI 123/20", "6 VI 123/20"),
    ("123 Js 4567/20", "123 Js 4567/20"),
    ("45 UJs 89/21", "45 UJs 89/21"),
    ("12 VRs 34/19", "12 VRs 34/19"),
    ("25 W (pat) 12/20", "25 W (pat) 12/20"),
    ("4 Ni 12/20 (EP)", "4 Ni 12/20 (EP)"),
    ("I ZR (Ü) 1/20", "I ZR (Ü) 1/20"),
    ("KZR 13/20", "KZR 13/20"),
    ("EnVR 5/18", "EnVR 5/18"),
    ("AnwZ (Brfg) 12/20", "AnwZ (Brfg) 12/20"),
    ("VII-Verg 12/20", "VII-Verg 12/20"),
    ("2 StR 455/19", "2 StR 455/19"),
    ("3 A 381/16 As HGW", "3 A 381/16 As HGW"),
]


@pytest.mark.parametrize(("written", "canonical"), FILE_NUMBERS)
def test_a_file_number_of_every_branch_has_one_form_and_is_read_whole(written: str, canonical: str) -> None:
    text = f"Im Verfahren {written}, das noch läuft,"
    assert _found(text) == [("file_number", written, canonical)]


OTHERS = [
    ("C-210/16", "eu_case", "C-210/16"),
    ("C\u2011210/16 P", "eu_case", "C-210/16 P"),
    ("T-1/20", "eu_case", "T-1/20"),
    ("Rs. 26/62", "eu_case", "26/62"),
    ("B6-22/16", "authority", "B6-22/16"),
    ("B 6 \u2013 22/16", "authority", "B6-22/16"),
    ("VK 2-12/20", "authority", "VK 2-12/20"),
    ("AT.39740", "authority", "AT.39740"),
    ("ecli:de:bgh:2018:090418uvizr194.17.0", "ecli", "ECLI:DE:BGH:2018:090418UVIZR194.17.0"),
    ("HRB 12345 B", "register", "HRB 12345 B"),
    ("HRA\u00a0Nr. 991", "register", "HRA 991"),
    ("VR 4711", "register", "VR 4711"),
    ("GnR 12", "register", "GnR 12"),
    ("PR 345", "register", "PR 345"),
    ("DE89 3704 0044 0532 0130 00", "iban", "DE89370400440532013000"),
    ("DE136695976", "vat", "DE136695976"),
    ("DE 136 695 976", "vat", "DE136695976"),
    ("USt-IdNr.: ATU12345678", "vat", "ATU12345678"),
    ("Steuernummer 12/345/67890", "tax", "12/345/67890"),
    ("EP 1 234 567 B1", "patent", "EP 1234567 B1"),
    ("EP1234567B1", "patent", "EP 1234567 B1"),
    ("WO 2019/123456 A1", "patent", "WO 2019/123456 A1"),
    ("DE 10 2012 012 345 B4", "patent", "DE 102012012345 B4"),
    ("US 9,123,456 B2", "patent", "US 9123456 B2"),
    ("Richtlinie 2011/83/EU", "eu_act", "2011/83/EU"),
    ("RL 2011/83/EU", "eu_act", "2011/83/EU"),
    ("Directive 2011/83/EU", "eu_act", "2011/83/EU"),
    ("69/335/EWG", "eu_act", "69/335/EWG"),
    ("Verordnung (EU) 2016/679", "eu_act", "(EU) 2016/679"),
    ("Verordnung (EG) Nr. 593/2008", "eu_act", "(EG) 593/2008"),
    ("Regulation (EC) No 593/2008", "eu_act", "(EG) 593/2008"),
    ("Vertrag Nr. 2023-117", "contract", "2023-117"),
    ("Mietvertragsnummer: MV-2019/44", "contract", "MV-2019/44"),
    ("Rechnungsnr. 9314110911/00/M/00/N", "invoice", "9314110911/00/M/00/N"),
    ("Rechnung Nr. 2024-0815", "invoice", "2024-0815"),
    ("Invoice No. INV-77", "invoice", "INV-77"),
    ("Unser Zeichen: 123/24 MU", "reference", "123/24 MU"),
    ("Kundennummer 445566", "customer", "445566"),
    ("NJW 2015, 1827", "reporter", "NJW 2015, 1827"),
    ("BGHZ 148, 1, 8", "reporter", "BGHZ 148, 1"),
    ("[2019] EWCA Civ 123", "reporter", "[2019] EWCA Civ 123"),
    ("17 U.S.C. § 107", "statute", "17 U.S.C. § 107"),
    ("section 172 of the Companies Act 2006", "statute", "s. 172 Companies Act 2006"),
]


@pytest.mark.parametrize(("written", "kind", "canonical"), OTHERS)
def test_other_numbers_have_one_form_whatever_their_spelling(written: str, kind: str, canonical: str) -> None:
    (found,) = extract(f"Siehe {written}.")
    assert (found.kind, found.canonical) == (kind, canonical)


@pytest.mark.parametrize(
    "text",
    [
        "1 X 4/16",
        "1 C 4/165",
        "DE89 3704 0044 0532 0130 01",
        "DE136695977",
        "am 3.4.21 gezahlt, EUR 2.500.000 und 12/21",
        "nach § 4 dieses Vertrages. Die GmbH",
        "§ 5 der GmbH-Satzung",
        "§ 3 HAFTUNG\nDie Haftung",
        "§ 7 I. Allgemeines",
        "nach § 2 Nr. 3 und 210 DM gezahlt",
        "gilt § 6 VI ZR sinngemäß",
        "Die Ziffern 12 und 13 gelten.",
        "Procedural Order No. 1 und Vertrag Nr. 7",
        "RL und VO im Sinne von Art. 3 RL",
    ],
)
def test_what_only_looks_like_an_identifier_is_none(text: str) -> None:
    assert extract(text) == []


def test_both_spellings_of_a_file_number_meet_and_neighbours_do_not() -> None:
    assert _canonicals("1 C 4.16") == _canonicals("1 C 4/16")
    assert not _canonicals("1 C 4/16") & (_canonicals("11 C 4/16") | _canonicals("1 C 4/165"))


def test_a_file_number_printed_with_hard_spaces_is_the_one_that_is_typed() -> None:
    printed, typed = extract("VI\u00a0ZR\u00a0194/17"), extract("VI ZR 194/17")
    assert [one.canonical for one in printed] == [one.canonical for one in typed]
    assert printed[0].raw == "VI\u00a0ZR\u00a0194/17"


STATUTES = [
    ("§§ 280 Abs. 1, 3, 281 BGB", [("§§ 280 Abs. 1, 3", "§ 280 Abs. 1, 3 BGB"), ("281 BGB", "§ 281 BGB")]),
    ("§§ 573-575 BGB", [("§§ 573", "§ 573 BGB"), ("575 BGB", "§ 574 BGB"), ("575 BGB", "§ 575 BGB")]),
    ("§§ 312 bis 312b BGB", [("§§ 312", "§ 312 BGB"), ("312b BGB", "§ 312a BGB"), ("312b BGB", "§ 312b BGB")]),
    ("§§ 1, 2 Abs. 2, 3 UWG", [("§§ 1", "§ 1 UWG"), ("2 Abs. 2", "§ 2 Abs. 2 UWG"), ("3 UWG", "§ 3 UWG")]),
    ("§§ 1 Abs. 1, 2 Abs. 2 UWG", [("§§ 1 Abs. 1", "§ 1 Abs. 1 UWG"), ("2 Abs. 2 UWG", "§ 2 Abs. 2 UWG")]),
    ("Art. 12, 14 GG", [("Art. 12", "Art. 12 GG"), ("14 GG", "Art. 14 GG")]),
    ("Art. 101 und 102 AEUV", [("Art. 101", "Art. 101 AEUV"), ("102 AEUV", "Art. 102 AEUV")]),
]


@pytest.mark.parametrize(("text", "references"), STATUTES)
def test_a_list_of_sections_is_one_reference_for_each(text: str, references: list[tuple[str, str]]) -> None:
    (found,) = extract(f"Nach {text} gilt:")
    assert found.raw == text
    assert [(one.raw, one.canonical) for one in found.parts if one.kind == "statute"] == references


# Sentences made up for this test, each with what is cited in it, as written and in the one form.
SENTENCES = [
    ("Der Anspruch folgt aus § 433 Abs. 2 BGB.", {"§ 433 Abs. 2 BGB": "§ 433 Abs. 2 BGB"}),
    ("Gemäß § 1 Abs. 2 Satz 1 Nr. 3 UWG ist das zulässig.", {"§ 1 Abs. 2 Satz 1 Nr. 3 UWG": "§ 1 Abs. 2 S. 1 Nr. 3 UWG"}),
    ("Er stützt sich auf Art. 6 Abs. 1 lit. f DSGVO und hilft ab.", {"Art. 6 Abs. 1 lit. f DSGVO": "Art. 6 Abs. 1 lit. f DSGVO"}),
    ("The processing is lawful under Article 6(1)(f) GDPR.", {"Article 6(1)(f) GDPR": "Art. 6 Abs. 1 lit. f DSGVO"}),
    ("Dies verletzt § 823 I BGB in Verbindung mit § 31 BGB.", {"§ 823 I BGB": "§ 823 Abs. 1 BGB", "§ 31 BGB": "§ 31 BGB"}),
    ("Das ergibt sich aus § 433 I 1 BGB.", {"§ 433 I 1 BGB": "§ 433 Abs. 1 S. 1 BGB"}),
    ("Anwendbar sind die §§ 74 ff. HGB.", {"§§ 74 ff. HGB": "§ 74 ff. HGB"}),
    ("Nach HGB § 74a Abs 1 S 1 ist es unverbindlich.", {"HGB § 74a Abs 1 S 1": "§ 74a Abs. 1 S. 1 HGB"}),
    ("Insofern gilt § 5 Abs. 1, § 6 UrhG entsprechend.", {"§ 5 Abs. 1": "§ 5 Abs. 1 UrhG", "§ 6 UrhG": "§ 6 UrhG"}),
    ("Die Frist nach § 26 Abs. 3 SGB X i.V.m. § 188 BGB lief ab.", {"§ 26 Abs. 3 SGB X": "§ 26 Abs. 3 SGB X", "§ 188 BGB": "§ 188 BGB"}),
    ("Nach § 124 der Verwaltungsgerichtsordnung war sie zuzulassen.", {"§ 124 der Verwaltungsgerichtsordnung": "§ 124 VwGO"}),
    ("Maßgeblich ist § 11 Elftes Buch Sozialgesetzbuch.", {"§ 11 Elftes Buch Sozialgesetzbuch": "§ 11 SGB XI"}),
    ("Das folgt aus § 280 des Bürgerlichen Gesetzbuchs.", {"§ 280 des Bürgerlichen Gesetzbuchs": "§ 280 BGB"}),
    ("Vgl. § 3 Abs. 1 des Gesetzes über Musterverfahren (MusterG).", {"§ 3 Abs. 1 des Gesetzes über Musterverfahren (MusterG)": "§ 3 Abs. 1 MusterG"}),
    ("Sie beruft sich auf § 823 Abs. 1 2. Alt. BGB.", {"§ 823 Abs. 1 2. Alt. BGB": "§ 823 Abs. 1 Alt. 2 BGB"}),
    ("Dem steht § 8 Abs. 3 Nr. 1 und 2 UWG 2004 entgegen.", {"§ 8 Abs. 3 Nr. 1 und 2 UWG 2004": "§ 8 Abs. 3 Nr. 1 und 2 UWG 2004"}),
    ("Es gilt Art. 4 Abs. 2 der Richtlinie 93/13/EWG.", {"Art. 4 Abs. 2 der Richtlinie 93/13/EWG": "Art. 4 Abs. 2 93/13/EWG"}),
    ("Siehe § 13 Abs.\u00a03a Satz\u00a06 SGB\u00a0V.", {"§ 13 Abs.\u00a03a Satz\u00a06 SGB\u00a0V": "§ 13 Abs. 3a S. 6 SGB V"}),
    ("Zu prüfen war § 4 Nr. 12 Buchst. a UStG.", {"§ 4 Nr. 12 Buchst. a UStG": "§ 4 Nr. 12 lit. a UStG"}),
    ("So der BGH, Urteil vom 3. Mai 2018 - III ZR 12/17.", {"BGH, Urteil vom 3. Mai 2018 - III ZR 12/17": "BGH III ZR 12/17"}),
    ("Hinweis des OLG 2 U 88/22 vom Mai.", {"2 U 88/22": "2 U 88/22"}),
    ("Oberlandesgericht, Beschluss vom 7.12.2022, 2 U 88/22.", {"2 U 88/22": "2 U 88/22"}),
    ("Landgericht Kiel, Urteil vom 7.12.2022, 3 O 8/22.", {"Landgericht Kiel, Urteil vom 7.12.2022, 3 O 8/22": "LG Kiel 3 O 8/22"}),
    ("Das LG Hamburg, Urt. v. 1.2.2019 – 324 O 5/18, sah es anders.", {"LG Hamburg, Urt. v. 1.2.2019 – 324 O 5/18": "LG Hamburg 324 O 5/18"}),
    ("So schon OLG Frankfurt am Main NJW-RR 2001, 379.", {"OLG Frankfurt am Main NJW-RR 2001, 379": "OLG Frankfurt am Main NJW-RR 2001, 379"}),
    ("Im BFH-Urteil vom 4. Juni 2003 X R 5/01 heißt es:", {"BFH-Urteil vom 4. Juni 2003 X R 5/01": "BFH X R 5/01"}),
    ("Vgl. Bundesarbeitsgericht, Beschluss vom 7.8.2012 - 1 ABR 3/11.", {"Bundesarbeitsgericht, Beschluss vom 7.8.2012 - 1 ABR 3/11": "BAG 1 ABR 3/11"}),
    ("Der Senat (Az. 5 U 17/20) hat das offengelassen.", {"5 U 17/20": "5 U 17/20"}),
    ("EuGH, Urteil vom 5. Juni 2018, C-210/16, Rn. 30", {"EuGH, Urteil vom 5. Juni 2018, C-210/16": "EuGH C-210/16"}),
    ("So BVerfGE 7, 198 und BVerwGE 55, 369/386.", {"BVerfGE 7, 198": "BVerfGE 7, 198", "BVerwGE 55, 369": "BVerwGE 55, 369"}),
    ("eingetragen beim Amtsgericht Bremen unter HRB 4711", {"Amtsgericht Bremen unter HRB 4711": "AG Bremen HRB 4711"}),
    ("die Nordlicht GmbH (HRB 4711, Amtsgericht Bremen)", {"HRB 4711, Amtsgericht Bremen": "AG Bremen HRB 4711"}),
    ("ebenso Musterfrau, NJW 2019, 55, und § 90 BGB", {"NJW 2019, 55": "NJW 2019, 55", "§ 90 BGB": "§ 90 BGB"}),
    ("Patent EP 2 345 678 B1 und Urkunde UR-Nr. 812/2024 B", {"EP 2 345 678 B1": "EP 2345678 B1", "UR-Nr. 812/2024 B": "UR 812/2024 B"}),
    ("§ 7 Kaufpreis\nDer Kaufpreis nach § 2 dieses Vertrages beträgt 5 EUR.", {}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "cited"), SENTENCES)
def test_a_sentence_cites_just_what_it_cites(sentence: str, cited: dict[str, str]) -> None:
    assert {one.raw: one.canonical for one in extract(sentence)} == cited


def _check_spans(text: str, found: Identifier) -> None:
    for one in found.each():
        assert text[one.start : one.end] == one.raw
        assert found.start <= one.start < one.end <= found.end


def test_every_span_is_what_stands_there_and_parts_lie_within_their_whole() -> None:
    text = "\n".join(sentence for sentence, _ in SENTENCES)
    found = extract(text)
    assert len(found) > len(SENTENCES)
    for one in found:
        _check_spans(text, one)


def test_a_reference_is_found_by_its_section_and_a_decision_by_its_number() -> None:
    found, _ = within(extract("BGH, Urt. v. 1.2.2019 - I ZR 5/18 zu §§ 280 Abs. 1, 3, 281 BGB"), max_chars=256)
    assert [one.canonical for one in found] == [
        "BGH I ZR 5/18",
        "I ZR 5/18",
        "§§ 280 Abs. 1, 3, 281 BGB",
        "§ 280 Abs. 1, 3 BGB",
        "§ 280 BGB",
        "§ 281 BGB",
    ]


def test_a_section_of_a_list_is_written_as_the_list_never_as_a_mere_number() -> None:
    found, dropped = within(extract("§§ 1, 3, 5 BGB"), max_chars=256)
    assert {one.raw for one in found} == {"§§ 1, 3, 5 BGB"}
    assert ([one.canonical for one in found][1:], dropped) == (["§ 1 BGB", "§ 3 BGB", "§ 5 BGB"], 0)
    numbers = ", ".join(str(number) for number in range(1, 200))
    found, dropped = within(extract(f"§§ {numbers} BGB"), max_chars=256)
    assert ([one.raw for one in found][:2], len(found), dropped) == (["§ 1 BGB", "§ 2 BGB"], 199, 1)


@pytest.mark.parametrize(
    "piece",
    [
        "§§ 1-900, ",
        "§ 1 Abs. ",
        "§ 1, ",
        "Art. 1 (1)(a)",
        "§ 1 i.V.m. § 2 und ",
        "§ 1 des Gesetzes über alles und ",
        "BGH, Urteil vom ",
        "BGH NJW 2000, 1, ",
        "Musterfrau, NJW 2000, 1 ",
        "AG Hamburg HRB ",
        "Amtsgericht ",
        "DE89 3704 ",
        "EP 1 234 ",
        "Vertrag",
        "Section 1 of the A ",
        "A-A-",
        "aA1/",
        "VK 1 - ",
        "1.",
        "(1)",
    ],
)
def test_hostile_text_costs_no_more_than_prose(piece: str) -> None:
    text = (piece * (60_000 // len(piece) + 1))[:60_000]
    began = time.process_time()
    extract(text)
    assert time.process_time() - began < 3.0
