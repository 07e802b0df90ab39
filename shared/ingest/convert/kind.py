"""The kind of a file, by its content first and its name second."""

from __future__ import annotations

import io
import json
import lzma
import re
import zipfile
import zlib

from shared.ingest.convert.cms_mark import is_cms
from shared.ingest.convert.encoding import decode, looks_like_text
from shared.ingest.convert.formats import (
    DOCM,
    DOCX,
    DOTX,
    ENCRYPTED_OOXML,
    IWORK,
    OTHER_PACKAGE,
    PPTX,
    XLSB,
    XLSX,
)
from shared.ingest.convert.mbox_mark import is_mbox
from shared.ingest.convert.ole_names import top_names

_SNIFF_BYTES = 8192
_PDF_HEAD_BYTES = 1024
_MAX_TYPES_BYTES = 1024 * 1024
_ENTRY = b"PK\x01\x02"
_MAX_ENTRIES = 50_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ARMOURED = ("-----begin pkcs7-----", "-----begin cms-----")
_OLE_NAMES = (
    ("EncryptedPackage", ENCRYPTED_OOXML),
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
)

_MAGIC = (
    (b"{\\rtf", "application/rtf"),
    (b"\x78\x9f\x3e\x22", "application/vnd.ms-tnef"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"AC10", "image/vnd.dwg"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"%!PS", "application/postscript"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
# Two letters are also the beginning of texts: these need bytes that no text has.
_SHORT_MAGIC = frozenset({"image/bmp", "application/vnd.microsoft.portable-executable", "application/x-bzip2"})
_OOXML = (
    ("ms-word.document.macroenabled", DOCM),
    ("wordprocessingml.document.main", DOCX),
    ("wordprocessingml.template.main", DOTX),
    ("ms-word.template.macroenabledtemplate", DOCM),
    ("ms-excel.sheet.binary", XLSB),
    ("spreadsheetml.sheet.main", XLSX),
    ("spreadsheetml.template.main", XLSX),
    ("ms-excel.sheet.macroenabled", XLSX),
    ("ms-excel.template.macroenabled", XLSX),
    ("presentationml.presentation.main", PPTX),
    ("presentationml.slideshow.main", PPTX),
    ("presentationml.template.main", PPTX),
    ("ms-powerpoint.presentation.macroenabled", PPTX),
    ("ms-powerpoint.slideshow.macroenabled", PPTX),
    ("ms-powerpoint.template.macroenabled", PPTX),
)
_BY_NAME = {
    "docx": DOCX,
    "docm": DOCM,
    "xlsx": XLSX,
    "pptx": PPTX,
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "zip": "application/zip",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "eml": "message/rfc822",
    "xml": "application/xml",
}
_MAIL_HEADERS = re.compile(
    r"^(?:return-path|received|delivered-to|from|to|cc|subject|date|message-id|mime-version|reply-to|x-[a-z-]+"
    r"|content-type|content-transfer-encoding|dkim-signature|in-reply-to|references|sender|thread-topic):",
    re.IGNORECASE,
)
_HEADER_LINE = re.compile(r"^[!-9;-~]+:")
_MIN_MAIL_HEADERS = 2
_TELLING_HEADERS = frozenset({"from", "message-id", "received", "mime-version", "return-path", "date"})


def kind_of(content: bytes, name: str) -> str:
    """Return the MIME type of a file."""
    head = content[:_SNIFF_BYTES]
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(content, name)
    if head.startswith(_OLE):
        return _ole_kind(content)
    text_like = looks_like_text(head)
    marked = _marked_kind(head, text_like=text_like)
    if marked is not None:
        return marked
    # Something may stand before a PDF's first line, and a PDF may stand in a mail or in another file.
    before, pdf, _ = head[:_PDF_HEAD_BYTES].partition(b"%PDF-")
    if pdf and not _is_mail(decode(before).text):
        return "application/pdf"
    return _text_kind(content, name) if text_like or pdf else "application/octet-stream"


def _marked_kind(head: bytes, *, text_like: bool) -> str | None:
    if is_cms(head):
        return "application/pkcs7-mime"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    if head[4:12] in {b"ftypheic", b"ftypheix", b"ftypmif1"}:
        return "image/heic"
    for magic, mime in _MAGIC:
        if head.startswith(magic) and not (text_like and mime in _SHORT_MAGIC):
            return mime
    return None


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _text_kind(content: bytes, name: str) -> str:
    start = decode(content[:_SNIFF_BYTES]).text.lstrip()
    lowered = start[:2048].lower()
    ending = _ending(name)
    if lowered.startswith(("<!doctype html", "<html")):
        return "text/html"
    if lowered.startswith(_ARMOURED) or (ending in {"p7m", "p7s", "p7c"} and start.startswith("MI")):
        return "application/pkcs7-mime"
    if lowered.startswith("<?xml"):
        return "text/html" if "<html" in lowered else "application/xml"
    if ending != "txt" and start[:1] in {"{", "["} and _is_json(content):
        return "application/json"
    if ending not in {"md", "markdown", "csv", "html", "htm"} and _is_mail(start):
        return "application/mbox" if is_mbox(content) else "message/rfc822"
    by_name = _BY_NAME.get(ending, "text/plain")
    # A text that calls itself a document of another kind is read as the text that it is.
    return by_name if by_name.startswith("text/") or by_name in {"message/rfc822", "application/xml"} else "text/plain"


def _is_json(content: bytes) -> bool:
    try:
        json.loads(decode(content).text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_mail(start: str) -> bool:
    names: set[str] = set()
    for line in start.splitlines():
        if not line.strip():
            break
        if line[0] in " \t" or (not names and line.startswith("From ")):
            continue
        if not _HEADER_LINE.match(line):
            return False
        if _MAIL_HEADERS.match(line):
            names.add(line.partition(":")[0].lower())
    return len(names) >= _MIN_MAIL_HEADERS and bool(names & _TELLING_HEADERS)


def _zip_kind(content: bytes, name: str) -> str:
    by_name = _BY_NAME.get(_ending(name), "application/zip")
    guess = by_name if by_name != "message/rfc822" and not by_name.startswith("text/") else "application/zip"
    if content.count(_ENTRY) > _MAX_ENTRIES:
        # A directory of millions takes gigabytes to read, and here nothing limits that: the converter says so.
        return guess
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _archive_kind(archive)
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        ValueError,
        OSError,
        NotImplementedError,
        RuntimeError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
    ):
        # A broken package is what its name says: the converter then tells what is wrong with it.
        return guess


def _archive_kind(archive: zipfile.ZipFile) -> str:
    names = set(archive.namelist())
    if "[Content_Types].xml" in names:
        with archive.open("[Content_Types].xml") as member:
            types = decode(member.read(_MAX_TYPES_BYTES)).text.lower()
        for mark, mime in _OOXML:
            if mark in types:
                return mime
        # Unpacked, it would be hundreds of parts that nobody wrote.
        return OTHER_PACKAGE
    if "mimetype" in names:
        with archive.open("mimetype") as member:
            declared = member.read(200).decode("ascii", "replace").strip()
        if declared.startswith("application/vnd.oasis.opendocument"):
            return declared
    return IWORK if any(name.endswith(".iwa") for name in names) else "application/zip"


def _ole_kind(content: bytes) -> str:
    names = top_names(content)
    for name, mime in _OLE_NAMES:
        # Of a file that breaks off before its directory, any place tells. A whole one may hold files of other kinds.
        if name in names or (not names and name.encode("utf-16-le") in content):
            return mime
    return "application/x-ole-storage"
