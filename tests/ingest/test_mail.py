"""Mails as people send them: every part once, names and dates as written, what is signed is read."""

from __future__ import annotations

import base64
import time
from email.message import EmailMessage

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import documents
from shared.db.tables.sources import source_objects
from shared.errors import EncryptedFileError, LimitExceededError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert import cms, eml, mbox
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.mime import MAX_DEPTH, MAX_PARTS
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.convert.signed_data import unwrap
from shared.ingest.metadata.dates import mail_date
from shared.ingest.report import Outcome
from tests.ingest import mails
from tests.ingest.conftest import World

PDF = b"%PDF-1.4\nein Vertrag"
ENTITY = (
    b"Content-Type: multipart/mixed; boundary=i\r\n\r\n"
    b"--i\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nDer signierte Text.\r\n"
    b"--i\r\nContent-Type: application/pdf; name=Vertrag.pdf\r\nContent-Disposition: attachment; filename=Vertrag.pdf\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(PDF) + b"\r\n--i--\r\n"
)


def multipart(kind: str, *parts: str, head: str = "Subject: x\nFrom: a@kanzlei.example") -> bytes:
    body = "".join(f"--b\n{part}\n" for part in parts)
    return f"{head}\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=b\n\n{body}--b--\n".encode()


def opaque(content: bytes, name: str = "smime.p7m") -> bytes:
    return (
        b"Subject: Signiert\r\nFrom: a@kanzlei.example\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: application/pkcs7-mime; smime-type=signed-data; name=" + name.encode() + b"\r\n"
        b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(content)
    )


def members_of(content: bytes) -> list[tuple[str, bytes | None]]:
    return [(member.name, member.content) for member in eml.convert(content).members]


def body_of(content: bytes) -> str:
    text = eml.convert(content).text
    return next((text.text[p.char_start : p.char_end] for p in text.pages if p.locus == "body"), "")


def test_what_is_signed_is_read_and_the_signature_is_no_file() -> None:
    signed = multipart(
        "signed; protocol=application/pkcs7-signature",
        ENTITY.decode(),
        "Content-Type: application/pkcs7-signature; name=smime.p7s\nContent-Transfer-Encoding: base64\n\nTUlJ",
    )
    found = eml.convert(signed)
    assert body_of(signed) == "Der signierte Text."
    assert [(member.name, member.content) for member in found.members] == [("Vertrag.pdf", PDF)]
    assert found.text.meta["signed"] == "present, not checked"


@pytest.mark.parametrize("layers", [1, 3])
def test_a_mail_inside_of_its_signature_is_read(layers: int) -> None:
    entity = ENTITY
    for _ in range(layers - 1):
        wrapped = base64.encodebytes(mails.signed(entity)).replace(b"\n", b"\r\n")
        entity = (
            b"Content-Type: application/pkcs7-mime; name=smime.p7m\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            + wrapped
        )
    found = eml.convert(opaque(mails.signed(entity)))
    assert found.text.text.endswith("Subject: Signiert\n\nDer signierte Text.")
    assert [(member.name, member.content) for member in found.members] == [("Vertrag.pdf", PDF)]
    assert found.text.meta["signed"] == "present, not checked"


def test_an_encrypted_mail_says_that_it_is_encrypted() -> None:
    with pytest.raises(EncryptedFileError, match="store a decrypted copy"):
        eml.convert(opaque(mails.sealed()))


def test_a_mail_that_is_encrypted_with_pgp_says_so() -> None:
    mail = multipart(
        "encrypted",
        "Content-Type: application/pgp-encrypted\n\nVersion: 1",
        "Content-Type: application/octet-stream\n\nx",
    )
    with pytest.raises(EncryptedFileError, match="store a decrypted copy"):
        eml.convert(mail)


@pytest.mark.parametrize(
    "kind", ["multipart/mixed", "multipart/mixed; boundary=fehlt", "multipart/alternative", "text"]
)
def test_a_mail_without_the_lines_that_divide_it_is_a_text(kind: str) -> None:
    assert body_of(f"Subject: x\nFrom: a@x.example\nContent-Type: {kind}\n\nGuten Tag".encode()) == "Guten Tag"


def test_a_signed_mail_that_cannot_be_unwrapped_keeps_what_it_came_with() -> None:
    found = eml.convert(opaque(b"kaputt"))
    assert found.text.meta["subject"] == "Signiert"
    assert [(member.name, member.content) for member in found.members] == [("smime.p7m", b"kaputt")]


def test_a_signature_that_is_somebodys_file_stays_one() -> None:
    mail = multipart(
        "mixed",
        "Content-Type: text/plain\n\nAnbei.",
        "Content-Type: application/pdf; name=Klage.pdf\n\n%PDF-1.4",
        "Content-Type: application/pkcs7-signature; name=Klage.pdf.p7s\nContent-Transfer-Encoding: base64\n\nTUlJ",
    )
    assert [name for name, _ in members_of(mail)] == ["Klage.pdf", "Klage.pdf.p7s"]


def test_a_signed_file_at_a_mail_is_a_file_and_an_encrypted_one_stops_nothing_else() -> None:
    def part(content: bytes, name: str) -> str:
        coded = base64.encodebytes(content).decode()
        return f"Content-Type: application/pkcs7-mime; name={name}\nContent-Transfer-Encoding: base64\n\n{coded}"

    mail = multipart(
        "mixed",
        "Content-Type: text/plain\n\nAnbei.",
        part(mails.signed(PDF), "Vertrag.pdf.p7m"),
        part(mails.sealed(), "smime.p7m"),
    )
    assert [name for name, _ in members_of(mail)] == ["Vertrag.pdf.p7m", "smime.p7m"]
    assert body_of(mail) == "Anbei."


@pytest.mark.parametrize(
    "armoured",
    [
        mails.signed(b"Guten Tag"),
        base64.encodebytes(mails.signed(b"Guten Tag")),
        b"-----BEGIN PKCS7-----\n" + base64.encodebytes(mails.signed(b"Guten Tag")) + b"-----END PKCS7-----\n",
        mails.signed(mails.signed(b"Guten Tag")),
    ],
    ids=["binary", "base64", "pem", "twice"],
)
def test_a_signed_text_is_read_in_whichever_way_it_is_written(armoured: bytes) -> None:
    assert kind_of(armoured, "Brief.txt.p7m") == "application/pkcs7-mime"
    found = cms.convert(armoured)
    assert (found.text.text, found.text.meta["signed"]) == ("Guten Tag", "present, not checked")


def test_a_content_that_was_signed_in_pieces_is_put_together_quickly() -> None:
    """As programs write it that do not know the length when they begin."""
    head = bytes.fromhex("3080 06092a864886f70d010702 a080 3080 020101 3100 3080 06092a864886f70d010701 a080 2480")
    piece = b"\x04\x82\x03\xe8" + b"Guten Tag " * 100
    content = head + piece * 20_000 + bytes(2) + bytes(4) + b"\x31\x00" + bytes(6)
    began = time.monotonic()
    assert unwrap(content) == b"Guten Tag " * 2_000_000
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("content", "ending"),
    [(PDF, "pdf"), (b'<?xml version="1.0"?><rechnung/>', "xml"), (mails.msg({mails.SUBJECT: "x"}), "msg")],
)
def test_a_signed_file_is_a_file_in_its_signature(content: bytes, ending: str) -> None:
    found = cms.convert(mails.signed(content))
    assert [(member.name, member.content) for member in found.members] == [(f"signed content.{ending}", content)]


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (mails.sealed(), EncryptedFileError, "encrypted"),
        (mails.signed(None), UnsupportedFileError, "signature of another file"),
        (mails.signed(None, certificates=True), UnsupportedFileError, "certificates only"),
    ],
)
def test_a_cms_file_without_anything_to_read_says_what_it_is(content: bytes, error: type, words: str) -> None:
    assert kind_of(content, "x.p7m") == "application/pkcs7-mime"
    with pytest.raises(error, match=words):
        cms.convert(content)


def test_signatures_around_signatures_end_at_a_limit() -> None:
    content = b"Guten Tag"
    for _ in range(12):
        content = mails.signed(content)
    with pytest.raises(LimitExceededError, match="10 deep"):
        cms.convert(content)


def test_a_pdf_in_the_middle_of_a_text_is_an_attachment_and_the_text_is_whole() -> None:
    mail = multipart(
        "mixed",
        "Content-Type: text/plain\n\nVor dem Bild.",
        "Content-Type: application/pdf; name=Scan.pdf\nContent-Disposition: inline; filename=Scan.pdf\n\n%PDF-1.4",
        "Content-Type: text/plain\n\nNach dem Bild.",
    )
    assert body_of(mail) == "Vor dem Bild.\n\nNach dem Bild."
    assert members_of(mail) == [("Scan.pdf", b"%PDF-1.4")]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (
            multipart("mixed", "Content-Type: application/pdf\n\n%PDF-1.4\n\x00\x01\x02\x03" + "\x00" * 900),
            "message/rfc822",
        ),
        (mails.signed(PDF), "application/pkcs7-mime"),
        (b"Kopfzeile des Druckers\n" + PDF, "application/pdf"),
    ],
    ids=["mail", "signed", "printed"],
)
def test_a_file_that_holds_a_pdf_is_not_one(content: bytes, kind: str) -> None:
    assert kind_of(content, "x") == kind


def test_a_pdf_within_the_html_of_a_mail_is_kept_and_the_text_counts_once() -> None:
    mixed = (
        "Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: text/html\n\n<p>Guten Tag</p>\n"
        "--m\nContent-Type: application/pdf\nContent-Disposition: inline\n\n%PDF-1.4\n--m--"
    )
    mail = multipart("alternative", "Content-Type: text/plain\n\nGuten Tag", mixed)
    assert body_of(mail) == "Guten Tag"
    assert members_of(mail) == [("part 1.pdf", b"%PDF-1.4")]


@pytest.mark.parametrize(
    ("declared", "markup", "codec", "text"),
    [
        ("", '<meta charset="iso-8859-2"><p>Łódź</p>', "iso-8859-2", "Łódź"),
        ("", "<p>Grüße</p>", "cp1252", "Grüße"),
        ("; charset=iso-8859-2", '<meta charset="windows-1251"><p>Łódź</p>', "iso-8859-2", "Łódź"),
    ],
)
def test_the_letters_of_a_page_are_in_the_code_of_its_mail_or_its_own(
    declared: str, markup: str, codec: str, text: str
) -> None:
    mail = f"Subject: x\nFrom: a@x.example\nContent-Type: text/html{declared}\n\n{markup}"
    assert body_of(mail.encode(codec)) == text


def test_tiny_pictures_and_parts_without_a_name_are_kept() -> None:
    mail = multipart(
        "related",
        "Content-Type: text/html\n\n<p>Text</p><img src=cid:l>",
        "Content-Type: image/gif\nContent-ID: <l>\n\nGIF89a",
        "Content-Type: image/png; name=logo.png\nContent-ID: <m>\n\nPNG",
        "Content-Type: text/calendar\n\nBEGIN:VCALENDAR",
    )
    assert [name for name, _ in members_of(mail)] == ["part 1.gif", "logo.png", "part 3.ics"]


def test_an_attached_mail_is_there_once_under_its_own_subject() -> None:
    inner = "Subject: =?utf-8?q?K=C3=BCndigung?=\nX-Lang:  wie\n gesendet\n\nText"
    mail = multipart("mixed", "Content-Type: text/plain\n\nAnbei.", f"Content-Type: message/rfc822\n\n{inner}")
    assert members_of(mail) == [("Kündigung.eml", inner.encode())]
    windows = mail.replace(b"\n", b"\r\n")
    assert members_of(windows) == [("Kündigung.eml", inner.replace("\n", "\r\n").encode())]


def test_the_strokes_of_a_subject_are_no_folders(world: World) -> None:
    outer = EmailMessage()
    outer["From"], outer["Subject"] = "anna@kanzlei.example", "Weiterleitung"
    outer.set_content("Anbei.")
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "ben@kanzlei.example", "AW: Az. 12 O 345/21 ./. Müller"
    inner.set_content("Text")
    outer.add_attachment(inner)
    report = world.ingest({"a/post.eml": outer.as_bytes()})
    assert "a/post.eml/AW: Az. 12 O 345-21 .-. Müller.eml" in [file.path for file in report.files]


def test_an_attached_mail_in_base64_is_decoded() -> None:
    inner = b"Subject: Innen\n\nText"
    part = "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + base64.b64encode(inner).decode()
    assert members_of(multipart("mixed", part)) == [("Innen.eml", inner)]


def test_what_a_report_of_delivery_says_is_text() -> None:
    status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; b@x.example\nAction: failed"
    mail = multipart("report; report-type=delivery-status", "Content-Type: text/plain\n\nUnzustellbar.", status)
    assert (
        body_of(mail)
        == "Unzustellbar.\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; b@x.example\nAction: failed"
    )


@pytest.mark.parametrize(
    "written",
    [
        "filename*=utf-8''K%C3%BCndigung%20M%C3%BCller.pdf",
        "filename*0*=utf-8''K%C3%BCndigung; filename*1*=%20M%C3%BCller.pdf",
        'filename="=?utf-8?q?K=C3=BCndigung_M=C3=BCller=2Epdf?="',
        'filename="=?iso-8859-1?q?K=FCndigung?=\n =?iso-8859-1?q?_M=FCller=2Epdf?="',
        'filename="Kündigung Müller.pdf"',
    ],
)
def test_a_file_name_is_read_in_whichever_way_it_is_written(written: str) -> None:
    mail = multipart("mixed", f"Content-Type: application/pdf\nContent-Disposition: attachment; {written}\n\n%PDF")
    assert members_of(mail)[0][0] == "Kündigung Müller.pdf"
    latin = mail.decode().encode("cp1252")
    assert members_of(latin)[0][0] == "Kündigung Müller.pdf"


def test_every_name_of_an_attachment_is_taken(world: World) -> None:
    names = [
        f"{'Anlage K1 zur Klageschrift ' * 5}(Entwurf) [final].txt",
        "Anlage [1] {2} (3) <4> #5 %20.txt",
        "a:b*c?.txt",
    ]
    message = EmailMessage()
    message["From"], message["Subject"] = "anna@kanzlei.example", "Anlagen"
    message.set_content("Anbei.")
    for number, name in enumerate(names):
        message.add_attachment(f"Inhalt {number}".encode(), maintype="text", subtype="plain", filename=name)
    report = world.ingest({"a/post.eml": message.as_bytes()})
    assert [file.outcome for file in report.files] == [Outcome.NEW] * 4
    paths = [row.path for row in world.rows(sa.select(source_objects)) if row.parent_id]
    assert sorted(paths) == sorted(f"a/post.eml/{name}" for name in names)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("Tue, 9 Jul 2019 14:02:11 +0200 (Mitteleuropäische Sommerzeit)", "2019-07-09"),
        ("Sat, 12 Feb 100 10:00:00 +0100", "2000-02-12"),
        ("Tue, 9 Jan 2001 10:27:54 EST5EDT", "2001-01-09"),
        ("Tue, 9 Jan 2001 10:27:54 (GMT+02:00)", "2001-01-09"),
        ("Tue, 9 Jan 2001 10:27:54", "2001-01-09"),
        ("heute", None),
        ("Tue, 9 Jan 2001 10:27:54 +9900", None),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_date_is_what_was_written_or_none(written: str, day: str | None, encoding: str) -> None:
    mail = f"From: a@kanzlei.example\nDate: {written}\nSubject: x\n\nText".encode(encoding)
    kept = eml.convert(mail).text.meta["date"]
    assert kept == written
    found = mail_date(kept)
    assert (found.day.isoformat() if found.day else None, found.raw) == (day, written)


def test_a_mail_without_a_date_has_none(world: World) -> None:
    world.ingest({"a/2020-01-01 post.eml": b"From: a@kanzlei.example\nSubject: x\n\nText vom 3.4.2021"})
    assert world.scalar(sa.select(documents.c.doc_date)) is None


def many(parts: int) -> bytes:
    part = b"--b\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\nx\n"
    head = b"Subject: viele\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    return head + part * parts + b"--b--\n"


def test_a_mail_of_thousands_of_files_is_read_quickly() -> None:
    began = time.monotonic()
    assert len(eml.convert(many(5000)).members) == 5000
    assert time.monotonic() - began < 2


def test_a_mail_of_more_parts_is_refused_before_it_is_read(converter: ConversionProcess) -> None:
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match=f"more than {MAX_PARTS} parts"):
        converter.convert("eml", many(20_000), timeout_s=20)
    assert time.monotonic() - began < 3


def nested(levels: int) -> bytes:
    opened = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(levels))
    return b"Subject: tief\nMIME-Version: 1.0\n" + opened + b"Content-Type: text/plain\n\nText"


def test_the_parts_of_a_mail_lie_in_one_another_only_so_deep(converter: ConversionProcess) -> None:
    assert body_of(nested(MAX_DEPTH)) == "Text"
    for levels in (MAX_DEPTH + 1, 1000, 20_000):
        began = time.monotonic()
        with pytest.raises(LimitExceededError, match=r"nested|nesting|parts"):
            converter.convert("eml", nested(levels), timeout_s=20)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        (b"Subject: x\nContent-Type: text/plain" + b"; a=b" * 200_000 + b"\n\nText", "Content-Type is longer"),
        (b"Subject: x\nContent-Type: multipart/mixed; boundary=" + b"b" * 200_000 + b"\n\n--b", "is longer"),
        (b"".join(b"X-%d: b\n" % n for n in range(20_000)) + b"\nText", "more than 10000 headers"),
    ],
    ids=["parameters", "boundary", "headers"],
)
def test_headers_have_limits(converter: ConversionProcess, mail: bytes, words: str) -> None:
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match=words):
        converter.convert("eml", mail, timeout_s=20)
    assert time.monotonic() - began < 3


MBOX = (
    b"From anna@kanzlei.example Mon Feb 12 23:30:00 2024\nFrom: anna@kanzlei.example\nSubject: Erste 1/24\n\nText eins\n"
    b">From hier zitiert\n\nFrom hier an gilt: 12:30 Uhr\n\n"
    b"From ben@kanzlei.example Tue Feb 13 08:00:00 2024\nSubject: =?utf-8?q?Zw=C3=B6lfte?=\nFrom: b@x.example\n\nText zwei\n"
)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_folder_of_mails_in_one_file_is_its_mails(line_end: bytes) -> None:
    whole = MBOX.replace(b"\n", line_end)
    assert kind_of(whole, "Posteingang") == "application/mbox"
    found = mbox.convert(whole)
    assert [member.name for member in found.members] == ["Erste 1-24.eml", "Zwölfte.eml"]
    assert [body_of(member.content or b"").replace("\r", "") for member in found.members] == [
        "Text eins\nFrom hier zitiert\n\nFrom hier an gilt: 12:30 Uhr",
        "Text zwei",
    ]


def test_one_mail_with_the_line_of_a_folder_is_a_mail() -> None:
    one = MBOX[: MBOX.index(b"From ben")]
    assert kind_of(one, "x") == "message/rfc822"
    assert eml.convert(one).text.meta["subject"] == "Erste 1/24"


def test_files_that_only_hold_others_are_documents_with_what_they_hold(world: World) -> None:
    letter = mails.msg({mails.SUBJECT: "Brief", mails.BODY: "Inhalt"})
    report = world.ingest({"a/Posteingang": MBOX, "a/Brief.msg.p7m": mails.signed(letter)})
    assert {file.path: file.outcome for file in report.files} == dict.fromkeys(
        [
            "a/Posteingang",
            "a/Posteingang/Erste 1-24.eml",
            "a/Posteingang/Zwölfte.eml",
            "a/Brief.msg.p7m",
            "a/Brief.msg.p7m/signed content.msg",
        ],
        Outcome.NEW,
    )


def test_a_key_file_is_no_signed_message() -> None:
    key = bytes.fromhex("30820a01 020103 308209c7 06092a864886f70d010701") + b"\xa0" * 500
    assert kind_of(key, "schluessel.pfx") != "application/pkcs7-mime"


def test_a_file_without_headers_is_no_mail() -> None:
    with pytest.raises(UnreadableFileError, match="no mail headers"):
        eml.convert(b"\n\nnur Text")
