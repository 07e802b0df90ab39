"""Files in files: documents of their own, under the ACL of the file that holds them."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage

import sqlalchemy as sa

from shared.access.mirror import replace_object_acl
from shared.db.tables.access import source_object_grants
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.sources import source_objects
from shared.ingest.report import Outcome
from shared.sources.given import GivenDocument, GivenDocuments
from shared.types import Effect, SourceObjectId
from tests.ingest.conftest import CONFIG, World

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def mail(subject: str, *attachments: tuple[str, bytes], body: str = "Anbei wie besprochen.") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "anna@kanzlei.example"
    message["To"] = "ben@kanzlei.example"
    message["Subject"] = subject
    message["Date"] = "Mon, 12 Feb 2024 23:30:00 +0000"
    message["Message-ID"] = "<1@kanzlei.example>"
    message.set_content(body)
    for name, content in attachments:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message


def by_path(world: World):
    return {row.path: row for row in world.rows(sa.select(source_objects))}


def test_an_attachment_is_a_document_of_its_own_linked_to_its_mail(world: World) -> None:
    report = world.ingest({"a/post.eml": mail("Vertrag", ("Anlage K1.txt", b"Der Vertragstext.")).as_bytes()})
    assert {file.path: file.outcome for file in report.files} == {
        "a/post.eml": Outcome.NEW,
        "a/post.eml/Anlage K1.txt": Outcome.NEW,
    }
    rows = by_path(world)
    assert rows["a/post.eml/Anlage K1.txt"].parent_id == rows["a/post.eml"].id
    assert world.scalar(sa.select(sa.func.count()).select_from(documents)) == 2
    assert world.scalar(sa.select(sa.func.count(sa.distinct(documents.c.matter_id)))) == 1


def test_a_mails_day_is_the_one_in_berlin(world: World) -> None:
    world.ingest({"a/post.eml": mail("Vertrag").as_bytes()})
    assert world.scalar(sa.select(documents.c.doc_date)).isoformat() == "2024-02-13"


def test_an_attached_mail_is_found_once_with_what_hangs_on_it(world: World) -> None:
    outer = mail("Weiterleitung")
    outer.add_attachment(mail("Innen", ("Anlage.txt", b"Inhalt der Anlage")))
    report = world.ingest({"a/post.eml": outer.as_bytes()})
    assert [file.path for file in report.files] == [
        "a/post.eml",
        "a/post.eml/Innen.eml",
        "a/post.eml/Innen.eml/Anlage.txt",
    ]


def test_a_broken_attachment_does_not_stop_its_mail(world: World) -> None:
    report = world.ingest({"a/post.eml": mail("Plan", ("plan.dwg", b"AC1032" + bytes(100))).as_bytes()})
    assert [file.outcome for file in report.files] == [Outcome.NEW, Outcome.QUARANTINED]


def test_a_member_named_like_a_path_leads_nowhere(world: World) -> None:
    report = world.ingest({"a/post.eml": mail("Plan", ("../../etc/touch.txt", b"Text der Anlage")).as_bytes()})
    assert report.files[1].path == "a/post.eml/touch.txt"


def test_a_file_called_like_an_attachment_takes_nothing_of_it(world: World) -> None:
    content = mail("Vertrag", ("Anlage.txt", b"Der Vertragstext.")).as_bytes()
    rival = {"a/post.eml!/1/Anlage.txt": "Etwas anderes."}
    first = world.ingest(rival)
    assert [file.outcome for file in first.files] == [Outcome.UNREADABLE]
    assert [file.outcome for file in world.ingest({"a/post.eml": content}).files] == [Outcome.NEW, Outcome.NEW]
    before = by_path(world)
    assert [file.outcome for file in world.ingest(rival).files] == [Outcome.UNREADABLE]
    assert by_path(world) == before
    assert before["a/post.eml/Anlage.txt"].parent_id == before["a/post.eml"].id


def test_an_attachment_whose_path_is_too_long_stops_only_its_mail(world: World) -> None:
    deep = "a/" + "".join(chr(0x4E00 + number) for number in range(780)) + ".eml"
    name = "".join(chr(0x6E00 + number) for number in range(150)) + ".txt"
    report = world.ingest(
        {deep: mail("Vertrag", (name, b"Der Vertragstext.")).as_bytes(), "a/gut.txt": "Ein anderer Text."}
    )
    outcomes = {file.path: file for file in report.files}
    assert outcomes["a/gut.txt"].outcome is Outcome.NEW
    assert (outcomes[deep].outcome, outcomes[deep].error) == (Outcome.QUARANTINED, "LimitExceededError")


def test_an_unchanged_mail_leaves_its_attachments_unchanged(world: World) -> None:
    files = {"a/post.eml": mail("Vertrag", ("Anlage.txt", b"Der Vertragstext.")).as_bytes()}
    world.ingest(files)
    assert [file.outcome for file in world.ingest(files).files] == [Outcome.UNCHANGED, Outcome.UNCHANGED]


def test_attachments_hold_the_acl_of_their_mail_before_anything_of_them_is_there(world: World) -> None:
    content = mail("Vertrag", ("Anlage.txt", b"Der Vertragstext.")).as_bytes()
    source = GivenDocuments("ablage", [GivenDocument("a/post.eml", "a/post.eml", content)], CONFIG)

    def close(source_id):
        assert world.scalar(sa.select(sa.func.count()).select_from(document_versions)) == 0
        with world.engine.begin() as connection:
            [found] = connection.execute(sa.select(source_objects.c.id)).scalars()
            replace_object_acl(connection, SourceObjectId(found), [("user:anna", Effect.ALLOW)], as_of=NOW)

    world.service().ingest(source, after_scan=close)
    rows = by_path(world)
    assert {row.acl_state for row in rows.values()} == {"known"}
    grants = world.rows(sa.select(source_object_grants.c.source_object_id, source_object_grants.c.principal))
    assert {(row.source_object_id, row.principal) for row in grants} == {(row.id, "user:anna") for row in rows.values()}


def test_a_changed_acl_reaches_the_attachments_at_once(world: World) -> None:
    outer = mail("Weiterleitung")
    outer.add_attachment(mail("Innen", ("Anlage.txt", b"Inhalt der Anlage")))
    world.ingest({"a/post.eml": outer.as_bytes()})
    rows = by_path(world)
    for entries in ([("user:anna", Effect.ALLOW), ("user:ben", Effect.DENY)], [("user:ben", Effect.ALLOW)], []):
        with world.engine.begin() as connection:
            replace_object_acl(connection, rows["a/post.eml"].id, entries, as_of=NOW)
        grants = world.rows(sa.select(source_object_grants))
        wanted = {(row.id, principal, effect) for row in rows.values() for principal, effect in entries}
        assert {(grant.source_object_id, grant.principal, grant.effect) for grant in grants} == wanted
        assert {row.acl_state for row in by_path(world).values()} == {"known"}
