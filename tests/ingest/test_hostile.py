"""Hostile files: a status in bounded time and memory, and the parent survives."""

from __future__ import annotations

import io
import json
import os
import signal
import time
import zipfile

import pytest

from shared.errors import LimitExceededError, UnreadableFileError
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.report import Outcome
from tests.ingest.conftest import World

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_RELS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(document: bytes, **more: bytes) -> bytes:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELS)
        archive.writestr("word/document.xml", document)
        for name, content in more.items():
            archive.writestr(name, content)
    return package.getvalue()


def paragraph(inner: str, prologue: str = "") -> bytes:
    return f"{prologue}<w:document {_W}><w:body><w:p><w:r><w:t>{inner}</w:t></w:r></w:p></w:body></w:document>".encode()


def test_a_docx_that_unpacks_to_gigabytes_is_stopped_at_the_limit(converter: ConversionProcess) -> None:
    bomb = docx(paragraph("x") + b" " * (300 * 1024 * 1024))
    assert len(bomb) < 1024 * 1024
    with pytest.raises(LimitExceededError, match="unpacks to more than"):
        converter.convert("docx", bomb, timeout_s=60)


def test_entities_of_a_docx_are_not_expanded(converter: ConversionProcess) -> None:
    laughs = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    result = converter.convert("docx", docx(paragraph("&b;&c;", prologue=laughs)), timeout_s=60)
    assert result.text.text == "&b;&c;"


def test_xml_nested_without_end_is_refused(converter: ConversionProcess) -> None:
    deep = b"<w:sdt><w:sdtContent>" * 100_000
    with pytest.raises(UnreadableFileError, match="well-formed"):
        converter.convert("docx", docx(f"<w:document {_W}><w:body>".encode() + deep), timeout_s=60)


def test_a_truncated_docx_is_unreadable(converter: ConversionProcess) -> None:
    whole = docx(paragraph("Ein Schreiben."))
    with pytest.raises(UnreadableFileError):
        converter.convert("docx", whole[: len(whole) // 2], timeout_s=60)


def test_html_nested_a_million_deep_is_read_in_bounded_time(converter: ConversionProcess) -> None:
    started = time.monotonic()
    result = converter.convert("html", b"<div>" * 1_000_000 + b"tief unten", timeout_s=60)
    assert result.text.text == "tief unten"
    assert time.monotonic() - started < 30


def test_json_nested_without_end_is_unreadable(converter: ConversionProcess) -> None:
    with pytest.raises(UnreadableFileError, match="nested"):
        converter.convert("json_text", b"[" * 1_000_000, timeout_s=60)


def test_a_mail_of_mails_is_read_one_level_at_a_time_and_not_without_end(converter: ConversionProcess) -> None:
    def nested(levels: int) -> bytes:
        mail = b"Subject: innen\n\nText"
        for level in range(levels):
            mail = b"Subject: %d\nContent-Type: message/rfc822\n\n" % level + mail
        return mail

    result = converter.convert("eml", nested(20), timeout_s=60)
    assert [member.name for member in result.members] == ["18.eml"]
    with pytest.raises(LimitExceededError, match="nesting"):
        converter.convert("eml", nested(2000), timeout_s=60)


@pytest.mark.parametrize("charset", ["undefined", "a\x00b", "hex", "../x", "x" * 5000], ids=lambda name: name[:10])
def test_a_mail_in_a_charset_that_is_none_is_read(converter: ConversionProcess, charset: str) -> None:
    mail = f'From: a@kanzlei.example\r\nContent-Type: text/plain; charset="{charset}"\r\n\r\nGuten Tag'
    assert "Guten Tag" in converter.convert("eml", mail.encode(), timeout_s=20).text.text


@pytest.mark.parametrize("value", ["(" * 4000, '"' * 60_000, "=?utf-8?q?=61?= " * 20_000], ids=lambda value: value[:5])
def test_a_mail_with_a_hostile_header_is_read_in_bounded_time(converter: ConversionProcess, value: str) -> None:
    mail = f"From: a@kanzlei.example\r\nCc: {value}\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nGuten Tag"
    began = time.monotonic()
    text = converter.convert("eml", mail.encode(), timeout_s=20).text.text
    assert time.monotonic() - began < 10
    assert "Subject: Grüße" in text
    assert "Guten Tag" in text


def test_the_many_recipients_of_a_mail_keep_their_umlauts(converter: ConversionProcess) -> None:
    recipients = ",\r\n ".join(f"=?utf-8?q?J=C3=B6rg_{number}?= <j{number}@kanzlei.example>" for number in range(500))
    mail = f"From: a@kanzlei.example\r\nTo: {recipients}\r\n\r\nGuten Tag"
    text = converter.convert("eml", mail.encode(), timeout_s=20).text.text
    assert "Jörg 0 <j0@kanzlei.example>" in text
    assert "Jörg 499 <j499@kanzlei.example>" in text


def test_a_broken_pdf_is_unreadable_whatever_is_broken(converter: ConversionProcess) -> None:
    for content in (b"%PDF-1.7\n", b"%PDF-1.7\n" + os.urandom(5000), b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 1 0 R>>"):
        with pytest.raises(UnreadableFileError):
            converter.convert("pdf", content, timeout_s=60)


@pytest.fixture
def sabotaged(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A worker in which the plain format runs code of the test."""

    def make(code: str, *, memory_bytes: int = 2**30) -> ConversionProcess:
        (tmp_path / "sitecustomize.py").write_text(
            "import sys, types\n"
            "module = types.ModuleType('shared.ingest.convert.plain')\n"
            f"exec({code!r}, module.__dict__)\n"
            "sys.modules['shared.ingest.convert.plain'] = module\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        return ConversionProcess(memory_bytes=memory_bytes, output_bytes=2**20)

    return make


GOOD = (
    "from shared.ingest.convert.formats import Conversion\n"
    "from shared.text.converted import ConvertedText\n"
    "def good(): return Conversion(ConvertedText('gut'))\n"
)


def test_a_converter_that_hangs_is_ended_and_the_next_file_is_read(sabotaged) -> None:
    code = GOOD + "import time\ndef convert(content):\n    if content == b'hang': time.sleep(600)\n    return good()\n"
    with sabotaged(code) as process:
        with pytest.raises(LimitExceededError, match=r"longer than 0\.5 s"):
            process.convert("plain", b"hang", timeout_s=0.5)
        assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_a_converter_that_crashes_is_replaced(sabotaged) -> None:
    code = GOOD + (
        "import os, signal\ndef convert(content):\n"
        "    if content == b'crash': os.kill(os.getpid(), signal.SIGSEGV)\n    return good()\n"
    )
    with sabotaged(code) as process:
        with pytest.raises(UnreadableFileError, match=f"exit code -{signal.SIGSEGV.value}"):
            process.convert("plain", b"crash", timeout_s=30)
        assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_a_converter_that_takes_all_memory_is_stopped_at_its_limit(sabotaged) -> None:
    code = GOOD + "def convert(content):\n    if content == b'big': bytearray(2**31)\n    return good()\n"
    with sabotaged(code, memory_bytes=2**29) as process:
        with pytest.raises(LimitExceededError, match="memory"):
            process.convert("plain", b"big", timeout_s=30)
        assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_output_without_end_is_stopped_at_its_limit(sabotaged) -> None:
    code = GOOD + "def convert(content): return Conversion(ConvertedText('x' * 2**22))\n"
    with sabotaged(code) as process, pytest.raises(LimitExceededError, match="larger"):
        process.convert("plain", b"x", timeout_s=30)


@pytest.mark.parametrize(
    "call",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.getaddrinfo('kanzlei.example', 80)",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
    ],
)
def test_a_converter_reaches_no_network_and_starts_no_program(sabotaged, call: str) -> None:
    with (
        sabotaged(GOOD + f"def convert(content): {call}\n") as process,
        pytest.raises(UnreadableFileError, match=r"may not call|cannot be read"),
    ):
        process.convert("plain", b"x", timeout_s=30)


def test_what_a_library_prints_is_no_answer(sabotaged) -> None:
    code = GOOD + "import os\ndef convert(content):\n    os.write(1, b'{}\\n')\n    print('{}')\n    return good()\n"
    with sabotaged(code) as process:
        assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_the_worker_sees_nothing_of_the_environment(sabotaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KI_SECRET", "geheim")
    code = GOOD + "import os\ndef convert(content): return Conversion(ConvertedText(' '.join(os.environ)))\n"
    with sabotaged(code) as process:
        assert "KI_SECRET" not in process.convert("plain", b"x", timeout_s=30).text.text


def test_a_file_with_too_many_members_is_refused() -> None:
    part = "--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n\nx\n"
    head = "Subject: viele\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    with (
        ConversionProcess(memory_bytes=2**30, output_bytes=2**20, members=50) as process,
        pytest.raises(LimitExceededError, match="51 files; 50 are allowed"),
    ):
        process.convert("eml", (head + part * 51 + "--b--\n").encode(), timeout_s=60)


def test_hostile_files_of_a_batch_stop_no_other(world: World) -> None:
    report = world.ingest(
        {
            "a/bombe.docx": docx(paragraph("x") + b" " * (250 * 1024 * 1024)),
            "a/kaputt.pdf": b"%PDF-1.7\nnichts",
            "a/zahlen.json": json.dumps({"werte": list(range(1000))}),
            "a/null.txt": "Ein\x00 Schreiben mit NUL und \ud800".encode("utf-8", "surrogatepass"),
            "a/gut.txt": "Ein gutes Schreiben.",
        }
    )
    assert {file.path: file.error or file.outcome for file in report.files} == {
        "a/bombe.docx": "LimitExceededError",
        "a/kaputt.pdf": "UnreadableFileError",
        "a/zahlen.json": "UnsupportedFileError",
        "a/null.txt": Outcome.NEW,
        "a/gut.txt": Outcome.NEW,
    }


def test_a_file_over_the_size_limit_is_not_read_to_its_end(world: World) -> None:
    ingest = world.settings.ingest.model_copy(update={"max_file_bytes": 1000})
    settings = world.settings.model_copy(update={"ingest": ingest})
    [file] = world.ingest({"a/gross.txt": "x" * 1001}, settings=settings).files
    assert (file.error, file.reason) == ("LimitExceededError", "the file is larger than 1000 bytes")


def test_a_path_that_is_too_long_for_an_index_is_reported_and_stops_no_other(world: World) -> None:
    # No two characters alike: what repeats would be compressed and fit.
    long = "a/" + "".join(chr(0x4E00 + number) for number in range(1000)) + ".txt"
    report = world.ingest({"a/gut.txt": "Ein Text.", long: "Ein anderer Text."})
    assert {file.path: file.outcome for file in report.files} == {
        "a/gut.txt": Outcome.NEW,
        long: Outcome.UNREADABLE,
    }
