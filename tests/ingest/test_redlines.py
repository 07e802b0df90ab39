"""Redlines: recognised by their own signs, tied to a version by their words, and never what a document shows."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.ingest import ingest_state
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest.families import Link, latest_final
from shared.ingest.relations.redline_signs import likeness, signs_of
from shared.text.converted import ConvertedText
from shared.types import VersionId, VersionStatus
from tests.ingest.conftest import World
from tests.ingest.test_decisions import docx, run
from tests.ingest.test_relations import STAFF, allow_staff, deny_document, in_every_order, seen, versions, viewer

BODY = " ".join(f"Die Klausel {n} regelt die Pflichten der Parteien im Fall {n}." for n in range(1, 12))
OLD = f"{BODY} Der Kaufpreis beträgt 50.000 EUR."
NEW = f"{BODY} Der Kaufpreis beträgt 75.000 EUR."


def changed() -> bytes:
    """Return a Word file that tracks the changes from the old to the new text."""
    mark = 'w:author="Weber" w:date="2024-02-01T10:00:00Z"'
    return docx(
        run(f"{BODY} Der Kaufpreis beträgt ")
        + f"<w:del {mark}><w:r><w:delText>50.000</w:delText></w:r></w:del><w:ins {mark}>{run('75.000')}</w:ins>"
        + run(" EUR.")
    )


CLEAN_OLD, CLEAN_NEW = docx(run(OLD)), docx(run(NEW))
FILES = {"a/SPA_v1.docx": CLEAN_OLD, "a/SPA_v2.docx": CLEAN_NEW, "a/SPA_v2_redline.docx": changed()}


def state(world: World, path: str):
    [row] = world.rows(
        sa.select(document_versions)
        .join(version_sources, version_sources.c.version_id == document_versions.c.id)
        .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
        .where(source_objects.c.path == path)
    )
    return row


def test_a_redline_is_of_the_version_whose_changes_it_shows_in_every_order(world: World) -> None:
    for folder in in_every_order(world, {path.removeprefix("a/"): body for path, body in FILES.items()}):
        redline, clean = f"{folder}/SPA_v2_redline.docx", f"{folder}/SPA_v2.docx"
        found = state(world, redline)
        assert (found.redline_of, found.is_comparison) == (versions(world)[clean], True)
        assert ("redline_of", redline, clean) in seen(world, of=[redline])
        latest = sa.select(documents.c.latest_final_version_id).where(documents.c.id == found.document_id)
        assert world.scalar(latest) == versions(world)[clean]


def test_a_draft_that_tracks_its_changes_is_a_state_of_its_own(world: World) -> None:
    world.ingest({"a/SPA_v1.docx": CLEAN_OLD, "a/SPA_v2.docx": changed()})
    draft = state(world, "a/SPA_v2.docx")
    assert (draft.redline_of, draft.is_comparison) == (versions(world)["a/SPA_v1.docx"], False)
    assert world.scalar(sa.select(documents.c.latest_final_version_id)) == draft.id


def test_a_comparison_under_another_name_is_found_by_its_words(world: World) -> None:
    both = f"{BODY} Der Kaufpreis beträgt 50.000 75.000 EUR."
    world.ingest({"a/Kaufvertrag.txt": NEW, "a/Vergleich zu gestern.txt": both, "a/Zeuge.txt": "Ein anderer Text."})
    assert ("redline_of", "a/Vergleich zu gestern.txt", "a/Kaufvertrag.txt") in seen(world)


def test_a_settlement_is_no_comparison_of_anything(world: World) -> None:
    world.ingest({"a/Vergleich.txt": f"Vergleich\n\n{' '.join(f'Punkt {n}' for n in range(40))}", "a/Klage.txt": OLD})
    assert (
        world.rows(sa.select(document_versions.c.redline_of).where(document_versions.c.redline_of.is_not(None))) == []
    )
    assert seen(world) == set()


def test_nothing_is_compared_across_folders_and_matters(world: World) -> None:
    world.ingest({"a/SPA_v2_redline.docx": changed(), "a/sub/SPA_v2.docx": CLEAN_NEW, "b/SPA_v2.docx": CLEAN_NEW})
    assert state(world, "a/SPA_v2_redline.docx").redline_of is None


@pytest.mark.parametrize("wall", ["a/Entwurf neu redline.docx", "a/SPA_v2.docx"])
def test_a_redline_is_shown_to_those_who_see_both(world: World, wall: str) -> None:
    world.ingest({"a/SPA_v2.docx": CLEAN_NEW, "a/Entwurf neu redline.docx": changed()})
    allow_staff(world)
    anna = viewer("user:anna", STAFF)
    pair = ("redline_of", "a/Entwurf neu redline.docx", "a/SPA_v2.docx")
    assert seen(world, anna) == {pair}
    deny_document(world, wall, "user:anna")
    assert seen(world, anna) == set()
    assert seen(world, viewer("user:ben", STAFF)) == {pair}


def test_a_second_run_changes_nothing(world: World) -> None:
    world.ingest(FILES)
    before = world.rows(sa.select(document_versions).order_by(document_versions.c.seq))
    world.writer.written.clear()
    with world.engine.begin() as connection:
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "relate"))
    world.ingest(FILES)
    assert world.rows(sa.select(document_versions).order_by(document_versions.c.seq)) == before
    assert world.writer.written == []


def test_a_comparison_stands_for_a_document_only_alone() -> None:
    from uuid import UUID

    ids = [VersionId(UUID(int=n)) for n in range(3)]
    draft, executed = VersionStatus.DRAFT, VersionStatus.EXECUTED
    chain = [Link(ids[0], draft, None), Link(ids[1], executed, None, is_comparison=True)]
    assert latest_final(chain) == ids[0]
    assert latest_final(chain[1:]) == ids[1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SPA_v2_redline.docx", True),
        ("SPA Vergleichsfassung v2.pdf", True),
        ("SPA_compare_v1_v2.pdf", True),
        ("Vertrag (Änderungen).docx", True),
        ("SPA_markup.docx", True),
        ("Vergleichsmiete.docx", False),
        ("Vertrag.docx", False),
        ("Delta-Werke GmbH.pdf", True),
    ],
)
def test_what_a_name_says_makes_a_candidate_and_no_more(name: str, expected: bool) -> None:
    assert (signs_of(ConvertedText("x"), name) is not None) is expected
    assert likeness(ConvertedText(OLD), "Etwas ganz anderes. " * 30) is None


def test_a_few_words_are_like_everything_and_so_like_nothing() -> None:
    assert likeness(ConvertedText("Der Vertrag."), "Der Vertrag.") is None
