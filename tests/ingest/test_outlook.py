"""Mails as Outlook stores and packs them: the same text, names and threads as the same mail elsewhere."""

from __future__ import annotations

import base64
import io
import struct
from datetime import UTC, datetime

import compressed_rtf
import pytest
import sqlalchemy as sa
from olefile import OleFileIO

from shared.db.tables.catalog import documents
from shared.db.tables.sources import source_objects
from shared.errors import EncryptedFileError, UnreadableFileError
from shared.ingest.convert import eml, msg, tnef
from shared.ingest.convert.formats import ENCRYPTED_OOXML
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.ole_names import top_names
from shared.ingest.convert.ole_writer import Storage, write
from shared.ingest.report import Outcome
from tests.ingest import mails
from tests.ingest.conftest import World
from tests.ingest.mails import (
    BINARY,
    BODY,
    CLASS,
    CODE_PAGE,
    DATA,
    HEADERS,
    HTML,
    IN_REPLY_TO,
    INTEGER,
    LOCALE,
    LONG_NAME,
    MESSAGE_ID,
    METHOD,
    NAME,
    OBJECT,
    RECIPIENT_KIND,
    REFERENCES,
    RTF,
    SENT_FOR,
    SENT_FOR_SMTP,
    SMTP,
    STRING8,
    SUBJECT,
    SUBMITTED,
    UNICODE,
)  # fmt: skip

PDF = b"%PDF-1.4\nein Vertrag"
SENT = datetime(2024, 2, 12, 22, 30, tzinfo=UTC)
INTERNET_CODE_PAGE = 0x3FDE


def members_of(content: bytes) -> list[tuple[str, bytes | None]]:
    return [(member.name, member.content) for member in msg.convert(content).members]


@pytest.mark.parametrize(
    ("codec", "about", "name"),
    [
        (None, {}, "Kündigung Müller – Łódź.pdf"),
        ("cp1252", {CODE_PAGE: 1252}, "Kündigung Müller.pdf"),
        ("cp1250", {CODE_PAGE: 1250}, "Wypowiedzenie Łódź.pdf"),
        ("cp1250", {LOCALE: 1045}, "Wypowiedzenie Łódź.pdf"),
        ("cp1251", {CODE_PAGE: 1251, INTERNET_CODE_PAGE: 65001}, "Договор.pdf"),
        ("cp932", {CODE_PAGE: 932}, "契約書.pdf"),
        ("utf-8", {CODE_PAGE: 1252}, "Kündigung Müller.pdf"),
        ("cp1252", {}, "Kündigung Müller.pdf"),
    ],
)
def test_every_text_of_a_message_is_in_its_code_page(codec: str | None, about: dict[int, int], name: str) -> None:
    person = name.partition(".")[0]
    found = msg.convert(
        mails.msg(
            {SUBJECT: name, BODY: f"Betrifft {name}", SENT_FOR: person, SENT_FOR_SMTP: "a@kanzlei.example", **about},
            mails.attachment(name, PDF, codec=codec),
            recipients=[{NAME: person, SMTP: "b@kanzlei.example", RECIPIENT_KIND: 1}],
            codec=codec,
        )
    )
    meta = found.text.meta
    assert meta["subject"] == found.text.title == name
    assert meta["from"] == f"{person} <a@kanzlei.example>"
    assert meta["to"] == f"{person} <b@kanzlei.example>"
    assert found.text.text.endswith(f"\n\nBetrifft {name}")
    assert [(member.name, member.content) for member in found.members] == [(name, PDF)]


def test_a_message_carries_what_the_same_mail_carries_as_eml() -> None:
    headers = (
        "From: =?utf-8?q?J=C3=BCrgen?= <j@kanzlei.example>\r\nTo: b@kanzlei.example\r\nCc: c@kanzlei.example\r\n"
        "Date: Mon, 12 Feb 2024 23:30:00 +0100\r\nSubject: AW: Vertrag\r\nMessage-ID: <2@kanzlei.example>\r\n"
        "In-Reply-To: <1@kanzlei.example>\r\nReferences: <0@kanzlei.example>\r\n <1@kanzlei.example>\r\n"
    )
    as_eml = eml.convert((headers + "\r\nGuten Tag").encode()).text
    for travelled in (headers, "Microsoft Mail Internet Headers Version 2.0\r\n" + headers):
        stored = msg.convert(
            mails.msg({SUBJECT: "AW: Vertrag", BODY: "Guten Tag", HEADERS: travelled, SUBMITTED: SENT})
        )
        assert stored.text == as_eml


def test_a_message_that_never_travelled_has_its_headers_from_its_properties() -> None:
    found = msg.convert(
        mails.msg(
            {
                SUBJECT: "\x01\x05AW: Vertrag", BODY: "x", SENT_FOR: "Jürgen", SENT_FOR_SMTP: "j@kanzlei.example",
                SUBMITTED: SENT, MESSAGE_ID: "<2@x>", IN_REPLY_TO: "<1@x>", REFERENCES: "<0@x> <1@x>",
            },
            recipients=[
                {NAME: "Ben", SMTP: "b@kanzlei.example", RECIPIENT_KIND: 1},
                {NAME: "d@kanzlei.example", SMTP: "d@kanzlei.example", RECIPIENT_KIND: 1},
                {NAME: "Cem", RECIPIENT_KIND: 2},
                {NAME: "Geheim", RECIPIENT_KIND: 3},
            ],
        )
    )  # fmt: skip
    assert found.text.meta == {
        "from": "Jürgen <j@kanzlei.example>",
        "to": "Ben <b@kanzlei.example>, d@kanzlei.example",
        "cc": "Cem",
        "bcc": "Geheim",
        "date": "Mon, 12 Feb 2024 22:30:00 +0000",
        "subject": "AW: Vertrag",
        "message-id": "<2@x>",
        "in-reply-to": "<1@x>",
        "references": "<0@x> <1@x>",
    }


@pytest.mark.parametrize("ticks", [0, 2**63, 2**64 - 1])
def test_a_time_that_no_calendar_has_is_no_date(ticks: int) -> None:
    whole = mails.msg({SUBJECT: "x", BODY: "y", SUBMITTED: SENT})
    broken = whole.replace(mails.ticks(SENT), struct.pack("<Q", ticks))
    assert broken != whole
    assert "date" not in msg.convert(broken).text.meta


def test_a_message_without_a_date_has_none(world: World) -> None:
    world.ingest({"a/2020-01-01 post.msg": mails.msg({SUBJECT: "x", BODY: "vom 3.4.2021"})})
    world.ingest({"a/post.msg": mails.msg({SUBJECT: "x", BODY: "vom 3.4.2021", SUBMITTED: SENT})})
    dates = [row.doc_date.isoformat() if row.doc_date else None for row in world.rows(sa.select(documents))]
    assert sorted(dates, key=str) == ["2024-02-12", None]
    assert {row.doc_type for row in world.rows(sa.select(documents))} == {"correspondence.mail"}


PACKED = compressed_rtf.compress(rb"{\rtf1\ansi\ansicpg1252 Gr\'fc\'dfe aus RTF\par}")
WRAPPED = compressed_rtf.compress(
    rb"{\rtf1\ansi\ansicpg1252\fromhtml1{\*\htmltag64 <p>}\htmlrtf doppelt\htmlrtf0 Gr\'fc\'dfe aus HTML{\*\htmltag72 </p>}}"
)


@pytest.mark.parametrize(
    ("values", "body"),
    [
        ({BODY: "Klartext", HTML: b"<p>HTML</p>", RTF: PACKED}, "Klartext"),
        ({BODY: " \r\n", HTML: "<p>Grüße</p>".encode(), RTF: PACKED}, "Grüße"),
        ({HTML: "<p>Grüße</p>".encode("cp1252"), INTERNET_CODE_PAGE: 28591}, "Grüße"),
        ({HTML: "<p>Łódź</p>".encode("cp1250"), INTERNET_CODE_PAGE: 1250}, "Łódź"),
        ({HTML: "<p>Grüße</p>"}, "Grüße"),
        ({RTF: PACKED}, "Grüße aus RTF"),
        ({RTF: WRAPPED}, "Grüße aus HTML"),
        ({RTF: compressed_rtf.compress(rb"{\rtf1\ansi Roh\par}", compressed=False)}, "Roh"),
    ],
)
def test_the_body_is_plain_text_before_html_before_rtf(values, body: str) -> None:
    assert msg.convert(mails.msg(values)).text.text == body


def test_a_body_that_cannot_be_unpacked_is_no_empty_body() -> None:
    broken = PACKED[:-4] + b"\0\0\0\0"
    with pytest.raises(UnreadableFileError, match="RTF body"):
        msg.convert(mails.msg({SUBJECT: "x", RTF: broken}))


def inner_message(depth: int = 0) -> Storage:
    below = [mails.attachment("unter", inner_message(depth - 1))] if depth else [mails.attachment("Anlage.pdf", PDF)]
    values = {SUBJECT: f"Weiterleitung {depth}", BODY: f"Text {depth}", CODE_PAGE: 1252}
    return mails.message(values, *below, recipients=[{NAME: "Müller"}], is_inner=True)


def test_a_message_in_a_message_is_one_that_outlook_could_open_with_all_that_hangs_on_it() -> None:
    outer = mails.msg({SUBJECT: "außen", BODY: "x"}, mails.attachment("irgendwie", inner_message(1)))
    [(name, content)] = members_of(outer)
    assert (name, kind_of(content or b"", name)) == ("Weiterleitung 1.msg", "application/vnd.ms-outlook")
    found = msg.convert(content or b"")
    assert (found.text.meta["subject"], found.text.meta["to"]) == ("Weiterleitung 1", "Müller")
    assert found.text.text.endswith("Text 1")
    [below] = found.members
    assert below.name == "Weiterleitung 0.msg"
    assert members_of(below.content or b"") == [("Anlage.pdf", PDF)]
    with OleFileIO(io.BytesIO(content or b"")) as file:
        assert file.root.clsid == "00020D0B-0000-0000-C000-000000000046"
    assert members_of(outer) == [(name, content)]


def test_messages_in_messages_are_documents_each_under_its_own(world: World) -> None:
    report = world.ingest(
        {"a/post.msg": mails.msg({SUBJECT: "außen", BODY: "x"}, mails.attachment("irgendwie", inner_message(0)))}
    )
    assert {file.path: file.outcome for file in report.files if not file.path.endswith(".pdf")} == {
        "a/post.msg": Outcome.NEW,
        "a/post.msg/Weiterleitung 0.msg": Outcome.NEW,
    }
    paths = {row.path for row in world.rows(sa.select(source_objects))}
    assert "a/post.msg/Weiterleitung 0.msg/Anlage.pdf" in paths


def test_an_object_of_another_program_becomes_a_file_of_its_own() -> None:
    word = Storage({"WordDocument": b"x" * 5000, "1Table": b"y" * 10}, class_id=bytes(range(16)))
    [(name, content)] = members_of(
        mails.msg(
            {SUBJECT: "x"}, mails.storage({NAME: "Skizze", METHOD: 6}, head=8, inner={"__substg1.0_3701000D": word})
        )
    )
    assert (name, kind_of(content or b"", name)) == ("Skizze", "application/msword")
    with OleFileIO(io.BytesIO(content or b"")) as file:
        assert file.openstream("WordDocument").read() == b"x" * 5000
        assert file.openstream("1Table").read() == b"y" * 10


def test_attachments_have_names_in_every_case_and_one_that_is_elsewhere_is_noted() -> None:
    found = msg.convert(
        mails.msg(
            {SUBJECT: "x"},
            mails.attachment("kurz~1.pdf", b"1", number=0x3704),
            mails.storage({0x370E: "image/gif", DATA: b"2"}, head=8),
            mails.storage({0x3703: ".xyz", DATA: b"3"}, head=8),
            mails.storage({LONG_NAME: "auf dem Server.docx", METHOD: 2}, head=8),
        )
    )
    assert [member.name for member in found.members] == ["kurz~1.pdf", "part 2.gif", "part 3.xyz"]
    assert found.text.meta["attachments_elsewhere"] == ["auf dem Server.docx"]


ENTITY = (
    b"Content-Type: multipart/mixed; boundary=i\r\n\r\n"
    b"--i\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nDer signierte Text.\r\n"
    b"--i\r\nContent-Type: application/pdf; name=Vertrag.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + base64.b64encode(PDF)
    + b"\r\n--i--\r\n"
)


@pytest.mark.parametrize("way", ["multipart", "opaque"])
def test_a_signed_message_is_unwrapped(way: str) -> None:
    if way == "multipart":
        kind = "IPM.Note.SMIME.MultipartSigned"
        content = (
            b"Content-Type: multipart/signed; protocol=x; boundary=s\r\n\r\n--s\r\n" + ENTITY
            + b"\r\n--s\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nabc\r\n--s--\r\n"
        )  # fmt: skip
    else:
        kind, content = "IPM.Note.SMIME", mails.signed(ENTITY)
    found = msg.convert(mails.msg({CLASS: kind, SUBJECT: "Signiert"}, mails.attachment("smime.p7m", content)))
    assert found.text.text == "Subject: Signiert\n\nDer signierte Text."
    assert [(member.name, member.content) for member in found.members] == [("Vertrag.pdf", PDF)]
    assert found.text.meta["signed"] == "present, not checked"


def test_a_signed_message_that_cannot_be_unwrapped_keeps_its_file() -> None:
    found = msg.convert(mails.msg({CLASS: "IPM.Note.SMIME", SUBJECT: "x"}, mails.attachment("smime.p7m", b"kaputt")))
    assert [(member.name, member.content) for member in found.members] == [("smime.p7m", b"kaputt")]


def test_an_encrypted_message_says_that_it_is_encrypted() -> None:
    sealed = mails.msg({CLASS: "IPM.Note.SMIME", SUBJECT: "x"}, mails.attachment("smime.p7m", mails.sealed()))
    with pytest.raises(EncryptedFileError, match="decrypted copy"):
        msg.convert(sealed)


def test_a_message_is_told_by_its_top_and_not_by_what_hangs_on_it() -> None:
    locked = write(Storage({"EncryptedPackage": b"x" * 5000, "EncryptionInfo": b"y"}))
    assert kind_of(locked, "a.docx") == ENCRYPTED_OOXML
    for size in (0, 8_000_000):
        holder = mails.msg({SUBJECT: "x"}, mails.attachment("a.docx", locked), mails.attachment("b.bin", b"b" * size))
        assert kind_of(holder, "a.msg") == "application/vnd.ms-outlook"
        assert "__properties_version1.0" in top_names(holder)
    document = write(Storage({"WordDocument": b"x"}, {"ObjectPool": mails.message({SUBJECT: "innen"})}))
    assert kind_of(document, "a.doc") == "application/msword"


# winmail.dat


def packed(*more: tuple[int, bytes], **values: object) -> bytes:
    return mails.tnef((0x69007, struct.pack("<II", 1252, 0)), *more)


def file_of(name: bytes, content: bytes) -> list[tuple[int, bytes]]:
    return [(0x69002, b"\x01\x00" + bytes(12)), (0x18010, name + b"\0"), (0x6800F, content)]


RECIPIENT = {NAME: (STRING8, "Jürgen\0".encode("cp1252")), RECIPIENT_KIND: (INTEGER, struct.pack("<i", 1))}
WINMAIL = packed(
    (0x18004, "Kündigung\0".encode("cp1252")),
    (0x38005, struct.pack("<7H", 2024, 2, 12, 23, 30, 0, 1)),
    (0x69004, struct.pack("<I", 1) + mails.tnef_values(RECIPIENT)),
    (0x69003, mails.tnef_values({RTF: (BINARY, PACKED), MESSAGE_ID: (UNICODE, "<1@x>\0".encode("utf-16-le"))})),
    *file_of("Kündigung.pdf".encode("cp1252"), PDF),
    (0x69005, mails.tnef_values({LONG_NAME: (STRING8, "Kündigung Müller.pdf\0".encode("cp1252"))})),
    *file_of(b"klein.gif", b"GIF89a"),
)


def test_a_winmail_is_a_mail_with_files() -> None:
    assert kind_of(WINMAIL, "winmail.dat") == "application/vnd.ms-tnef"
    found = tnef.convert(WINMAIL)
    assert found.text.text.endswith("\n\nGrüße aus RTF")
    assert found.text.meta == {
        "subject": "Kündigung", "to": "Jürgen", "date": "12 Feb 2024 23:30:00", "message-id": "<1@x>",
    }  # fmt: skip
    assert [(member.name, member.content) for member in found.members] == [
        ("Kündigung Müller.pdf", PDF),
        ("klein.gif", b"GIF89a"),
    ]


def test_a_mail_in_a_winmail_is_a_winmail_under_its_own_subject() -> None:
    within = mails.tnef_values({DATA: (OBJECT, bytes(16) + WINMAIL)})
    [member] = tnef.convert(packed((0x69002, b"\x01\x00" + bytes(12)), (0x69005, within))).members
    assert (member.name, member.content) == ("Kündigung.dat", WINMAIL)


@pytest.mark.parametrize("kind", ["application/ms-tnef", "application/octet-stream"])
@pytest.mark.parametrize(("own", "shown"), [("", "Grüße aus RTF"), ("Eigener Text", "Eigener Text")])
def test_a_winmail_at_a_mail_is_unpacked_in_its_place(own: str, shown: str, kind: str) -> None:
    mail = (
        "Subject: x\nFrom: a@kanzlei.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        f"--b\nContent-Type: text/plain\n\n{own}\n--b\nContent-Type: {kind}; name=winmail.dat\n"
        f"Content-Transfer-Encoding: base64\n\n{base64.encodebytes(WINMAIL).decode()}--b--\n"
    )
    found = eml.convert(mail.encode())
    assert [member.name for member in found.members] == ["Kündigung Müller.pdf", "klein.gif"]
    assert found.text.text == f"From: a@kanzlei.example\nSubject: x\n\n{shown}"


def test_a_broken_winmail_at_a_mail_stays_a_file() -> None:
    mail = (
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText\n"
        b"--b\nContent-Type: application/ms-tnef; name=winmail.dat\n\n\x78\x9f\x3e\x22kaputt\n--b--\n"
    )
    assert [member.name for member in eml.convert(mail).members] == ["winmail.dat"]
