"""Which document and which version a file is."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents, matters
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest.families import Link, latest_final, position_of
from shared.ingest.report import Outcome
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.types import VersionId, VersionStatus
from tests.ingest.conftest import World

D, F, E, U = VersionStatus.DRAFT, VersionStatus.FINAL, VersionStatus.EXECUTED, VersionStatus.UNKNOWN


def chain_of(world: World) -> list[str]:
    """Return the paths of all versions in the order of their chain."""
    rows = world.rows(
        sa.select(source_objects.c.path)
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .order_by(document_versions.c.document_id, document_versions.c.ordinal)
    )
    return [row.path for row in rows]


def spa(stand: str) -> str:
    return f"Anteilskaufvertrag\n\nzwischen den Parteien, Fassung {stand}."


def count(world: World, table) -> int:
    return world.scalar(sa.select(sa.func.count()).select_from(table))


def test_drafts_beside_each_other_are_versions_of_one_document_in_the_order_of_their_marks(world: World) -> None:
    names = ["SPA_Entwurf_v10.docx", "SPA_Entwurf_v2.docx", "SPA_final.txt", "SPA_unterzeichnet_2024-03-28.txt"]
    world.ingest({f"a/{name}": spa(name) for name in [*names, "SPA_Entwurf_v1.txt"]})
    assert count(world, documents) == 1
    assert chain_of(world) == [
        "a/SPA_Entwurf_v1.txt",
        "a/SPA_Entwurf_v2.docx",
        "a/SPA_Entwurf_v10.docx",
        "a/SPA_final.txt",
        "a/SPA_unterzeichnet_2024-03-28.txt",
    ]
    [document] = world.rows(sa.select(documents))
    [executed] = world.rows(sa.select(document_versions).where(document_versions.c.status == "executed"))
    assert document.latest_final_version_id == executed.id
    assert executed.status_evidence == [{"kind": "file_name", "value": "unterzeichnet"}]
    profiles = world.rows(sa.select(chunks.c.version_id).where(chunks.c.kind == "profile"))
    assert [row.version_id for row in profiles] == [executed.id]


def test_names_without_marks_or_in_other_folders_stay_apart(world: World) -> None:
    world.ingest(
        {
            "a/Vertrag.txt": spa("1"),
            "a/Vertrag_v2.txt": spa("2"),
            "a/sub/Vertrag_v3.txt": spa("3"),
            "a/Protokoll_2024-01-05.txt": "Protokoll der ersten Sitzung",
            "a/Protokoll_2024-02-05.txt": "Protokoll der zweiten Sitzung",
            "b/Vertrag_v2.txt": spa("4"),
        }
    )
    assert count(world, documents) == 6


def test_drafts_of_letters_of_different_days_stay_apart(world: World) -> None:
    world.ingest({f"a/{day} Schreiben Entwurf.txt": f"Schreiben vom {day}" for day in ("2024-01-05", "2024-02-05")})
    assert count(world, documents) == 2


def test_two_signed_papers_are_two_documents(world: World) -> None:
    world.ingest(
        {
            "a/Protokoll_unterzeichnet_2024-01-05.txt": "Protokoll der ersten Sitzung",
            "a/Protokoll_unterzeichnet_2024-02-05.txt": "Protokoll der zweiten Sitzung",
        }
    )
    assert count(world, documents) == 2


def test_a_file_that_goes_back_to_older_bytes_shows_the_older_version_and_makes_none(world: World) -> None:
    for text in ("Erste Fassung.", "Zweite Fassung."):
        world.ingest({"a/Brief.txt": text})
    report = world.ingest({"a/Brief.txt": "Erste Fassung."})
    assert [file.outcome for file in report.files] == [Outcome.REFRESHED]
    assert (count(world, documents), count(world, document_versions)) == (1, 2)


def test_no_version_number_is_burnt_by_what_is_known_already(world: World) -> None:
    files = {"a/eins.txt": "Eins.", "a/kopie.txt": "Eins."}
    world.ingest(files)
    world.ingest(files)
    world.ingest({**files, "a/zwei.txt": "Zwei."})
    assert sorted(row.seq for row in world.rows(sa.select(document_versions.c.seq))) == [1, 2]


def test_a_title_follows_the_latest_final_version_and_the_profile_goes_along(world: World) -> None:
    world.ingest({"a/Plan_Entwurf.md": "# Alter Plan\n\nText des Plans."})
    world.writer.written.clear()
    world.ingest({"a/Plan_Entwurf.md": "# Alter Plan\n\nText des Plans.", "a/Plan_final.md": "# Neuer Plan\n\nText."})
    assert world.scalar(sa.select(documents.c.title)) == "Neuer Plan"
    assert {row.version_id for row in world.writer.written} == {
        row.id for row in world.rows(sa.select(document_versions.c.id))
    }


MOVED = SourceConfig(
    project=ProjectRef(key="nord", title="Projekt Nord"),
    places=(PlaceRule(prefix="a", matter=MatterRef(key="B-1", title="Akte B")),),
)


def test_a_folder_that_is_assigned_to_another_matter_takes_its_documents_along(world: World) -> None:
    files = {"a/Brief.txt": "Der Brief."}
    world.ingest(files)
    [before] = world.rows(sa.select(documents))
    world.ingest(files, config=MOVED)
    [after] = world.rows(sa.select(documents))
    assert after.id == before.id
    assert after.matter_id == world.scalar(sa.select(matters.c.id).where(matters.c.key == "B-1"))


def test_a_document_that_others_show_as_well_stays_where_they_are(world: World) -> None:
    world.ingest({"a/Brief.txt": "Der Brief."})
    config = SourceConfig(
        project=ProjectRef(key="nord", title="Projekt Nord"),
        matter=MatterRef(key="A-1", title="Akte A"),
    )
    world.ingest({"Brief.txt": "Der Brief."}, name="zweite", config=config)
    assert (count(world, documents), count(world, version_sources)) == (1, 2)
    world.ingest({"a/Brief.txt": "Der Brief."}, config=MOVED)
    assert (count(world, documents), count(world, version_sources)) == (2, 2)
    assert count(world, documents.join(matters)) == 2
    keys = world.rows(sa.select(matters.c.key).join(documents, documents.c.matter_id == matters.c.id))
    assert {row.key for row in keys} == {"A-1", "B-1"}


def link(number: int, status: VersionStatus, *parts: int) -> Link:
    from uuid import UUID

    return Link(VersionId(UUID(int=number)), status, parts or None)


def test_executed_stands_for_a_document_before_final_before_the_newest() -> None:
    assert latest_final([link(1, E), link(2, F), link(3, D)]).int == 1
    assert latest_final([link(1, F), link(2, F), link(3, D)]).int == 2
    assert latest_final([link(1, D), link(2, U)]).int == 2


def test_a_draft_goes_before_what_is_further_and_otherwise_to_the_end() -> None:
    chain = [link(1, D, 1), link(2, D, 3), link(3, F), link(4, E)]
    assert position_of(link(9, D, 2), chain) == 1
    assert position_of(link(9, D, 4), chain) == 2
    assert position_of(link(9, D), chain) == 2
    assert position_of(link(9, F), chain) == 3
    assert position_of(link(9, E), chain) == 4
