"""Clauses: found by their headings, kept with every version, in the index only with a final or executed one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.index.rows import version_rows
from shared.index.version_facts import load_versions
from shared.ingest.metadata.clauses import MAX_CLAUSES, find_clauses
from shared.ontology.tree import load_ontology
from shared.settings import load_settings
from shared.types import ChunkKind
from tests.ingest.conftest import World

TREE = load_ontology(None)
GERMAN = """Mietvertrag

zwischen der Nordlicht Immobilien GmbH und der Backhaus Meer KG

§ 1 Mietgegenstand
Vermietet werden die Räume im Erdgeschoss nebst Lager, insgesamt 240 qm.

§ 2 Mietzeit
Das Mietverhältnis beginnt am 1. Februar 2024 und läuft zehn Jahre.

§ 3 Kündigung
(1) Die ordentliche Kündigung ist während der Laufzeit ausgeschlossen.
(2) Das Recht zur Kündigung aus wichtigem Grund bleibt unberührt.

§ 4 Sonstige Abreden
Die Parteien haben über die Außenflächen gesprochen.
"""
ENGLISH = """LICENSE AGREEMENT

1. Definitions
In this Agreement the following terms have the meaning given to them here.

8. Limitation of Liability
8.1 General
Neither party is liable for indirect loss of any kind whatsoever.
8.2 Liability Cap
The total liability of each party shall not exceed EUR 1,000,000.

9. Miscellaneous
This Agreement is governed by the laws of England.
"""


def found(text: str) -> list[tuple[str, str]]:
    return [(one.clause_type, one.locus) for one in find_clauses(text, TREE)]


def test_sections_with_a_known_type_are_clauses() -> None:
    assert found(GERMAN) == [
        ("use", "§ 1 Mietgegenstand"),
        ("term.duration", "§ 2 Mietzeit"),
        ("term.termination", "§ 3 Kündigung"),
    ]
    assert found(ENGLISH) == [
        ("boilerplate.definitions", "1. Definitions"),
        ("liability.limitation", "8. Limitation of Liability"),
        ("boilerplate", "9. Miscellaneous"),
    ]


def test_a_clause_lies_in_the_text_where_it_says() -> None:
    clause = find_clauses(GERMAN, TREE)[2]
    text = GERMAN[clause.char_start : clause.char_end]
    assert text.startswith("§ 3 Kündigung\n(1)")
    assert text.endswith("bleibt unberührt.")


@pytest.mark.parametrize(
    "text",
    [
        "12.03.2024 haben wir telefoniert und die Haftung besprochen.\n",
        "1. wir kündigen hiermit den Vertrag\n2. wir fordern Zahlung\n",
        "Die Haftung nach § 7 ist ausgeschlossen.\n§ 7 gilt entsprechend für die Kündigung und alles weitere.\n",
        "",
    ],
)
def test_numbers_and_sentences_are_no_headings(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    ["§ 1 Haftung\n" * 40_000, "§" * 300_000, "1." * 200_000, "A" * 400_000, "IV. Haftung\n" + "(" * 300_000],
)
def test_a_hostile_text_is_read_in_time(text: str) -> None:
    started = time.process_time()
    assert len(find_clauses(text, TREE)) <= MAX_CLAUSES
    assert time.process_time() - started < 5


def kinds(world: World) -> dict[str, list[str]]:
    rows = world.rows(sa.select(chunks).where(chunks.c.kind == ChunkKind.CLAUSE).order_by(chunks.c.ordinal))
    versions = {row.id: row.status for row in world.rows(sa.select(document_versions))}
    listed: dict[str, list[str]] = {}
    for row in rows:
        listed.setdefault(versions[row.version_id], []).append(row.clause_type)
    return listed


def in_the_index(world: World) -> dict[str, list[str]]:
    ids = [row.id for row in world.rows(sa.select(document_versions))]
    with world.engine.connect() as connection:
        facts = load_versions(connection, ids)
    return {
        str(one.status): [
            row.body["clause_type"]
            for row in version_rows(one, contextualize=False, max_identifier_bytes=256)
            if row.body["chunk_kind"] == ChunkKind.CLAUSE
        ]
        for one in facts.values()
    }


def test_a_drafts_clauses_are_kept_and_only_a_finals_are_indexed(world: World) -> None:
    world.ingest(
        {
            "a/Mietvertrag_Entwurf_v1.txt": GERMAN,
            "a/Mietvertrag_final.txt": GERMAN + "\n§ 5 Gerichtsstand\nKiel ist Gerichtsstand.\n",
        }
    )
    drafted = ["use", "term.duration", "term.termination"]
    assert kinds(world) == {"draft": drafted, "final": [*drafted, "dispute.jurisdiction"]}
    assert in_the_index(world) == {"draft": [], "final": [*drafted, "dispute.jurisdiction"]}


def test_a_clause_row_has_its_place_and_is_far_from_the_body(world: World) -> None:
    world.ingest({"a/Mietvertrag_final.txt": GERMAN})
    rows = world.rows(sa.select(chunks).where(chunks.c.kind == ChunkKind.CLAUSE).order_by(chunks.c.ordinal))
    assert [(row.ordinal, row.locus) for row in rows] == [
        (1000, "§ 1 Mietgegenstand"),
        (1001, "§ 2 Mietzeit"),
        (1002, "§ 3 Kündigung"),
    ]
    assert all(GERMAN[row.char_start : row.char_end] == row.text for row in rows)


def test_what_is_no_contract_has_no_clauses(world: World) -> None:
    world.ingest({"a/Vermerk.txt": GERMAN.replace("Mietvertrag", "Vermerk")})
    assert kinds(world) == {}


def test_another_tree_reads_the_files_anew_and_the_same_one_does_not(world: World, tmp_path: Path) -> None:
    files = {"a/Mietvertrag_final.txt": GERMAN}
    world.ingest(files)
    written = len(world.writer.written)
    world.ingest(files)
    assert len(world.writer.written) == written
    tree = {
        "name": "Kanzlei",
        "version": "1",
        "doc_types": [
            {"id": "miete", "labels": {"de": "Miete", "en": "Lease"}, "words": ["mietvertrag"], "clauses": True}
        ],
        "clause_types": [{"id": "zeit", "labels": {"de": "Zeit", "en": "Time"}, "words": ["mietzeit"]}],
    }
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    own = load_settings({"KI_DATABASE__URL": world.settings.database.url or "", "KI_ONTOLOGY__PATH": str(path)})
    world.ingest(files, settings=own)
    [document] = world.rows(sa.select(documents))
    assert (document.doc_type, document.doc_type_ancestors) == ("miete", ["miete"])
    assert kinds(world) == {"final": ["zeit"]}
