"""The names of files in a ZIP archive. Only some of them say in which encoding they are written.

Each name is read by what says most: the Unicode path field of Info-ZIP, the UTF-8 mark, bytes that are UTF-8 anyway;
then by a guess among the code pages that German and Chinese programs write.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_UTF8_MARK = 0x800
_UNICODE_PATH = 0x7075
# Letters with umlauts and sharp s, then signs of names nearby, as the code pages of DOS and of Windows write them.
_DOS = frozenset(b"\x81\x84\x8e\x94\x99\x9a\xe1" + b"\x82\x85\x87\x88\x8a\xf5")
_WINDOWS = frozenset(b"\xe4\xf6\xfc\xc4\xd6\xdc\xdf" + b"\xe9\xe0\xe7\xea\xe8\xa7\x96\x80")
# Two bytes a character, both of the upper half: GB 2312, which every GBK file name is mostly written in.
_GB2312_RUNS = re.compile(rb"(?:[\x00-\x7f]|[\xa1-\xf7][\xa1-\xfe])*\Z")
_HIGH = re.compile(rb"[\x80-\xff]")
_MIN_CHINESE_BYTES = 4
_FALLBACK = "cp850"


@dataclass(frozen=True, slots=True)
class MemberName:
    """A name in an archive: as it reads, the bytes that stand for it, and how it was read."""

    text: str
    raw: bytes
    encoding: str


def read_names(infos: Sequence[zipfile.ZipInfo]) -> list[MemberName]:
    """Return the name of each entry, in order; never fails, and no name is empty of its bytes."""
    raws = [raw_name(info) for info in infos]
    known = [_stated(info, raw) for info, raw in zip(infos, raws, strict=True)]
    # One program wrote the archive, as a rule: a name that could be either is read as most of the clear ones are.
    guesses = Counter(guess for raw, name in zip(raws, known, strict=True) if name is None and (guess := _guess(raw)))
    otherwise = guesses.most_common(1)[0][0] if guesses else _FALLBACK
    return [name or _guessed(raw, otherwise) for raw, name in zip(raws, known, strict=True)]


def raw_name(info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a name as they stand in the archive."""
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8_MARK else "cp437")


def _stated(info: zipfile.ZipInfo, raw: bytes) -> MemberName | None:
    path = _unicode_path(info.extra, raw)
    if path is not None:
        return MemberName(path, raw, "unicode path")
    try:
        return MemberName(raw.decode("utf-8"), raw, "utf-8")
    except UnicodeDecodeError:
        return None


def _guessed(raw: bytes, otherwise: str) -> MemberName:
    encoding = _guess(raw) or otherwise
    try:
        return MemberName(raw.decode(encoding), raw, encoding)
    except UnicodeDecodeError:
        return MemberName(raw.decode(_FALLBACK), raw, _FALLBACK)


def _guess(raw: bytes) -> str | None:
    """Return the code page whose letters the bytes are; None when they are those of both or of neither."""
    high = _HIGH.findall(raw)
    dos = sum(byte[0] in _DOS for byte in high)
    windows = sum(byte[0] in _WINDOWS for byte in high)
    is_western = max(dos, windows) == len(high)
    if len(high) >= _MIN_CHINESE_BYTES and not is_western and _GB2312_RUNS.match(raw) and _reads_as_chinese(raw):
        return "gb18030"
    if dos == windows:
        return None
    return _FALLBACK if dos > windows else "cp1252"


def _reads_as_chinese(raw: bytes) -> bool:
    """Return whether nearly all that is not ASCII is a Chinese character."""
    try:
        letters = [c for c in raw.decode("gb18030") if not c.isascii()]
    except UnicodeDecodeError:
        return False
    ideographs = sum(1 for c in letters if unicodedata.category(c) == "Lo")
    return ideographs * 2 > len(letters)


def _unicode_path(extra: bytes, raw: bytes) -> str | None:
    """Return the name of Info-ZIP's extra field 0x7075 (version 1, CRC-32 of the plain name, UTF-8 name)."""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        field = extra[position + 4 : position + 4 + size]
        position += 4 + size
        if kind != _UNICODE_PATH or len(field) != size or size <= 5 or field[0] != 1:  # noqa: PLR2004 - 1 + 4 bytes
            continue
        # A name changed since by a program that does not know the field has another checksum.
        if struct.unpack_from("<I", field, 1)[0] == zlib.crc32(raw):
            try:
                return field[5:].decode("utf-8")
            except UnicodeDecodeError:
                return None
    return None
