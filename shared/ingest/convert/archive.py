"""ZIP archives: each file in them as a member of its own, unpacked within limits that count real bytes.

What an archive says about itself is only a claim: sizes are counted while they are unpacked. A member that cannot be
had (encrypted, damaged, packed by an unknown method, too large) is a member all the same, with the reason why not.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Sequence
from itertools import pairwise

from shared.errors import EncryptedFileError, LimitExceededError, PermanentError, UnreadableFileError
from shared.ingest.convert.archive_names import MemberName, read_names
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion, Limits, Member, Refusal
from shared.text.converted import ConvertedText

MAX_LISTED = 500
# Deflate reaches 1,032 to 1. Blank forms and tables reach 100; what is small may be as empty as it likes.
_MAX_RATIO = 200
_RATIO_COUNTS_FROM_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_ENCRYPTED = 0x1
_LOCAL_HEADER_BYTES = 30
_NAME_LENGTH_AT = 26
_END_BYTES = 22
_UTF8_FLAG = 0x08
_LEADING_OUT = frozenset({"", ".", ".."})
_BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
)


def convert(content: bytes, limits: Limits) -> Conversion:
    """Return the files in an archive; its own text is the list of their names."""
    with _opened(content) as archive:
        infos = archive.infolist()
        if len(infos) > 2 * limits.members:
            raise LimitExceededError(f"the archive holds {len(infos)} files; {limits.members} are allowed")
        _refuse_overlaps(infos)
        entries = [
            (info, name) for info, name in zip(infos, read_names(infos), strict=True) if not _is_folder(info, name)
        ]
        kept = [(info, name) for info, name in entries if not _is_leavings(name.text)]
        if len(kept) > limits.members:
            raise LimitExceededError(f"the archive holds {len(kept)} files; {limits.members} are allowed")
        unpacking = _Unpacking(archive, content, limits)
        members = [_member(unpacking, info, name) for info, name in kept]
    left_out = len(entries) - len(kept)
    return Conversion(_listing(members, [name for _, name in kept], left_out=left_out), tuple(members))


class _Unpacking:
    """Reads members; all that is unpacked counts against the limits of the whole archive."""

    def __init__(self, archive: zipfile.ZipFile, content: bytes, limits: Limits) -> None:
        self._archive = archive
        self._content = content
        self._limits = limits
        self._total_bytes = 0
        self._allowed_bytes = min(limits.output_bytes, max(_RATIO_COUNTS_FROM_BYTES, _MAX_RATIO * len(content)))

    def read(self, info: zipfile.ZipInfo) -> bytes:
        """Return a member's bytes; a permanent error says why they cannot be had.

        Raises `ArchiveTooLargeError` when it is the archive that is too large, not the member.
        """
        if info.flag_bits & _ENCRYPTED:
            raise EncryptedFileError("the file is encrypted in its archive; store a copy without a password")
        pieces: list[bytes] = []
        size = 0
        self._trust_the_directory(info)
        try:
            with self._archive.open(info) as member:
                while piece := member.read(_PIECE_BYTES):
                    size += len(piece)
                    self._total_bytes += len(piece)
                    if self._total_bytes > self._allowed_bytes:
                        raise ArchiveTooLargeError(
                            f"the archive unpacks to more than {self._allowed_bytes} bytes;"
                            " unpack it and store the files that count"
                        )
                    if size > self._limits.member_bytes:
                        raise LimitExceededError(f"the file is larger than {self._limits.member_bytes} bytes")
                    pieces.append(piece)
        except (NotImplementedError, RuntimeError) as error:
            raise UnreadableFileError(f"the file is packed by a method that is not read here: {error}") from error
        except _BROKEN as error:
            raise UnreadableFileError(f"the file is damaged in its archive: {error}") from error
        return b"".join(pieces)

    def _trust_the_directory(self, info: zipfile.ZipInfo) -> None:
        """Let a member be opened whose own header has another name than the directory, or another encoding of it."""
        start = info.header_offset
        header = self._content[start : start + _LOCAL_HEADER_BYTES]
        if len(header) < _LOCAL_HEADER_BYTES:
            return
        [length] = struct.unpack_from("<H", header, _NAME_LENGTH_AT)
        name = self._content[start + _LOCAL_HEADER_BYTES : start + _LOCAL_HEADER_BYTES + length]
        try:
            info.orig_filename = name.decode("utf-8" if header[7] & _UTF8_FLAG else "cp437")
        except UnicodeDecodeError:
            # Then the reader says that it is damaged.
            return


class ArchiveTooLargeError(Exception):
    """The whole archive goes past a limit."""


def _member(unpacking: _Unpacking, info: zipfile.ZipInfo, name: MemberName) -> Member:
    parts = [part for part in name.text.replace("\\", "/").split("/") if part not in _LEADING_OUT]
    base, folder = parts[-1] if parts else "", "/".join(parts[:-1])
    raw = name.raw if name.raw != "/".join(parts).encode() else None
    try:
        return Member(base, unpacking.read(info), folder=folder, raw_name=raw)
    except ArchiveTooLargeError as error:
        raise LimitExceededError(str(error)) from error
    except PermanentError as error:
        return Member(base, None, folder=folder, raw_name=raw, refused=Refusal.of(error))


def _listing(members: Sequence[Member], names: Sequence[MemberName], *, left_out: int) -> ConvertedText:
    builder = TextBuilder()
    builder.page(None, locus="members")
    for member in members[:MAX_LISTED]:
        builder.add(f"{member.folder}/{member.name}".lstrip("/"))
    meta = {
        "members": len(members),
        "members_refused": sum(member.refused is not None for member in members),
        "members_not_listed": max(0, len(members) - MAX_LISTED),
        "members_left_out": left_out,
        "name_encodings": sorted({name.encoding for name in names}),
    }
    return builder.build(meta={key: value for key, value in meta.items() if value})


def _opened(content: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(content))
    except UnicodeDecodeError:
        pass
    except (*_BROKEN, NotImplementedError) as error:
        raise UnreadableFileError(f"the archive is no whole ZIP file: {error}") from error
    try:
        return zipfile.ZipFile(io.BytesIO(_without_utf8_flags(content)))
    except (*_BROKEN, NotImplementedError) as error:
        raise UnreadableFileError(f"the archive is no whole ZIP file: {error}") from error


def _without_utf8_flags(content: bytes) -> bytes:
    """Return an archive whose names do not claim to be UTF-8, for one of them is not.

    The general purpose flags stand at byte 8 of a directory entry and at byte 6 of a member's own header.
    """
    freed = bytearray(content)
    end = content.rfind(b"PK\x05\x06")
    if end < 0 or end + _END_BYTES > len(content):
        return content
    size, offset = struct.unpack_from("<II", content, end + 12)
    # What stands before the archive shifts all that it says of itself.
    shift = end - size - offset
    position = end - size
    while 0 <= position < end and content[position : position + 4] == b"PK\x01\x02":
        name, extra, comment = struct.unpack_from("<HHH", content, position + 28)
        [header] = struct.unpack_from("<I", content, position + 42)
        freed[position + 9] &= ~_UTF8_FLAG
        if 0 <= header + shift < end:
            freed[header + shift + 7] &= ~_UTF8_FLAG
        position += 46 + name + extra + comment
    return bytes(freed)


def _refuse_overlaps(infos: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse an archive whose members lie over one another: no packer writes that, and each byte would count often."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    for one, following in pairwise(ordered):
        if one.header_offset + _LOCAL_HEADER_BYTES + one.compress_size > following.header_offset:
            raise LimitExceededError("files of the archive lie over one another, as only a bomb has them")


def _is_folder(info: zipfile.ZipInfo, name: MemberName) -> bool:
    return info.is_dir() or name.text.endswith(("/", "\\"))


def _is_leavings(path: str) -> bool:
    """Return whether a member is what a system leaves beside the files: no one wrote it, and no one reads it."""
    base = path.replace("\\", "/").rpartition("/")[2]
    return path.startswith("__MACOSX/") or base in {".DS_Store", "Thumbs.db", "desktop.ini"}
