"""The names at the top of an OLE file ([MS-CFB]): what tells a mail from a document that holds one."""

from __future__ import annotations

import struct

_HEADER_BYTES = 512
_IN_HEADER = 109
_MAX_SECTOR_SHIFT = 12
_MAX_REGULAR = 0xFFFFFFFA
_NONE = 0xFFFFFFFF
_ENTRY = 128
_NAME_BYTES = 64
# A directory has four entries in a small sector; no mail of a firm has a hundred thousand.
_MAX_DIRECTORY_SECTORS = 25_000


def top_names(content: bytes) -> frozenset[str]:
    """Return the names of the streams and storages at the top; as many as can be read of a broken file."""
    if len(content) < _HEADER_BYTES:
        return frozenset()
    directory = _directory(content)
    names: set[str] = set()
    seen: set[int] = set()
    waiting = [_links(directory, 0)[2]]
    while waiting:
        number = waiting.pop()
        if number in seen or (number + 1) * _ENTRY > len(directory):
            continue
        seen.add(number)
        left, right, _ = _links(directory, number)
        waiting += [left, right]
        names.add(_name(directory, number))
    return frozenset(names)


def _directory(content: bytes) -> bytes:
    """Return the directory's sectors in order, as far as their chain goes without a ring."""
    shift = struct.unpack_from("<H", content, 30)[0]
    if shift > _MAX_SECTOR_SHIFT:
        return b""
    size = 1 << shift
    per_sector = size // 4
    table = _table_sectors(content, size)
    pieces: list[bytes] = []
    sector = struct.unpack_from("<I", content, 48)[0]
    seen: set[int] = set()
    while sector < _MAX_REGULAR and sector not in seen and len(pieces) < _MAX_DIRECTORY_SECTORS:
        seen.add(sector)
        pieces.append(content[(sector + 1) * size : (sector + 2) * size])
        which = sector // per_sector if per_sector else len(table)
        at = (table[which] + 1) * size + sector % per_sector * 4 if which < len(table) else len(content)
        if at + 4 > len(content):
            break
        sector = struct.unpack_from("<I", content, at)[0]
    return b"".join(pieces)


def _table_sectors(content: bytes, size: int) -> list[int]:
    """Return the sectors of the table of chains: the first stand in the header, the others in a chain of their own."""
    found = list(struct.unpack_from(f"<{_IN_HEADER}I", content, 76))
    sector = struct.unpack_from("<I", content, 68)[0]
    seen: set[int] = set()
    while sector < _MAX_REGULAR and sector not in seen and (sector + 2) * size <= len(content):
        seen.add(sector)
        *more, sector = struct.unpack_from(f"<{size // 4}I", content, (sector + 1) * size)
        found += more
    return found


def _links(directory: bytes, number: int) -> tuple[int, int, int]:
    """Return the entries left, right and below of an entry."""
    if (number + 1) * _ENTRY > len(directory):
        return _NONE, _NONE, _NONE
    left, right, below = struct.unpack_from("<3I", directory, number * _ENTRY + 68)
    return left, right, below


def _name(directory: bytes, number: int) -> str:
    at = number * _ENTRY
    length = min(struct.unpack_from("<H", directory, at + _NAME_BYTES)[0], _NAME_BYTES)
    return directory[at : at + length].decode("utf-16-le", "replace").rstrip("\0")
