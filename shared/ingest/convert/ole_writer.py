"""OLE compound files ([MS-CFB], version 3), written anew: what lies as a storage in another file becomes a file."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

_SECTOR, _MINI_SECTOR, _MINI_CUTOFF = 512, 64, 4096
_FREE, _END, _FAT, _DIFAT, _NONE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFC, 0xFFFFFFFF
_PER_SECTOR = _SECTOR // 4
_IN_HEADER = 109
_MAX_NAME_CHARS = 31
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_BLACK = 1


@dataclass(frozen=True, slots=True)
class Storage:
    """A folder of an OLE file."""

    streams: Mapping[str, bytes] = field(default_factory=dict)
    storages: Mapping[str, Storage] = field(default_factory=dict)
    class_id: bytes = bytes(16)


@dataclass(slots=True)
class _Entry:
    name: str
    kind: int
    content: bytes = b""
    class_id: bytes = bytes(16)
    left: int = _NONE
    right: int = _NONE
    child: int = _NONE
    start: int = _END
    size: int = 0


def write(root: Storage) -> bytes:
    """Return `root` as a file; the same storage gives the same bytes."""
    entries = _entries(root)
    mini = bytearray()
    mini_chains: list[int] = []
    sectors: list[bytes] = []
    chains: list[int] = []
    for entry in entries:
        if entry.kind != _STREAM:
            continue
        entry.size = len(entry.content)
        if 0 < entry.size < _MINI_CUTOFF:
            entry.start = len(mini_chains)
            _append_chain(mini_chains, _pieces(entry.size, _MINI_SECTOR))
            mini += entry.content.ljust(_pieces(entry.size, _MINI_SECTOR) * _MINI_SECTOR, b"\0")
        elif entry.size:
            entry.start = _append(sectors, chains, entry.content)
    entries[0].start, entries[0].size = _append(sectors, chains, bytes(mini)), len(mini)
    mini_fat_start = _append(sectors, chains, _numbers(mini_chains))
    mini_fat_count = _pieces(len(mini_chains), _PER_SECTOR)
    directory_start = _append(sectors, chains, b"".join(_directory_entry(entry) for entry in entries))
    fat_count, difat_count = _table_sizes(len(sectors))
    fat_start = len(sectors)
    fat_sectors = list(range(fat_start, fat_start + fat_count))
    difat_start = fat_start + fat_count
    chains += [_FAT] * fat_count + [_DIFAT] * difat_count
    sectors += _cut(_numbers(chains))
    beyond = fat_sectors[_IN_HEADER:]
    for position in range(difat_count):
        part = beyond[position * (_PER_SECTOR - 1) : (position + 1) * (_PER_SECTOR - 1)]
        following = difat_start + position + 1 if position + 1 < difat_count else _END
        sectors.append(_numbers([*part, *[_FREE] * (_PER_SECTOR - 1 - len(part)), following]))
    header = struct.pack(
        "<8s16s5H6x9I",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6,
        0, fat_count, directory_start, 0, _MINI_CUTOFF, mini_fat_start, mini_fat_count,
        difat_start if difat_count else _END, difat_count,
    )  # fmt: skip
    known = [*fat_sectors[:_IN_HEADER], *[_FREE] * max(0, _IN_HEADER - fat_count)]
    return header + struct.pack(f"<{_IN_HEADER}I", *known) + b"".join(sectors)


def _entries(root: Storage) -> list[_Entry]:
    """Return the directory: each storage's children as a balanced tree, ordered as the format wants it."""
    entries = [_Entry("Root Entry", _ROOT, class_id=root.class_id)]
    open_storages = [(0, root)]
    while open_storages:
        parent, storage = open_storages.pop()
        children: list[int] = []
        for name, inner in storage.storages.items():
            children.append(len(entries))
            open_storages.append((len(entries), inner))
            entries.append(_Entry(name[:_MAX_NAME_CHARS], _STORAGE, class_id=inner.class_id))
        for name, content in storage.streams.items():
            children.append(len(entries))
            entries.append(_Entry(name[:_MAX_NAME_CHARS], _STREAM, content))
        children.sort(key=lambda number: (len(entries[number].name), entries[number].name.upper()))
        entries[parent].child = _tree(entries, children)
    return entries


def _tree(entries: list[_Entry], ordered: list[int]) -> int:
    if not ordered:
        return _NONE
    middle = len(ordered) // 2
    entry = entries[ordered[middle]]
    entry.left, entry.right = _tree(entries, ordered[:middle]), _tree(entries, ordered[middle + 1 :])
    return ordered[middle]


def _directory_entry(entry: _Entry) -> bytes:
    name = entry.name.encode("utf-16-le", "surrogatepass")
    return struct.pack(
        "<64sHBB3I16sI16xIQ",
        name, len(name) + 2, entry.kind, _BLACK, entry.left, entry.right, entry.child, entry.class_id, 0,
        entry.start, entry.size,
    )  # fmt: skip


def _append(sectors: list[bytes], chains: list[int], content: bytes) -> int:
    if not content:
        return _END
    start = len(sectors)
    sectors += _cut(content)
    _append_chain(chains, len(sectors) - start)
    return start


def _append_chain(chains: list[int], length: int) -> None:
    start = len(chains)
    chains += [*range(start + 1, start + length), _END]


def _table_sizes(content_sectors: int) -> tuple[int, int]:
    """Return how many sectors the table of chains takes, itself counted, and how many list its sectors."""
    for fat_count in count(1):
        difat_count = _pieces(max(0, fat_count - _IN_HEADER), _PER_SECTOR - 1)
        if fat_count * _PER_SECTOR >= content_sectors + fat_count + difat_count:
            return fat_count, difat_count
    raise AssertionError


def _cut(content: bytes) -> list[bytes]:
    padded = content.ljust(_pieces(len(content), _SECTOR) * _SECTOR, b"\0")
    return [padded[at : at + _SECTOR] for at in range(0, len(padded), _SECTOR)]


def _numbers(values: list[int]) -> bytes:
    padded = values + [_FREE] * (-len(values) % _PER_SECTOR)
    return struct.pack(f"<{len(padded)}I", *padded)


def _pieces(size: int, piece: int) -> int:
    return -(-size // piece)
