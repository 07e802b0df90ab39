"""Files through the whole pipeline, on a real database."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents, matters, projects
from shared.db.tables.content import chunks
from shared.db.tables.ingest import ingest_state, quarantine
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest.report import Outcome
from shared.text.converted import ConvertedText
from tests.ingest.conftest import World


def outcomes(report):
    return {file.path: file.outcome for file in report.files}


def test_a_text_becomes_a_document_with_version_observation_chunks_and_profile(world: World) -> None:
    report = world.ingest({"a/Vermerk.txt": "Vermerk zur Kündigung des Mietvertrags nach § 543 BGB.\n" * 60})
    assert report.counts()["new"] == 1
    assert report.complete
    [document] = world.rows(sa.select(documents))
    [version] = world.rows(sa.select(document_versions))
    assert document.latest_final_version_id == version.id
    assert (document.title, document.language) == ("Vermerk", "de")
    assert document.project_id == world.scalar(sa.select(projects.c.id).where(projects.c.key == "nord"))
    assert document.matter_id == world.scalar(sa.select(matters.c.id).where(matters.c.key == "A-1"))
    assert {"kind": "statute", "raw": "§ 543 BGB", "canonical": "§ 543 BGB"} in document.identifiers
    rows = world.rows(sa.select(chunks).order_by(chunks.c.ordinal))
    assert [row.ordinal for row in rows] == [-1, 0, 1, 2, 3]
    text = ConvertedText.from_json(
        world.store.get(world.scalar(sa.select(sa.column("storage_key")).select_from(sa.table("artifacts"))))
    ).text
    assert all(text[row.char_start : row.char_end] == row.text for row in rows[1:])
    assert [row.version_seq for row in world.writer.written] == [version.seq]
    assert version.indexed_at is not None


def test_an_unchanged_object_costs_no_work(world: World) -> None:
    files = {"a/eins.txt": "Erstes Schreiben in der Sache.", "a/zwei.txt": "Zweites Schreiben in der Sache."}
    world.ingest(files)
    before = world.rows(sa.select(ingest_state).order_by(ingest_state.c.source_object_id, ingest_state.c.stage))
    written = len(world.writer.written)

    class Refusing:
        def convert(self, *_, **__):
            raise AssertionError("an unchanged file was converted")

    report = world.ingest(files, converter=Refusing())
    assert set(outcomes(report).values()) == {Outcome.UNCHANGED}
    assert world.rows(sa.select(ingest_state).order_by(ingest_state.c.source_object_id, ingest_state.c.stage)) == before
    assert len(world.writer.written) == written


def test_new_bytes_at_a_path_are_the_next_version_and_the_old_one_stays_readable(world: World) -> None:
    world.ingest({"a/Brief.txt": "Erste Fassung des Briefs."})
    report = world.ingest({"a/Brief.txt": "Zweite Fassung des Briefs."})
    assert outcomes(report) == {"a/Brief.txt": Outcome.CHANGED}
    versions = world.rows(sa.select(document_versions).order_by(document_versions.c.ordinal))
    assert [version.ordinal for version in versions] == [1, 2]
    [document] = world.rows(sa.select(documents))
    assert document.latest_final_version_id == versions[1].id
    assert world.scalar(sa.select(sa.func.count()).select_from(version_sources)) == 2
    profiles = world.rows(sa.select(chunks).where(chunks.c.kind == "profile"))
    assert [profile.version_id for profile in profiles] == [versions[1].id]


def test_the_profile_that_moves_is_reported_stale_for_the_version_it_leaves(world: World) -> None:
    world.ingest({"a/Brief.txt": "Erste Fassung des Briefs."})
    [old] = world.rows(sa.select(chunks).where(chunks.c.kind == "profile"))
    world.writer.written.clear()
    world.ingest({"a/Brief.txt": "Zweite Fassung des Briefs."})
    stale = {row.version_id: row.stale_chunk_ids for row in world.writer.written if row.stale_chunk_ids}
    assert stale == {old.version_id: [old.id]}
    assert len({row.version_id for row in world.writer.written}) == 2


def test_the_same_bytes_in_one_matter_are_one_version_seen_twice(world: World) -> None:
    report = world.ingest({"a/Brief.txt": "Der Brief.", "a/Ablage/Kopie.txt": "Der Brief."})
    assert sorted(outcomes(report).values()) == [Outcome.COPY, Outcome.NEW]
    assert world.scalar(sa.select(sa.func.count()).select_from(document_versions)) == 1
    assert world.scalar(sa.select(sa.func.count()).select_from(version_sources)) == 2


def test_the_same_bytes_in_two_matters_are_two_documents(world: World) -> None:
    report = world.ingest({"a/Brief.txt": "Der Brief.", "b/Brief.txt": "Der Brief.", "c/Brief.txt": "Der Brief."})
    assert set(outcomes(report).values()) == {Outcome.NEW}
    assert world.scalar(sa.select(sa.func.count()).select_from(documents)) == 3
    assert world.scalar(sa.select(sa.func.count(sa.distinct(documents.c.matter_id)))) == 3


def test_a_broken_file_is_quarantined_with_its_reason_and_stops_no_other(world: World) -> None:
    report = world.ingest({"a/plan.dwg": b"AC1032" + bytes(200), "a/leer.txt": "", "a/zz.txt": "Der letzte Brief."})
    found = {file.path: (file.outcome, file.error) for file in report.files}
    assert found == {
        "a/plan.dwg": (Outcome.QUARANTINED, "UnsupportedFileError"),
        "a/leer.txt": (Outcome.QUARANTINED, "EmptyFileError"),
        "a/zz.txt": (Outcome.NEW, None),
    }
    reasons = {row.error: row.reason for row in world.rows(sa.select(quarantine))}
    assert "image/vnd.dwg" in reasons["UnsupportedFileError"]


def test_a_file_that_was_mended_leaves_quarantine(world: World) -> None:
    world.ingest({"a/Brief.txt": ""})
    report = world.ingest({"a/Brief.txt": "Jetzt steht etwas darin."})
    assert outcomes(report) == {"a/Brief.txt": Outcome.NEW}
    assert world.rows(sa.select(quarantine)) == []


def test_an_object_that_came_back_has_its_old_row(world: World) -> None:
    world.ingest({"a/Brief.txt": "Der Brief."})
    before = world.rows(sa.select(source_objects.c.id))
    with world.engine.begin() as connection:
        connection.execute(sa.update(source_objects).values(deleted_at=sa.func.now()))
    report = world.ingest({"a/Brief.txt": "Der Brief."})
    assert outcomes(report) == {"a/Brief.txt": Outcome.UNCHANGED}
    assert world.rows(sa.select(source_objects.c.id)) == before
    assert world.scalar(sa.select(source_objects.c.deleted_at)) is None
