"""What is gone at its source is gone for everybody; what a scan merely misses is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from shared.db.tables.access import source_object_grants
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.ingest import held_deletions, index_outbox
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest.report import IngestReport, Outcome
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.given import GivenDocument, GivenDocuments
from shared.sources.local_fs import LocalFolder
from tests.ingest.conftest import CONFIG, World
from tests.ingest.test_members import mail


def whole(world: World, files: dict[str, bytes | str], **options) -> IngestReport:
    """Ingest these files as all that the source has."""
    given = [
        GivenDocument(path, path, body if isinstance(body, bytes) else body.encode()) for path, body in files.items()
    ]
    return world.service().ingest(GivenDocuments("ablage", given, CONFIG, is_whole=True), **options)


def texts(count: int, *, start: int = 0) -> dict[str, str]:
    return {f"a/{number:03}.txt": f"Schreiben Nummer {number}." for number in range(start, start + count)}


def gone(world: World) -> set[str]:
    return {row.path for row in world.rows(sa.select(source_objects)) if row.deleted_at is not None}


def unseen(world: World) -> set[str]:
    """Return the titles of versions that lie nowhere."""
    active = (
        sa.select(sa.literal(1))
        .select_from(version_sources.join(source_objects, source_objects.c.id == version_sources.c.source_object_id))
        .where(version_sources.c.version_id == document_versions.c.id, source_objects.c.deleted_at.is_(None))
        .exists()
    )
    return {row.title for row in world.rows(sa.select(document_versions.c.title).where(~active))}


def versions(world: World) -> dict[str, tuple[str, str]]:
    return {row.sha256: (str(row.id), str(row.document_id)) for row in world.rows(sa.select(document_versions))}


def test_a_file_that_a_whole_scan_does_not_find_is_buried_and_the_index_hears_of_it(world: World) -> None:
    whole(world, {"a/x.txt": "Erstes Schreiben.", "a/y.txt": "Zweites Schreiben."})
    world.writer.written.clear()
    report = whole(world, {"a/y.txt": "Zweites Schreiben."})
    assert (report.counts()["found"], report.counts()["deleted"], report.counts()["held"]) == (1, 1, 0)
    assert gone(world) == {"a/x.txt"}
    assert unseen(world) == {"x"}
    assert len(world.writer.written) == 1


def test_a_selection_of_documents_says_nothing_about_the_others(world: World) -> None:
    world.ingest({"a/x.txt": "Erstes Schreiben.", "a/y.txt": "Zweites Schreiben."})
    assert world.ingest({"a/y.txt": "Zweites Schreiben."}).counts()["deleted"] == 0
    assert gone(world) == set()


def test_what_lies_in_a_file_goes_with_it_and_comes_back_with_it(world: World) -> None:
    outer = mail("Weiterleitung")
    outer.add_attachment(mail("Innen", ("Anlage.txt", b"Inhalt der Anlage")))
    files = {"a/post.eml": outer.as_bytes(), "a/y.txt": "Ein Schreiben."}
    whole(world, files)
    before = {row.path: row.id for row in world.rows(sa.select(source_objects))}
    assert len(before) == 4
    assert whole(world, {"a/y.txt": "Ein Schreiben."}).counts()["deleted"] == 1
    assert gone(world) == set(before) - {"a/y.txt"}
    world.writer.written.clear()
    whole(world, files)
    assert gone(world) == set()
    assert unseen(world) == set()
    assert {row.path: row.id for row in world.rows(sa.select(source_objects))} == before
    assert len({row.version_id for row in world.writer.written}) == 3


def test_a_file_that_comes_back_with_other_bytes_is_the_next_version_of_its_document(world: World) -> None:
    whole(world, {"a/x.txt": "Erste Fassung.", "a/y.txt": "Ein Schreiben."})
    whole(world, {"a/y.txt": "Ein Schreiben."})
    whole(world, {"a/x.txt": "Zweite Fassung.", "a/y.txt": "Ein Schreiben."})
    assert gone(world) == set()
    rows = world.rows(
        sa.select(document_versions.c.ordinal)
        .join(version_sources, version_sources.c.version_id == document_versions.c.id)
        .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
        .where(source_objects.c.path == "a/x.txt")
        .order_by(document_versions.c.ordinal)
    )
    assert [row.ordinal for row in rows] == [1, 2]


def test_an_attachment_that_a_changed_mail_no_longer_has_is_gone(world: World) -> None:
    first = mail("Vertrag", ("Anlage 1.txt", b"Der erste Text."), ("Anlage 2.txt", b"Der zweite Text."))
    whole(world, {"a/post.eml": first.as_bytes()})
    whole(world, {"a/post.eml": mail("Vertrag", ("Anlage 1.txt", b"Der erste Text.")).as_bytes()})
    assert gone(world) == {"a/post.eml/Anlage 2.txt"}
    whole(world, {"a/post.eml": mail("Vertrag", body="Ohne Anlage.").as_bytes()})
    assert gone(world) == {"a/post.eml/Anlage 1.txt", "a/post.eml/Anlage 2.txt"}
    whole(world, {"a/post.eml": first.as_bytes()})
    assert gone(world) == set()
    assert unseen(world) == set()


def test_an_attachment_that_was_taken_off_does_not_come_back_with_its_mail(world: World) -> None:
    first = mail("Vertrag", ("Anlage 1.txt", b"Der erste Text."), ("Anlage 2.txt", b"Der zweite Text."))
    second = mail("Vertrag", ("Anlage 1.txt", b"Der erste Text."))
    other = {"a/y.txt": "Ein Schreiben."}
    for files in (
        {"a/post.eml": first.as_bytes()},
        {"a/post.eml": second.as_bytes()},
        {},
        {"a/post.eml": second.as_bytes()},
    ):
        whole(world, {**other, **files})
    assert gone(world) == {"a/post.eml/Anlage 2.txt"}


def test_a_copy_that_is_still_there_keeps_its_version(world: World) -> None:
    whole(world, {"a/x.txt": "Ein Schreiben.", "a/y.txt": "Ein Schreiben."})
    world.writer.written.clear()
    whole(world, {"a/y.txt": "Ein Schreiben."})
    assert gone(world) == {"a/x.txt"}
    assert unseen(world) == set()
    assert world.writer.written == []


def test_a_scan_that_loses_more_than_half_of_twenty_is_held_until_three_say_the_same(world: World) -> None:
    whole(world, texts(20))
    for scan in (1, 2):
        report = whole(world, texts(9))
        assert (report.counts()["deleted"], report.counts()["held"]) == (0, 11)
        assert report.settled.held is not None
        assert (report.settled.held.scans, report.settled.held.known) == (scan, 20)
        assert report.settled.held.paths == tuple(sorted(set(texts(20)) - set(texts(9))))
        assert gone(world) == set()
        assert [row.scans for row in world.rows(sa.select(held_deletions))] == [scan]
    report = whole(world, texts(9))
    assert (report.counts()["deleted"], report.counts()["held"]) == (11, 0)
    assert len(gone(world)) == 11
    assert world.rows(sa.select(held_deletions)) == []


@pytest.mark.parametrize(("known", "left"), [(20, 10), (19, 1), (21, 11)])
def test_half_of_twenty_or_less_and_most_of_nineteen_are_believed_at_once(world: World, known: int, left: int) -> None:
    whole(world, texts(known))
    assert whole(world, texts(left)).counts()["deleted"] == known - left


def test_a_scan_that_reports_none_at_all_is_held_however_few_there_were(world: World) -> None:
    whole(world, texts(2))
    assert [whole(world, {}).counts()["deleted"] for _ in range(3)] == [0, 0, 2]


def test_a_scan_that_misses_others_begins_the_count_anew(world: World) -> None:
    whole(world, texts(20))
    assert [whole(world, texts(left)).counts()["deleted"] for left in (9, 9, 8, 8)] == [0, 0, 0, 0]
    assert [row.scans for row in world.rows(sa.select(held_deletions))] == [2]


def test_a_scan_that_finds_everything_again_ends_the_hold(world: World) -> None:
    whole(world, texts(20))
    whole(world, texts(5))
    whole(world, texts(20))
    assert world.rows(sa.select(held_deletions)) == []
    assert whole(world, texts(5)).settled.held.scans == 1


def test_an_administrator_may_say_that_it_is_gone(world: World) -> None:
    whole(world, texts(20))
    assert whole(world, {}, allow_deletes=True).counts()["deleted"] == 20


def test_a_source_that_proves_each_deletion_is_believed(world: World) -> None:
    class Proving(GivenDocuments):
        asked: list[str]

        def proves_gone(self, external_ids) -> bool:
            self.asked = sorted(external_ids)
            return True

    whole(world, texts(20))
    source = Proving("ablage", [], CONFIG, is_whole=True)
    assert world.service().ingest(source).counts()["deleted"] == 20
    assert source.asked == sorted(texts(20))


def test_nothing_is_buried_at_or_below_a_place_that_cannot_be_read(world: World) -> None:
    class Hiding(GivenDocuments):
        def scan(self):
            yield FoundObject("c/da.txt", "c/da.txt", "da.txt")
            yield ScanProblem("a/zu", "the folder cannot be read")
            yield ScanProblem("b/einzeln.txt", "the file cannot be read")

    whole(
        world, {path: path for path in ("a/zu/1.txt", "a/zu 2/1.txt", "a/zu/tief/2.txt", "b/einzeln.txt", "c/da.txt")}
    )
    documents = [GivenDocument("c/da.txt", "c/da.txt", b"c/da.txt")]
    report = world.service().ingest(Hiding("ablage", documents, CONFIG, is_whole=True))
    assert gone(world) == {"a/zu 2/1.txt"}
    assert report.counts()["unreadable"] == 2


def test_a_scan_that_breaks_off_buries_nothing(world: World) -> None:
    class Breaking(GivenDocuments):
        def scan(self):
            yield FoundObject("a/000.txt", "a/000.txt", "000.txt")
            raise OSError("the share is gone")

    whole(world, texts(3))
    with pytest.raises(OSError, match="share"):
        world.service().ingest(Breaking("ablage", [], CONFIG, is_whole=True))
    assert gone(world) == set()


def test_what_another_run_has_seen_meanwhile_is_not_gone(world: World) -> None:
    class Slow(GivenDocuments):
        def scan(self):
            yield from super().scan()
            # While this one is listing, another run finds a file that was not there before, and one that it misses.
            whole(world, {"a/000.txt": "Schreiben Nummer 0.", "a/neu.txt": "Neu.", "a/001.txt": "Schreiben Nummer 1."})

    whole(world, texts(3))
    [document] = [GivenDocument("a/000.txt", "a/000.txt", b"Schreiben Nummer 0.")]
    world.service().ingest(Slow("ablage", [document], CONFIG, is_whole=True))
    assert gone(world) == {"a/002.txt"}


def test_a_folder_within_the_source_decides_about_itself_only(world: World, tmp_path: Path) -> None:
    root = tmp_path / "ablage"
    for name in ("a/1.txt", "a/2.txt", "b/1.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    world.service().ingest(LocalFolder("ablage", root, CONFIG))
    (root / "a/2.txt").unlink()
    (root / "b/1.txt").unlink()
    assert world.service().ingest(LocalFolder("ablage", root / "a", CONFIG, root=root)).counts()["deleted"] == 1
    assert gone(world) == {"a/2.txt"}
    world.service().ingest(LocalFolder("ablage", root / "a/1.txt", CONFIG, root=root))
    assert gone(world) == {"a/2.txt"}


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """A taken-in folder with two letters and a mail, one letter known to Anna alone."""
    root = tmp_path / "ablage"
    (root / "a").mkdir(parents=True)
    (root / "a" / "Vertrag.txt").write_text("Der Vertrag über die Lieferung.")
    (root / "a" / "Brief.txt").write_text("Ein Brief.")
    (root / "a" / "post.eml").write_bytes(mail("Post", ("Anlage.txt", b"Inhalt der Anlage")).as_bytes())
    world.service().ingest(LocalFolder("ablage", root, CONFIG))
    with world.engine.begin() as connection:
        connection.execute(
            sa.update(source_objects).where(source_objects.c.path == "a/Vertrag.txt").values(acl_state="known")
        )
        object_id = connection.execute(
            sa.select(source_objects.c.id).where(source_objects.c.path == "a/Vertrag.txt")
        ).scalar_one()
        connection.execute(
            sa.insert(source_object_grants).values(source_object_id=object_id, principal="user:anna", effect="allow")
        )
    return root


def test_a_renamed_file_keeps_its_row_its_version_its_document_and_its_acl(world: World, folder: Path) -> None:
    ids, known = {row.path: row.id for row in world.rows(sa.select(source_objects))}, versions(world)
    (folder / "a" / "Vertrag.txt").rename(folder / "a" / "Liefervertrag.txt")
    report = world.service().ingest(LocalFolder("ablage", folder, CONFIG))
    assert (report.counts()["moved"], report.counts()["deleted"]) == (1, 0)
    now = {row.path: row for row in world.rows(sa.select(source_objects))}
    assert "a/Vertrag.txt" not in now
    assert now["a/Liefervertrag.txt"].id == ids["a/Vertrag.txt"]
    assert (now["a/Liefervertrag.txt"].name, now["a/Liefervertrag.txt"].acl_state) == ("Liefervertrag.txt", "known")
    assert [row.principal for row in world.rows(sa.select(source_object_grants))] == ["user:anna"]
    assert versions(world) == known
    titles = {row.title for row in world.rows(sa.select(documents.c.title))}
    assert "Liefervertrag" in titles
    assert "Vertrag" not in titles


def test_a_file_moved_to_another_matter_takes_its_document_along(world: World, folder: Path) -> None:
    known = versions(world)
    (folder / "b").mkdir()
    (folder / "a" / "Brief.txt").rename(folder / "b" / "Brief.txt")
    assert world.service().ingest(LocalFolder("ablage", folder, CONFIG)).counts()["moved"] == 1
    assert versions(world) == known
    matter = world.scalar(
        sa.text("select m.key from matters m join documents d on d.matter_id = m.id where d.title = 'Brief'")
    )
    assert matter == "B-1"


def test_a_renamed_mail_takes_its_attachments_along(world: World, folder: Path) -> None:
    known = versions(world)
    (folder / "a" / "post.eml").rename(folder / "a" / "Schriftverkehr.eml")
    world.service().ingest(LocalFolder("ablage", folder, CONFIG))
    rows = {row.path: row for row in world.rows(sa.select(source_objects))}
    assert "a/Schriftverkehr.eml/Anlage.txt" in rows
    assert not [path for path in rows if "post.eml" in path]
    assert rows["a/Schriftverkehr.eml/Anlage.txt"].external_id == "a/Schriftverkehr.eml!/1/Anlage.txt"
    assert versions(world) == known
    assert gone(world) == set()


def test_a_path_that_was_used_before_keeps_the_row_that_it_had(world: World, folder: Path) -> None:
    kept = (folder / "a" / "Vertrag.txt").read_text()
    (folder / "a" / "Vertrag.txt").unlink()
    world.service().ingest(LocalFolder("ablage", folder, CONFIG))
    row = world.rows(sa.select(source_objects.c.id).where(source_objects.c.path == "a/Vertrag.txt"))[0]
    (folder / "a" / "Brief.txt").rename(folder / "a" / "Vertrag.txt")
    assert kept != (folder / "a" / "Vertrag.txt").read_text()
    report = world.service().ingest(LocalFolder("ablage", folder, CONFIG))
    assert (report.counts()["moved"], report.counts()["deleted"]) == (0, 1)
    [now] = world.rows(sa.select(source_objects).where(source_objects.c.path == "a/Vertrag.txt"))
    # Its ACL is there again before anything of the new bytes is.
    assert (now.id, now.deleted_at, now.acl_state) == (row.id, None, "known")


def test_a_second_name_of_a_file_is_a_copy_not_a_move(world: World, folder: Path) -> None:
    os.link(folder / "a" / "Brief.txt", folder / "a" / "Zweitname.txt")
    report = world.service().ingest(LocalFolder("ablage", folder, CONFIG))
    assert (report.counts()["moved"], report.counts()["copy"]) == (0, 1)


def test_a_move_without_a_file_id_keeps_version_and_document(world: World) -> None:
    whole(world, {"a/x.txt": "Ein Schreiben.", "a/y.txt": "Ein anderes."})
    known = versions(world)
    report = whole(world, {"a/z.txt": "Ein Schreiben.", "a/y.txt": "Ein anderes."})
    assert {file.path: file.outcome for file in report.files}["a/z.txt"] is Outcome.COPY
    assert versions(world) == known
    assert gone(world) == {"a/x.txt"}
    assert unseen(world) == set()
    # Buried before the copy was known, taken back when it was.
    last = {row.version_id: row.id for row in world.rows(sa.select(index_outbox).order_by(index_outbox.c.id))}
    assert world.rows(sa.select(document_versions.c.id).where(document_versions.c.indexed_at.is_(None))) == []
    assert last
