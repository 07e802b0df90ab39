"""The formats that are read, and what a conversion gives back."""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import EncryptedFileError, PermanentError, UnsupportedFileError
from shared.text.converted import ConvertedText


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file that lies in another cannot be had: the class of the permanent error, and its words."""

    error: str
    reason: str

    @classmethod
    def of(cls, error: PermanentError) -> Refusal:
        """Return an error as a value."""
        return cls(type(error).__name__, error.message)


@dataclass(frozen=True, slots=True)
class Member:
    """A file taken out of another: an attachment, an embedded file.

    `folder` is its place in an archive, `raw_name` the bytes of folder and name where reading them took a guess. One
    that is `refused` has no content, and still is a file that someone looks for.
    """

    name: str
    content: bytes | None
    folder: str = ""
    raw_name: bytes | None = None
    refused: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be taken out of one file: so many files, and so many bytes in one of them and in all."""

    members: int
    member_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class Conversion:
    """The text of a file and the files in it."""

    text: ConvertedText
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """A converter: the module `shared.ingest.convert.<name>` and the version of what it produces."""

    name: str
    version: str
    # Whether it has pictures of pages read: its `convert` takes a `PageReader` as well.
    reads_pictures: bool = False
    # Whether it unpacks others' files: its `convert` takes the `Limits` as well.
    unpacks: bool = False

    @property
    def producer(self) -> str:
        """What artifacts and states carry: a new version converts this format's files again."""
        return f"{self.name}/{self.version}"


_TEXT = Format("plain", "2")
_HTML = Format("html", "1")
_PDF = Format("pdf", "3", reads_pictures=True)
_IMAGE = Format("image", "1", reads_pictures=True)
_DOCX = Format("docx", "2")
_EML = Format("eml", "2")
_JSON = Format("json_text", "2")
_ZIP = Format("archive", "1", unpacks=True)
_XML = Format("xml_text", "1")
_XLSX = Format("xlsx", "1")
_PPTX = Format("pptx", "1")
_ODT = Format("odt", "1")
_OPEN = "application/vnd.oasis.opendocument."
_RTF = Format("rtf", "1")
_MSG = Format("msg", "1")
_TNEF = Format("tnef", "1")
_CMS = Format("cms", "1")
_MBOX = Format("mbox", "1")

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DOCM = "application/vnd.ms-word.document.macroenabled.12"
DOTX = "application/vnd.openxmlformats-officedocument.wordprocessingml.template"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
OTHER_PACKAGE = "application/vnd.openxmlformats-package"
IWORK = "application/vnd.apple.iwork"
ENCRYPTED_OOXML = "application/x-encrypted-ooxml"

FORMATS = {
    "text/plain": _TEXT,
    "text/markdown": _TEXT,
    "text/csv": _TEXT,
    "text/html": _HTML,
    "application/pdf": _PDF,
    "image/png": _IMAGE,
    "image/jpeg": _IMAGE,
    "image/tiff": _IMAGE,
    "image/webp": _IMAGE,
    "image/bmp": _IMAGE,
    "image/gif": _IMAGE,
    DOCX: _DOCX,
    DOCM: _DOCX,
    DOTX: _DOCX,
    "message/rfc822": _EML,
    "application/json": _JSON,
    "application/rtf": _RTF,
    "application/zip": _ZIP,
    "application/xml": _XML,
    XLSX: _XLSX,
    PPTX: _PPTX,
    f"{_OPEN}text": _ODT,
    f"{_OPEN}text-template": _ODT,
    f"{_OPEN}spreadsheet": _ODT,
    f"{_OPEN}spreadsheet-template": _ODT,
    f"{_OPEN}presentation": _ODT,
    f"{_OPEN}presentation-template": _ODT,
    "application/vnd.ms-outlook": _MSG,
    "application/vnd.ms-tnef": _TNEF,
    "application/pkcs7-mime": _CMS,
    "application/mbox": _MBOX,
}


_SAVE_ANEW = {
    "application/msword": "an old Word file (.doc); save it as DOCX or PDF",
    "application/vnd.ms-excel": "an old Excel file (.xls); save it as XLSX or PDF",
    XLSB: "a binary Excel file (.xlsb); save it as XLSX or PDF",
    "application/vnd.ms-powerpoint": "an old PowerPoint file (.ppt); save it as PPTX or PDF",
    OTHER_PACKAGE: "a package of a program that is not known here; save it as PDF",
    IWORK: "a file of Pages, Numbers or Keynote; save it as PDF",
    "application/gzip": "a gzip archive; unpack it, or pack its files as ZIP",
    "application/x-tar": "a tar archive; unpack it, or pack its files as ZIP",
    "application/x-7z-compressed": "a 7z archive; unpack it, or pack its files as ZIP",
    "application/vnd.rar": "a RAR archive; unpack it, or pack its files as ZIP",
    "application/x-bzip2": "a bzip2 archive; unpack it, or pack its files as ZIP",
    "application/x-xz": "an xz archive; unpack it, or pack its files as ZIP",
}


def format_of(mime: str) -> Format:
    """Return the format that reads `mime`; the error names the kind of file that nobody reads yet."""
    if mime == ENCRYPTED_OOXML:
        raise EncryptedFileError("the document is encrypted with a password; store a copy without one")
    found = FORMATS.get(mime)
    if mime in _SAVE_ANEW:
        raise UnsupportedFileError(f"the file is {_SAVE_ANEW[mime]} and store that")
    if found is None:
        raise UnsupportedFileError(f"no converter reads {mime} yet; the file is kept and will be tried when one does")
    return found
