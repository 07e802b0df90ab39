"""Parties and their roles, read only where a document says who it is between."""

from __future__ import annotations

import threading
import time

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_parties, document_versions, parties
from shared.db.tables.sources import source_objects
from shared.index.version_facts import load_versions
from shared.ingest.facts import FoundParty
from shared.ingest.metadata.parties import named_in, parties_of
from shared.ingest.metadata.party_names import company_name, name_key
from shared.ingest.parties_rows import write_parties
from shared.ingest.renames import forget_old_names
from shared.text.converted import ConvertedText
from tests.ingest.conftest import World

OPENINGS = [
    (
        (
            "Kaufvertrag\n\nzwischen\n\nder Nordlicht Energie GmbH, Hafenstraße 1, 20457 Hamburg, vertreten durch den "
            'Geschäftsführer Karl Muster,\n- nachfolgend „Verkäuferin" genannt -\n\nund\n\nder Südwind Beteiligungs GmbH & Co. KG, '
            'Am Ring 3, 80331 München\n- nachfolgend "Käuferin" genannt -'
        ),
        [("seller", "Nordlicht Energie GmbH"), ("buyer", "Südwind Beteiligungs GmbH & Co. KG")],
    ),
    (
        (
            "Mietvertrag\nzwischen Frau Erika Mustermann, Gartenweg 2, 24103 Kiel (im Folgenden: Vermieterin)\nund Herrn Dr. Max "
            "Beispiel, Kiel (im Folgenden: Mieter)"
        ),
        [("landlord", "Erika Mustermann"), ("tenant", "Dr. Max Beispiel")],
    ),
    (
        (
            "SHARE PURCHASE AGREEMENT\n\nThis Agreement is made between:\n(1) NORTHWIND LIMITED, a company incorporated in England "
            'under number 123 (the "Seller"); and\n(2) Southgate Holdings, Inc., a Delaware corporation (the "Buyer").'
        ),
        [("seller", "NORTHWIND Ltd"), ("buyer", "Southgate Holdings Inc")],
    ),
    (
        (
            "Geheimhaltungsvereinbarung zwischen der Alpha AG, Bremen (nachfolgend „Alpha“ genannt) und der Beta SE, Bonn "
            "(nachfolgend „Beta“ genannt)"
        ),
        [("party", "Alpha AG"), ("party", "Beta SE")],
    ),
    (
        (
            "Werkvertrag\n\nAuftraggeber: Gamma Bau Gesellschaft mit beschränkter Haftung, Köln\nAuftragnehmer: Stadt Leverkusen, "
            "Rathaus\n"
        ),
        [("customer", "Gamma Bau GmbH"), ("contractor", "Stadt Leverkusen")],
    ),
    (
        (
            "Darlehensvertrag\nzwischen\nHanse Kredit eG, Lübeck\n- Darlehensgeberin -\nund\nHolz & Söhne OHG, Plön\n"
            "- Darlehensnehmerin -\n"
        ),
        [("lender", "Hanse Kredit eG"), ("borrower", "Holz & Söhne OHG")],
    ),
    (
        "LEASE\n\nLandlord: Riverside Estates LLC\nTenant: Corner Shop Ltd.\n",
        [("landlord", "Riverside Estates LLC"), ("tenant", "Corner Shop Ltd")],
    ),
]
COURTS = [
    (
        (
            "Landgericht Hamburg\n12 O 345/21\n\nUrteil\nIm Namen des Volkes\n\nIn dem Rechtsstreit\n\nNordlicht Energie GmbH, vertreten "
            "durch den Geschäftsführer Karl Muster, Hafenstraße 1, 20457 Hamburg,\n\nKlägerin,\n\nProzessbevollmächtigte: Rechtsanwälte "
            "Meier & Kollegen PartG mbB, Hamburg,\n\ngegen\n\nSüdwind e. V., Am Ring 3, 80331 München,\n\nBeklagter,\n\n"
            "Prozessbevollmächtigte: Kanzlei Schulz GmbH,\n\nhat die Zivilkammer 12 für Recht erkannt:"
        ),
        [("claimant", "Nordlicht Energie GmbH"), ("defendant", "Südwind e.V.")],
    ),
    (
        (
            "An das Amtsgericht Kiel\n\nKlage\n\nin der Sache\n\n1. des Herrn Peter Petersen, Deichweg 1, Kiel\n2. der Frau Anna Petersen, "
            "ebenda\n- Kläger -\n\ngegen\n\ndie Wohnbau Nord AG, Werftstraße 9, Kiel\n- Beklagte -\n\nwegen Mietminderung"
        ),
        [("claimant", "Peter Petersen"), ("claimant", "Anna Petersen"), ("defendant", "Wohnbau Nord AG")],
    ),
    (
        (
            "Beschluss\n\nIn dem einstweiligen Verfügungsverfahren\n\nAlpha AG, Bremen\n– Antragstellerin –\n\ngegen\n\nBeta SE, Bonn\n"
            "– Antragsgegnerin –"
        ),
        [("applicant", "Alpha AG"), ("respondent", "Beta SE")],
    ),
    (
        "IN THE HIGH COURT OF JUSTICE\n\nBETWEEN:\n\nNorthwind Ltd\nClaimant\n\n- and -\n\nSouthgate Holdings plc\nDefendant\n",
        [("claimant", "Northwind Ltd"), ("defendant", "Southgate Holdings plc")],
    ),
]
RUNNING = [
    (
        "Mietvertrag\nzwischen der Hafen Immobilien GmbH (Vermieterin) und der Logistik Nord GmbH\n(Mieterin).\n§ 1 Mietsache",
        [("landlord", "Hafen Immobilien GmbH"), ("tenant", "Logistik Nord GmbH")],
    ),
    (
        (
            "Anteilskaufvertrag\nüber alle Anteile an der Werk Stade GmbH, zwischen der Alpha Holding GmbH & Co. KG, Stade, als "
            "Verkäuferin und der Beta AG, Hamburg, eingetragen beim Amtsgericht Hamburg, als Käuferin.\nVorbemerkung\nDie Werk "
            'Stade GmbH (die "Gesellschaft") baut Turbinen.'
        ),
        [("seller", "Alpha Holding GmbH & Co. KG"), ("buyer", "Beta AG")],
    ),
    (
        (
            "Klage\nAn das Landgericht Kiel.\nIn Sachen Hafen Immobilien GmbH, Am Kai 3, Klägerin, Prozessbevollmächtigte: Meier PartG "
            "mbB, gegen Logistik Nord GmbH, Beklagte, wegen Miete."
        ),
        [("claimant", "Hafen Immobilien GmbH"), ("defendant", "Logistik Nord GmbH")],
    ),
    (
        "Urteil. In dem Rechtsstreit Hafen Immobilien GmbH gegen Logistik Nord GmbH hat\ndie Kammer für Recht erkannt:",
        [("claimant", "Hafen Immobilien GmbH"), ("defendant", "Logistik Nord GmbH")],
    ),
    (
        "Replik\nIn dem Rechtsstreit Hafen Immobilien GmbH ./. Logistik Nord GmbH, 12 O 345/21,\nnehmen wir Stellung.",
        [("party", "Hafen Immobilien GmbH"), ("party", "Logistik Nord GmbH")],
    ),
    (
        "Request for Arbitration\nSensors Ltd (Claimant) v Diagnostics Inc (Respondent). ICC Case No. 99417/HX.",
        [("claimant", "Sensors Ltd"), ("respondent", "Diagnostics Inc")],
    ),
    (
        "Vermerk Alpha\n\nAlpha Energie AG ./. Beta Holding.\n",
        [("party", "Alpha Energie AG"), ("party", "Beta Holding")],
    ),
]
VERSUS = [
    (
        "Schriftsatz\n\nIn Sachen Nordlicht GmbH ./. Südwind AG\n\nwird ausgeführt",
        [("party", "Nordlicht GmbH"), ("party", "Südwind AG")],
    ),
    ("Müller ./. Meier Bau GmbH, Az. 12 O 34/21", [("party", "Müller"), ("party", "Meier Bau GmbH")]),
    ("Northwind Ltd v Southgate Inc.", [("claimant", "Northwind Ltd"), ("defendant", "Southgate Inc")]),
]
NONE = [
    "Sehr geehrte Damen und Herren,\n\ndie Nordlicht GmbH hat den Vertrag mit der Südwind AG gekündigt. Der Verkäufer haftet.",
    "Von: anna@nordlicht.example\nAn: Bruno Beispiel\nBetreff: Vertrag\n\nLieber Bruno, der Käufer ist einverstanden.",
    "Der Mieter zahlt die Miete. Der Vermieter überlässt die Sache.\n\nKläger\n\nsind wir nicht.",
    "zwischen Himmel und Erde (nachfolgend „Himmel“ genannt)",
    "Protokoll\n\nTeilnehmer: Karl Muster, Nordlicht GmbH\nKäufer: noch offen\n",
    "Northwind Ltd sells its goods to retail users as customers and to others as agent.",
    "Vertrag zwischen den Parteien\n\n§ 1 Software\nDie Nordlicht GmbH (nachfolgend „Tochter“ genannt) liefert.",
    'This is between the Escrow Agent and SAP AG (the "Thing") alone.',
    "Der Käufer handelt als Verkäufer der Alpha AG, die Beta AG als Mieterin.",
    "see Smith v. Jones and others",
    "",
]  # fmt: skip


def _read(text: str, **changes) -> list[tuple[str, str]]:
    return [(one.role, one.name) for one in parties_of(ConvertedText(text, **changes), title=None)]


@pytest.mark.parametrize(("text", "named"), [*OPENINGS, *COURTS, *RUNNING, *VERSUS])
def test_a_document_names_its_parties_and_their_roles(text: str, named: list[tuple[str, str]]) -> None:
    assert _read(text) == named


@pytest.mark.parametrize("text", NONE)
def test_a_name_or_a_role_elsewhere_makes_no_party(text: str) -> None:
    assert _read(text) == []


@pytest.mark.parametrize(("text", "named"), [*OPENINGS, *COURTS, *RUNNING, *VERSUS])
def test_each_party_stands_where_its_evidence_says(text: str, named: list[tuple[str, str]]) -> None:
    found = parties_of(ConvertedText(text), title=None)
    assert len(found) == len(named)
    assert all(text[one.char_start : one.char_end] == one.text for one in found)


def test_the_fields_of_a_file_count_before_its_text() -> None:
    text = "Rechnung\nVerkäufer: Falsch GmbH\n"
    seller = {"role": "seller", "name": "Nordlicht Energie Gesellschaft mit beschränkter Haftung"}
    assert _read(text, meta={"parties": [seller, {"role": "buyer", "name": "Südwind AG"}]}) == [
        ("seller", "Nordlicht Energie GmbH"),
        ("buyer", "Südwind AG"),
    ]
    people = [{"name": "Dr. Änne Möller", "as": "Klägerin, 101"}, {"name": "Nordwerk AG", "as": None}]
    assert _read("", meta={"parties": people}) == [("claimant", "Dr. Änne Möller"), ("party", "Nordwerk AG")]


def test_a_title_names_parties_only_when_the_text_does_not() -> None:
    title = "Nordlicht GmbH ./. Südwind AG"
    (first, second) = parties_of(ConvertedText("Ein Vermerk.", title=title), title=title)
    assert (first.name, first.char_start, second.name) == ("Nordlicht GmbH", None, "Südwind AG")
    assert [one.name for one in named_in("Nordlicht_GmbH_._._Meier")] == ["Nordlicht GmbH", "Meier"]
    text = "Verkäufer: Alpha AG\nKäufer: Beta SE"
    assert [one.name for one in parties_of(ConvertedText(text), title=title)] == ["Alpha AG", "Beta SE"]


@pytest.mark.parametrize(
    ("written", "usual"),
    [
        ("Nord  GmbH & Co KG", "Nord GmbH & Co. KG"),
        ("Nord GmbH und Co. Kommanditgesellschaft", "Nord GmbH & Co. KG"),
        ("Nord Aktiengesellschaft", "Nord AG"),
        ("Nord e. V.", "Nord e.V."),
        ("NORD LIMITED", "NORD Ltd"),
        ("Nord L.L.C.", "Nord LLC"),
        ("Nord, Inc.", "Nord Inc"),
        ("„Nord“ UG (haftungsbeschränkt)", "Nord“ UG (haftungsbeschränkt)"),
        ("Karl Muster", "Karl Muster"),
    ],
)
def test_a_legal_form_has_one_spelling(written: str, usual: str) -> None:
    assert company_name(written) == usual


def test_all_spellings_of_a_name_have_one_key() -> None:
    spellings = ("Firma Nord GmbH & Co KG", "NORD GmbH & Co. KG", "Nord\u00a0GmbH und Co. KG", "„Nord“ GmbH & Co. KG")
    assert len({name_key(one) for one in spellings}) == 1
    assert name_key("Herr Karl Muster") == name_key("Karl Muster")
    assert name_key("Nord GmbH") != name_key("Nord AG")


@pytest.mark.parametrize(
    "piece", ["A ", "der ", "1. ", "- Kläger -\n", '(the "', "nachfolgend ", "A & ", "GmbH ", "\n", "X ./. "]
)
def test_hostile_text_costs_no_more_than_prose(piece: str) -> None:
    began = time.process_time()
    parties_of(ConvertedText(piece * 20_000), title=piece * 100)
    assert time.process_time() - began < 2.0


DRAFT = "Anteilskaufvertrag (Entwurf)\n\nVerkäufer: Alpha AG, Bremen\nKäufer: Geheime Erwerberin SE, Bonn\n"
FINAL = "Anteilskaufvertrag\n\nVerkäufer: ALPHA  Aktiengesellschaft, Bremen\nKäufer: Offene Erwerberin SE, Bonn\n"


def _stored(world: World) -> dict[str, list[tuple[str, str, str]]]:
    rows = world.rows(
        sa.select(document_versions.c.title, document_parties.c.role, document_parties.c.name, parties.c.name)
        .join(document_parties, document_parties.c.version_id == document_versions.c.id)
        .join(parties, parties.c.id == document_parties.c.party_id)
        .order_by(document_versions.c.title, document_parties.c.role, document_parties.c.name)
    )
    found: dict[str, list[tuple[str, str, str]]] = {}
    for title, *row in rows:
        found.setdefault(title, []).append(tuple(row))
    return found


def test_each_version_of_a_document_has_its_own_parties_in_its_own_spelling(world: World) -> None:
    world.ingest({"a/SPA_Entwurf_v1.txt": DRAFT, "a/SPA_final.txt": FINAL})
    assert world.scalar(sa.select(sa.func.count(sa.distinct(document_versions.c.document_id)))) == 1
    # What both share is a row that says no more than the key.
    assert _stored(world) == {
        "SPA_Entwurf_v1": [
            ("buyer", "Geheime Erwerberin SE", "geheime erwerberin se"),
            ("seller", "Alpha AG", "alpha ag"),
        ],
        "SPA_final": [
            ("buyer", "Offene Erwerberin SE", "offene erwerberin se"),
            ("seller", "ALPHA AG", "alpha ag"),
        ],
    }
    evidence = world.rows(sa.select(document_parties.c.evidence).where(document_parties.c.name == "ALPHA AG"))
    (where,) = evidence[0]
    assert FINAL[where["char_start"] : where["char_end"]] == where["text"] == "ALPHA  Aktiengesellschaft"


def test_the_index_row_of_a_version_names_that_versions_parties_and_its_matters_only(world: World) -> None:
    world.ingest({"a/SPA_Entwurf_v1.txt": DRAFT, "a/SPA_final.txt": FINAL})
    ids = {row.title: row.id for row in world.rows(sa.select(document_versions.c.title, document_versions.c.id))}
    with world.engine.connect() as connection:
        facts = load_versions(connection, list(ids.values()))
    assert list(facts[ids["SPA_final"]].parties) == ["ALPHA AG", "Offene Erwerberin SE"]
    assert list(facts[ids["SPA_Entwurf_v1"]].parties) == ["Alpha AG", "Geheime Erwerberin SE"]


def test_taking_a_file_in_again_changes_no_party_and_new_bytes_bring_their_own(world: World) -> None:
    world.ingest({"a/Vertrag.txt": DRAFT})
    before = _stored(world)
    world.ingest({"a/Vertrag.txt": DRAFT})
    assert _stored(world) == before
    world.ingest({"a/Vertrag.txt": FINAL})
    names = [name for rows in _stored(world).values() for _, name, _ in rows]
    assert sorted(names) == ["ALPHA AG", "Alpha AG", "Geheime Erwerberin SE", "Offene Erwerberin SE"]


def test_parties_in_a_files_name_are_a_versions_only_while_that_name_counts(world: World) -> None:
    world.ingest({"a/Alpha AG ._. Beta SE.txt": "Ein Vermerk."})
    assert [name for rows in _stored(world).values() for _, name, _ in rows] == ["Alpha AG", "Beta SE"]
    # A second file shows the same bytes: who may cite only that one must not read the first one's name.
    world.ingest({"a/Alpha AG ._. Beta SE.txt": "Ein Vermerk.", "a/Vermerk.txt": "Ein Vermerk."})
    assert _stored(world) == {}


def test_a_renamed_file_loses_the_parties_of_its_old_name_at_once(world: World) -> None:
    world.ingest({"a/Alpha AG ._. Beta SE.txt": "Ein Vermerk."})
    (object_id,) = [row.external_id for row in world.rows(sa.select(source_objects.c.external_id))]
    source_id = world.scalar(sa.select(source_objects.c.source_id))
    with world.engine.begin() as connection:
        forget_old_names(connection, source_id, {object_id: "Vermerk.txt"})
    assert _stored(world) == {}


@pytest.mark.parametrize("name", ["Klage Müller ./. Meier", "Alpha AG gegen die Zeit", "Vertrag v2"])
def test_a_title_that_may_mean_something_else_names_nobody(name: str) -> None:
    assert named_in(name) == ()


def test_two_transactions_that_name_the_same_new_party_both_get_it(world: World) -> None:
    world.ingest({"a/eins.txt": "Ein Schreiben.", "a/zwei.txt": "Noch ein Schreiben."})
    ids = [row.id for row in world.rows(sa.select(document_versions.c.id))]
    found = [FoundParty("seller", "Alpha AG", "alpha ag", "Alpha AG", 0, 8)]
    inserted = threading.Event()

    def second() -> None:
        with world.engine.begin() as connection:
            inserted.wait(10)
            write_parties(connection, ids[1], found)

    thread = threading.Thread(target=second)
    thread.start()
    with world.engine.begin() as connection:
        write_parties(connection, ids[0], found)
        inserted.set()
        # The second one waits for this transaction's row.
        thread.join(0.3)
        assert thread.is_alive()
    thread.join(10)
    linked = world.rows(sa.select(document_parties.c.version_id, document_parties.c.party_id))
    assert {row.version_id for row in linked} == set(ids)
    assert len({row.party_id for row in linked}) == 1
