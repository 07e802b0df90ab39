"""ZIP archives byte by byte: names in any encoding, and headers that lie."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

UTF8, ENCRYPTED = 0x800, 0x1


@dataclass
class Entry:
    """A file in an archive. What is given here is written as it is, right or wrong."""

    name: bytes
    content: bytes = b"Ein Schreiben."
    flags: int = 0
    method: int = 8
    extra: bytes = b""
    stored: bytes | None = None
    crc: int | None = None
    size: int | None = None
    header_name: bytes | None = None
    offset: int | None = None
    packed: bytes = field(init=False)

    def __post_init__(self) -> None:
        deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
        deflated = deflater.compress(self.content) + deflater.flush()
        self.packed = self.stored if self.stored is not None else deflated if self.method == 8 else self.content


def unicode_path(raw: bytes, name: str, *, crc: int | None = None) -> bytes:
    """Return Info-ZIP's extra field 0x7075 for a name that is also written as `raw`."""
    body = struct.pack("<BI", 1, zlib.crc32(raw) if crc is None else crc) + name.encode()
    return struct.pack("<HH", 0x7075, len(body)) + body


def archive(entries: Sequence[Entry], *, before: bytes = b"") -> bytes:
    """Return an archive of these entries."""
    made, directory = bytearray(before), bytearray()
    for entry in entries:
        size = len(entry.content) if entry.size is None else entry.size
        crc = zlib.crc32(entry.content) if entry.crc is None else entry.crc
        about = struct.pack("<HHHHHIII", 20, entry.flags, entry.method, 0, 0x21, crc, len(entry.packed), size)
        own = entry.name if entry.header_name is None else entry.header_name
        offset = len(made) - len(before) if entry.offset is None else entry.offset
        made += b"PK\x03\x04" + about + struct.pack("<HH", len(own), 0) + own + entry.packed
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + about
        directory += struct.pack("<HHHHHII", len(entry.name), len(entry.extra), 0, 0, 0, 0, offset)
        directory += entry.name + entry.extra
    start = len(made) - len(before)
    end = struct.pack("<HHHHIIH", 0, 0, len(entries) & 0xFFFF, len(entries) & 0xFFFF, len(directory), start, 0)
    return bytes(made + directory + b"PK\x05\x06" + end)
