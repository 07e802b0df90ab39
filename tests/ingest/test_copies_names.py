"""A file's name reaches nobody who may cite only another file with the same bytes."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.ingest import ingest_state
from shared.db.tables.sources import source_objects
from shared.errors import EngineUnavailableError
from shared.ingest.facts import UNKNOWN_NAME
from shared.ingest.report import Outcome
from shared.sources.config import ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments
from tests.ingest.conftest import World
from tests.ingest.test_members import mail

TEXT = "Hierzu wird das Folgende festgehalten.\n\nNichts weiter."
# A name from which title, type, date, status, version number and family are read.
TELLING = "Kaufvertrag Geheimhase v3 Entwurf 2024-03-28.txt"
COMPLETE = {"doc_type", "doc_type_ancestors", "language", "doc_date", "identifiers"}
ALL_IN_ONE = SourceConfig(project=ProjectRef(key="nord", title="Projekt Nord"))


def everything_of_versions(world: World) -> str:
    """Return all that SQL holds of versions, documents and chunks, as one text."""
    rows = [
        *world.rows(sa.select(sa.func.to_jsonb(sa.text("document_versions.*"))).select_from(document_versions)),
        *world.rows(sa.select(sa.func.to_jsonb(sa.text("documents.*"))).select_from(documents)),
        *world.rows(sa.select(sa.func.to_jsonb(sa.text("chunks.*"))).select_from(chunks)),
    ]
    return json.dumps([list(row) for row in rows], ensure_ascii=False).casefold()


def version(world: World):
    [found] = world.rows(sa.select(document_versions))
    return found


def test_a_name_is_read_while_it_is_the_only_one(world: World) -> None:
    world.ingest({f"a/{TELLING}": TEXT, f"a/kopie/{TELLING}": TEXT, f"a/{TELLING[:-4]}.md": TEXT})
    found = version(world)
    assert found.title == TELLING.removesuffix(".txt")
    assert found.status == "draft"
    assert found.facts["doc_type"] == "contract.purchase"
    assert found.facts["doc_date"] == {"day": "2024-03-28", "precision": "day", "raw": "2024-03-28"}


@pytest.mark.parametrize("order", [("a/1.txt", f"a/2 {TELLING}"), (f"a/1 {TELLING}", "a/2.txt")])
@pytest.mark.parametrize("at_once", [True, False])
def test_with_a_second_name_everything_is_read_from_the_content(world: World, order, at_once) -> None:
    first, second = order
    if not at_once:
        world.ingest({first: TEXT})
        world.writer.written.clear()
    report = world.ingest({first: TEXT, second: TEXT})
    assert report.files[-1].outcome is Outcome.COPY
    found = version(world)
    assert "geheimhase" not in everything_of_versions(world)
    assert "2024-03" not in everything_of_versions(world)
    assert found.title == "Hierzu wird das Folgende festgehalten."
    assert (found.status, found.status_evidence) == ("unknown", [])
    assert found.facts["named_by"] is None
    [document] = world.rows(sa.select(documents))
    assert (document.title, document.doc_type, document.doc_date) == (found.title, None, None)
    assert found.id in {row.version_id for row in world.writer.written}


def test_the_profile_is_written_in_the_transaction_that_adds_the_name(world: World) -> None:
    world.ingest({f"a/{TELLING}": TEXT})

    def cut_off(connection, cursor, statement, parameters, context, many) -> None:
        if "INSERT INTO chunks" in statement and '"kind": "chunk"' in str(parameters):
            raise EngineUnavailableError("cut off")

    sa.event.listen(world.engine, "before_cursor_execute", cut_off)
    report = world.ingest({f"a/{TELLING}": TEXT, "a/zz.txt": TEXT})
    sa.event.remove(world.engine, "before_cursor_execute", cut_off)
    assert [file.outcome for file in report.files] == [Outcome.UNCHANGED, Outcome.QUARANTINED]
    assert "geheimhase" not in everything_of_versions(world)
    assert world.ingest({f"a/{TELLING}": TEXT, "a/zz.txt": TEXT}).complete


def test_a_file_that_is_gone_still_counts(world: World) -> None:
    world.ingest({f"a/{TELLING}": TEXT})
    with world.engine.begin() as connection:
        connection.execute(sa.update(source_objects).values(deleted_at=sa.func.now()))
    world.ingest({"a/zz.txt": TEXT})
    assert "geheimhase" not in everything_of_versions(world)
    assert version(world).title == "Hierzu wird das Folgende festgehalten."


def test_what_is_told_by_content_stays_whatever_files_are_called(world: World) -> None:
    text = "# Vermerk zur Sitzung\n\nBerlin, den 3. Mai 2023\n\nEntwurf\n\nDer Text."
    world.ingest({"a/1 Rechnung.md": text, "a/2 Urteil final.md": text})
    found = version(world)
    assert (found.title, found.status) == ("Vermerk zur Sitzung", "draft")
    assert found.facts["doc_type"] == "note"
    assert found.facts["doc_date"]["day"] == "2023-05-03"


def test_the_order_in_which_files_come_does_not_matter_later(world: World) -> None:
    files = {"a/1.txt": TEXT, f"a/2 {TELLING}": TEXT}
    world.ingest(files)
    before = version(world)
    world.writer.written.clear()
    report = world.ingest(files)
    assert {file.outcome for file in report.files} == {Outcome.UNCHANGED}
    assert version(world) == before
    assert world.writer.written == []


def test_an_attachment_under_two_names_has_the_title_of_its_content(world: World) -> None:
    one, two = mail("Eins", (TELLING, TEXT.encode())), mail("Zwei", ("Anlage 7.txt", TEXT.encode()))
    world.ingest({"a/eins.eml": one.as_bytes(), "a/zwei.eml": two.as_bytes()})
    assert "geheimhase" not in everything_of_versions(world)
    titles = {row.title for row in world.rows(sa.select(document_versions.c.title))}
    assert titles == {"Eins", "Zwei", "Hierzu wird das Folgende festgehalten."}


def test_the_name_of_the_file_around_an_attachment_is_not_read(world: World) -> None:
    world.ingest({f"a/{TELLING}.eml": mail("Post", ("Anlage 7.txt", TEXT.encode())).as_bytes()})
    assert "geheimhase" not in everything_of_versions(world)


def test_versions_of_one_document_hold_nothing_of_each_others_names(world: World) -> None:
    world.ingest({"a/Plan Entwurf v1.txt": "Ein Plan.", "a/Plan Entwurf v2 2024-02-01.txt": "Ein neuer Plan."})
    assert len(world.rows(sa.select(documents))) == 1
    first, second = world.rows(sa.select(document_versions).order_by(document_versions.c.ordinal))
    assert (first.title, second.title) == ("Plan Entwurf v1", "Plan Entwurf v2 2024-02-01")
    assert "v2" not in json.dumps(first.facts)
    assert first.facts["doc_date"]["day"] is None
    [profile] = world.rows(sa.select(chunks).where(chunks.c.kind == "profile"))
    assert (profile.version_id, "v1" in profile.text) == (second.id, False)


def renamed(world: World, *, text: str) -> None:
    """Give the file another name at the same object, as an external system does, with this content."""
    given = [GivenDocument("4711", "a/Neuer Name.txt", text.encode())]
    world.service().ingest(GivenDocuments("ablage", given, ALL_IN_ONE))


def named(world: World, *, text: str) -> None:
    world.service().ingest(GivenDocuments("ablage", [GivenDocument("4711", f"a/{TELLING}", text.encode())], ALL_IN_ONE))


def test_a_renamed_object_has_the_new_name_only(world: World) -> None:
    named(world, text=TEXT)
    renamed(world, text=TEXT)
    assert version(world).title == "Neuer Name"
    assert "geheimhase" not in everything_of_versions(world)


def test_older_versions_of_a_renamed_object_lose_the_old_name(world: World) -> None:
    named(world, text=TEXT)
    world.writer.written.clear()
    renamed(world, text="Ein anderer Text.")
    old, new = world.rows(sa.select(document_versions).order_by(document_versions.c.ordinal))
    assert (old.title, new.title) == ("Hierzu wird das Folgende festgehalten.", "Neuer Name")
    assert "geheimhase" not in everything_of_versions(world)
    assert {row.version_id for row in world.writer.written} == {old.id, new.id}


def test_two_names_that_become_one_are_read_again(world: World) -> None:
    def ingest(name: str) -> None:
        given = [GivenDocument("1", "a/Vermerk.txt", TEXT.encode()), GivenDocument("2", f"a/b/{name}", TEXT.encode())]
        world.service().ingest(GivenDocuments("ablage", given, ALL_IN_ONE))

    ingest("Anders.txt")
    assert version(world).title == "Hierzu wird das Folgende festgehalten."
    ingest("Vermerk.txt")
    assert version(world).title == "Vermerk"


def test_facts_from_before_names_were_kept_apart_are_read_anew(world: World) -> None:
    files = {f"a/1 {TELLING}": TEXT, "a/2.txt": TEXT}
    world.ingest({f"a/1 {TELLING}": TEXT})
    stored = document_versions.c.facts
    with world.engine.begin() as connection:
        connection.execute(sa.update(document_versions).values(facts=stored.op("-")("named_by")))
    assert world.scalar(sa.select(stored.has_key("named_by"))) is False
    assert version(world).facts.get("named_by") != UNKNOWN_NAME
    world.ingest(files)
    assert "geheimhase" not in everything_of_versions(world)


def test_every_version_has_complete_facts_from_its_first_statement_on(world: World) -> None:
    partial = []

    def look(connection, cursor, statement, parameters, context, many) -> None:
        if "INSERT INTO document_versions" in statement:
            partial.append(statement)
            rows = connection.execute(sa.select(document_versions.c.facts)).scalars().all()
            assert all(set(row) >= COMPLETE for row in rows)

    sa.event.listen(world.engine, "after_cursor_execute", look)
    world.ingest(
        {"a/eins.txt": "Ein Text nach § 543 BGB.", "a/eins_v2.txt": "Zweiter.", "a/post.eml": mail("x").as_bytes()}
    )
    sa.event.remove(world.engine, "after_cursor_execute", look)
    assert len(partial) == 3
    for row in world.rows(sa.select(document_versions)):
        assert set(row.facts) >= COMPLETE
        assert row.facts["doc_date"].keys() == {"day", "precision", "raw"}
        assert (row.title, row.status) == (row.facts["title"], row.facts["status"])


CHAIN = {
    "a/Plan Entwurf v1.txt": "Ein Plan.",
    "a/Plan Entwurf v2.txt": "Ein neuer Plan.",
    "a/Plan final.txt": "Der Plan.",
}


@pytest.mark.parametrize(
    ("stored", "queued"),
    [
        ({"notes": ["something that no row carries"]}, []),
        ({"family": "otherwise"}, []),
        ({"title": "Another title"}, ["Plan Entwurf v1"]),
        ({"doc_type": "note"}, ["Plan Entwurf v1"]),
        ({"language": "en"}, ["Plan Entwurf v1"]),
        ({"doc_date": {"day": "2020-01-01", "precision": "day", "raw": "1.1.2020"}}, ["Plan Entwurf v1"]),
        ({"identifiers": [{"kind": "file", "raw": "x", "canonical": "x"}]}, ["Plan Entwurf v1"]),
    ],
)
def test_facts_that_are_read_otherwise_queue_the_versions_whose_rows_change_and_no_other(
    world: World, stored, queued
) -> None:
    world.ingest(CHAIN)
    world.writer.written.clear()
    facts = document_versions.c.facts.op("||")(sa.cast(stored, document_versions.c.facts.type))
    with world.engine.begin() as connection:
        first = document_versions.c.title == "Plan Entwurf v1"
        connection.execute(sa.update(document_versions).where(first).values(facts=facts))
        # As a new producer of facts does: every object is read again.
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage.in_(["extract_metadata", "relate"])))
    world.ingest(CHAIN)
    titles = {row.id: row.title for row in world.rows(sa.select(document_versions))}
    assert [titles[row.version_id] for row in world.writer.written] == queued


@pytest.mark.parametrize("content", ["# Vermerk\n\nText des Vermerks.", TEXT])
def test_a_renamed_file_that_can_no_longer_be_read_keeps_nothing_of_its_old_name(world: World, content: str) -> None:
    named(world, text=content)
    assert "geheimhase" in everything_of_versions(world)
    given = [GivenDocument("4711", "a/Neuer Name.docx", b"PK\x03\x04 broken")]
    report = world.service().ingest(GivenDocuments("ablage", given, ALL_IN_ONE))
    assert [file.outcome for file in report.files] == [Outcome.QUARANTINED]
    assert "geheimhase" not in everything_of_versions(world)
    found = version(world)
    assert found.title == ("Vermerk" if content.startswith("#") else "Hierzu wird das Folgende festgehalten.")
    assert (found.title, found.facts["named_by"]) == (found.facts["title"], None)
    [document] = world.rows(sa.select(documents))
    assert (document.title, document.doc_date) == (found.title, None)
    assert found.id in {row.version_id for row in world.writer.written}


def test_the_old_name_is_gone_before_anything_is_read_anew(world: World) -> None:
    named(world, text=TEXT)
    looked = []

    def look(_source_id) -> None:
        looked.append(everything_of_versions(world))

    given = [GivenDocument("4711", "a/Neuer Name.txt", TEXT.encode())]
    world.service().ingest(GivenDocuments("ablage", given, ALL_IN_ONE), after_scan=look)
    assert "geheimhase" not in looked[0]
    assert version(world).title == "Neuer Name"


def test_facts_from_before_those_of_the_content_were_kept_are_forgotten_whole(world: World) -> None:
    named(world, text=TEXT)
    with world.engine.begin() as connection:
        connection.execute(sa.update(document_versions).values(facts=document_versions.c.facts.op("-")("content")))
    given = [GivenDocument("4711", "a/Neuer Name.docx", b"PK\x03\x04 broken")]
    world.service().ingest(GivenDocuments("ablage", given, ALL_IN_ONE))
    assert "geheimhase" not in everything_of_versions(world)
    assert version(world).title == "untitled"
