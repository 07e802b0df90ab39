"""winmail.dat ([MS-OXTNEF]): the mail and the files that Outlook packs for itself."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.errors import LimitExceededError, UnreadableFileError
from shared.ingest.convert import mapi
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.mail import Mail, conversion
from shared.ingest.convert.mapi import BINARY, OBJECT, STRING8, UNICODE, Attachment, Message, Properties

_MARK = b"\x78\x9f\x3e\x22"
_HEAD_BYTES = 6
_MAX_VALUES = 100_000

_CODE_PAGE, _RECIPIENTS, _PROPERTIES, _SENT = 0x69007, 0x69004, 0x69003, 0x38005
_NEW_FILE, _FILE_PROPERTIES, _FILE_NAME, _FILE_DATA = 0x69002, 0x69005, 0x18010, 0x6800F
# What older mailers keep outside of the properties: the number of the property that says the same.
_OLD = {0x18004: mapi.SUBJECT, 0x2800C: mapi.BODY, 0x78008: mapi.CLASS}

_MULTIPLE, _NAMED, _BY_TEXT = 0x1000, 0x8000, 1
# Bytes that a value of a fixed type takes, with its padding.
_FIXED = {0x02: 4, 0x03: 4, 0x04: 4, 0x05: 8, 0x06: 8, 0x07: 8, 0x0A: 4, 0x0B: 4, 0x14: 8, 0x40: 8, 0x48: 16, 0x01: 4}
_VARIABLE = frozenset({STRING8, UNICODE, BINARY, OBJECT})
_INTERFACE_BYTES = 16

_Values = dict[int, tuple[int, bytes]]


def convert(content: bytes) -> Conversion:
    """Return the text of the mail and the files in it."""
    return conversion(read(content))


def read(content: bytes) -> Mail:
    """Return the mail that was packed."""
    try:
        packed = _Packed()
        for number, data in _attributes(content):
            packed.take(number, data)
        return packed.mail()
    except (struct.error, IndexError) as error:
        raise UnreadableFileError(f"the winmail.dat is broken: {error}") from error


@dataclass(slots=True)
class _File:
    values: _Values = field(default_factory=dict)
    content: bytes | None = None


class _Packed:
    def __init__(self) -> None:
        self._values: _Values = {}
        self._code_page: int | None = None
        self._sent: str | None = None
        self._recipients: list[_Values] = []
        self._files: list[_File] = []

    def take(self, number: int, data: bytes) -> None:
        if number == _PROPERTIES:
            self._values |= _properties(_Bytes(data))
        elif number in _OLD:
            self._values.setdefault(_OLD[number], (STRING8, data))
        elif number == _CODE_PAGE:
            self._code_page = struct.unpack_from("<I", data)[0]
        elif number == _SENT:
            self._sent = _date(data)
        elif number == _RECIPIENTS:
            self._recipients = _rows(_Bytes(data))
        elif number == _NEW_FILE:
            self._files.append(_File())
        elif self._files:
            self._take_of_file(self._files[-1], number, data)

    def _take_of_file(self, file: _File, number: int, data: bytes) -> None:
        if number == _FILE_NAME:
            file.values.setdefault(mapi.SHORT_NAME, (STRING8, data))
        elif number == _FILE_DATA:
            file.content = data
        elif number == _FILE_PROPERTIES:
            file.values |= _properties(_Bytes(data))

    def mail(self) -> Mail:
        codecs = mapi.codecs_of(self._values, self._code_page)
        files = [self._attachment(file, codecs) for file in self._files]
        recipients = [Properties(values, codecs) for values in self._recipients]
        return mapi.mail_of(Message(Properties(self._values, codecs), recipients, files), date=self._sent)

    def _attachment(self, file: _File, codecs: tuple[str, ...]) -> Attachment:
        about = Properties(file.values, codecs)
        kind, value = file.values.get(mapi.DATA, (0, b""))
        if kind != OBJECT:
            return Attachment(about, file.content if file.content is not None else about.content(mapi.DATA))
        inner = value[_INTERFACE_BYTES:]
        if not inner.startswith(_MARK):
            return Attachment(about, inner)
        return Attachment(about, inner, _subject(inner), ".dat")


def _subject(content: bytes) -> str | None:
    """Return the subject of a mail in the mail, without reading what hangs on it."""
    values: _Values = {}
    code_page = None
    for number, data in _attributes(content):
        if number == _PROPERTIES:
            values |= _properties(_Bytes(data))
        elif number in _OLD:
            values.setdefault(_OLD[number], (STRING8, data))
        elif number == _CODE_PAGE:
            code_page = struct.unpack_from("<I", data)[0]
    return mapi.subject_of(Properties(values, mapi.codecs_of(values, code_page)))


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each attribute. Checksums are not compared: some mailers write wrong ones."""
    if not content.startswith(_MARK):
        raise UnreadableFileError("the file is no winmail.dat")
    at = _HEAD_BYTES
    # Some mailers add line breaks or zeros at the end.
    end = len(content.rstrip(b"\0\r\n"))
    while at < end:
        _, number, length = struct.unpack_from("<BII", content, at)
        at += 9
        if length > len(content) - at - 2:
            raise UnreadableFileError("the winmail.dat breaks off")
        yield number, content[at : at + length]
        at += length + 2


class _Bytes:
    """Bytes read from the front, never past their end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, length: int) -> bytes:
        if length > len(self._content) - self._at:
            raise UnreadableFileError("a property of the winmail.dat is longer than the file")
        piece = self._content[self._at : self._at + length]
        self._at += length
        return piece

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def short(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def padded(self) -> bytes:
        """Return a value that its length stands before; values begin at multiples of four."""
        length = self.number()
        piece = self.take(length)
        self._at = min(len(self._content), self._at + -length % 4)
        return piece

    def count(self) -> int:
        found = self.number()
        if found > _MAX_VALUES:
            raise LimitExceededError(f"the winmail.dat has more than {_MAX_VALUES} values in one place")
        return found


def _rows(content: _Bytes) -> list[_Values]:
    return [_properties(content) for _ in range(content.count())]


def _properties(content: _Bytes) -> _Values:
    found: _Values = {}
    for _ in range(content.count()):
        kind, number = content.short(), content.short()
        if number >= _NAMED:
            content.take(_INTERFACE_BYTES)
            if content.number() == _BY_TEXT:
                content.padded()
            else:
                content.number()
        single = kind & ~_MULTIPLE
        how_many = content.count() if kind & _MULTIPLE or single in _VARIABLE else 1
        for position in range(how_many):
            if single in _VARIABLE:
                value = content.padded()
            elif single in _FIXED:
                value = content.take(_FIXED[single])
            else:
                raise UnreadableFileError(f"the winmail.dat has a property of the unknown type {single:#x}")
            if position == 0:
                found[number] = (single, value)
    return found


def _date(data: bytes) -> str | None:
    """Return the time of sending as it is kept: without a zone."""
    year, month, day, hour, minute, second = struct.unpack_from("<6H", data)
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    if not 1 <= month <= len(months):
        return None
    return f"{day} {months[month - 1]} {year} {hour:02}:{minute:02}:{second:02}"
