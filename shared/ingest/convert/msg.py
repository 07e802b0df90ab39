"""Mail as Outlook stores it (.msg, [MS-OXMSG]): the same text and members as the same mail as .eml."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Mapping
from uuid import UUID

from olefile import OleFileIO
from olefile.olefile import STGTY_STREAM, OleDirectoryEntry, OleFileError

from shared.errors import LimitExceededError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert import mapi
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.mail import Mail, conversion
from shared.ingest.convert.mapi import Attachment, Message, Properties
from shared.ingest.convert.mime import entity
from shared.ingest.convert.mime_reader import MimeReader
from shared.ingest.convert.ole_writer import Storage, write
from shared.ingest.convert.signed_data import unwrap

_FIXED = "__properties_version1.0"
_NAMES = "__nameid_version1.0"
_RECIPIENT, _ATTACHMENT = "__recip_version1.0_#", "__attach_version1.0_#"
_STREAM = re.compile(r"__substg1\.0_([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})\Z")
_MESSAGE_HEAD, _INNER_HEAD, _SMALL_HEAD = 32, 24, 8
_ROW = 16
_MESSAGE_CLASS_ID = UUID("00020d0b-0000-0000-c000-000000000046").bytes_le
_SIGNED = "IPM.NOTE.SMIME"
_MAX_DEPTH = 100
# What the library and what reads its streams raise on files that are no OLE files.
_BROKEN = (
    OleFileError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    struct.error,
)

_Path = tuple[str, ...]


def convert(content: bytes) -> Conversion:
    """Return the text of a message and its attachments; a message in it is a .msg of its own."""
    try:
        with OleFileIO(io.BytesIO(content)) as file:
            reader = _Reader(file, len(content))
            message = reader.message()
    except (
        OleFileError,
        OSError,
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        struct.error,
    ) as error:
        raise UnreadableFileError(f"the message file is broken: {error}"[:300]) from error
    mail = mapi.mail_of(message)
    if (message.properties.text(mapi.CLASS) or "").upper().startswith(_SIGNED) and len(mail.members) == 1:
        mail = _unwrapped(mail)
    return conversion(mail)


def _unwrapped(mail: Mail) -> Mail:
    """Return a signed message with what its only attachment holds."""
    content = mail.members[0].content or b""
    inner = entity(content)
    try:
        inner = entity(unwrap(content)) if inner is None else inner
    except (UnreadableFileError, UnsupportedFileError):
        # The file stays, and says itself what is wrong with it.
        inner = None
    if inner is None:
        return mail
    reader = MimeReader()
    reader.read(inner)
    return Mail(mail.headers, reader.texts or mail.texts, reader.members, is_signed=True, notes=mail.notes)


class _Reader:
    """Reads streams by their paths, never more in all than the file is long: chains that cross would give more."""

    def __init__(self, file: OleFileIO, size: int) -> None:
        self._file = file
        self._left = size
        self._names: Storage | None = None

    def message(self) -> Message:
        root = self._file.root
        if root is None or not any(kid.name == _FIXED for kid in root.kids):
            raise UnreadableFileError("the file is no message")
        values = self._values(root, (), head=_MESSAGE_HEAD, wanted=mapi.OF_MESSAGE)
        codecs = mapi.codecs_of(values)
        kids = sorted((kid.name, kid) for kid in root.kids if kid.entry_type != STGTY_STREAM)
        recipients = [
            Properties(self._values(kid, (name,), head=_SMALL_HEAD, wanted=mapi.OF_RECIPIENT), codecs)
            for name, kid in kids
            if name.startswith(_RECIPIENT)
        ]
        attachments = [self._attachment(kid, (name,), codecs) for name, kid in kids if name.startswith(_ATTACHMENT)]
        return Message(Properties(values, codecs), recipients, attachments)

    def _attachment(self, entry: OleDirectoryEntry, path: _Path, codecs: tuple[str, ...]) -> Attachment:
        values = self._values(entry, path, head=_SMALL_HEAD, wanted=mapi.OF_ATTACHMENT)
        about = Properties(values, codecs)
        for kid in entry.kids:
            if _number(kid.name) != mapi.DATA:
                continue
            inner = (*path, kid.name)
            if kid.entry_type == STGTY_STREAM:
                return Attachment(about, self._stream(kid, inner))
            storage = self._storage(kid, inner, depth=0)
            if _FIXED not in storage.streams:
                # An object of another program, as a file of its own.
                return Attachment(about, write(storage))
            inner_values = _properties(storage.streams, head=_INNER_HEAD)
            subject = mapi.subject_of(Properties(inner_values, (*mapi.codecs_of(inner_values), *codecs)))
            return Attachment(about, _message_file(storage, self._property_names()), subject, ".msg")
        return Attachment(about, None)

    def _property_names(self) -> Storage | None:
        """Return the names of the message's own properties, which those in it share."""
        if self._names is None:
            found = next((kid for kid in self._file.root.kids if kid.name == _NAMES), None)
            self._names = self._storage(found, (_NAMES,), depth=0) if found is not None else None
        return self._names

    def _values(
        self, entry: OleDirectoryEntry, path: _Path, *, head: int, wanted: frozenset[int]
    ) -> dict[int, tuple[int, bytes]]:
        """Return the wanted properties of a storage."""
        streams = {
            kid.name: self._stream(kid, (*path, kid.name))
            for kid in entry.kids
            if kid.entry_type == STGTY_STREAM and (kid.name == _FIXED or _number(kid.name) in wanted)
        }
        return _properties(streams, head=head)

    def _storage(self, entry: OleDirectoryEntry, path: _Path, *, depth: int) -> Storage:
        if depth > _MAX_DEPTH:
            raise LimitExceededError(f"messages lie in one another more than {_MAX_DEPTH} deep")
        streams, storages = {}, {}
        for kid in entry.kids:
            inner = (*path, kid.name)
            if kid.entry_type == STGTY_STREAM:
                streams[kid.name] = self._stream(kid, inner)
            else:
                storages[kid.name] = self._storage(kid, inner, depth=depth + 1)
        return Storage(streams, storages, UUID(entry.clsid).bytes_le if entry.clsid else bytes(16))

    def _stream(self, entry: OleDirectoryEntry, path: _Path) -> bytes:
        self._left -= entry.size
        if self._left < 0:
            raise UnreadableFileError("the streams of the message file are longer than the file")
        content = bytes(self._file.openstream(list(path)).read())
        if len(content) < entry.size:
            raise UnreadableFileError("the message file breaks off")
        return content


def _properties(streams: Mapping[str, bytes], *, head: int) -> dict[int, tuple[int, bytes]]:
    """Return properties by number: those of fixed length lie in rows, each other one is a stream of its own."""
    found: dict[int, tuple[int, bytes]] = {}
    rows = streams.get(_FIXED, b"")
    for at in range(head, len(rows) - _ROW + 1, _ROW):
        kind, number = struct.unpack_from("<HH", rows, at)
        found[number] = (kind, rows[at + 8 : at + _ROW])
    for name, value in streams.items():
        if match := _STREAM.match(name):
            found[int(match[1], 16)] = (int(match[2], 16), value)
    return found


def _number(name: str) -> int | None:
    match = _STREAM.match(name)
    return int(match[1], 16) if match else None


def _message_file(storage: Storage, names: Storage | None) -> bytes:
    """Return an inner message as a file: the head of its properties is longer there, and the names are its own."""
    rows = storage.streams.get(_FIXED, b"")
    streams = {**storage.streams, _FIXED: rows[:_INNER_HEAD].ljust(_MESSAGE_HEAD, b"\0") + rows[_INNER_HEAD:]}
    storages = {**storage.storages, **({_NAMES: names} if names is not None else {})}
    return write(Storage(streams, storages, _MESSAGE_CLASS_ID))
