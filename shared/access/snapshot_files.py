"""A file of ACLs or memberships of any size: JSON Lines, a header that says how many lines follow, then one a line.

A file is read twice: checked to its last line before anything is applied, and then applied. What was cut off, what does
not say that it is whole, a wrong count, a name that stands there twice or a line that cannot be read: nothing of it.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from shared.access.snapshots import MAX_MEMBERSHIPS, FileHeader, FileKind, GroupMembers, ObjectAcl
from shared.errors import InvalidRequestError
from shared.text.normalise import stored

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""One group with all the members that one source may have."""

Line = ObjectAcl | GroupMembers
Reader = Callable[[int, Line], None]
_MODELS: Final[dict[FileKind, type[ObjectAcl | GroupMembers]]] = {
    FileKind.ACL: ObjectAcl,
    FileKind.MEMBERSHIPS: GroupMembers,
}


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was read to its end and found whole."""

    header: FileHeader
    sha256: str


def checked(file: BinaryIO, *, seen: Reader | None = None) -> CheckedFile:
    """Read the file to its end and return its header; `seen` gets each line's number and content on the way.

    Raises `InvalidRequestError` naming the line that is wrong.
    """
    names, by, members = array("Q"), set[str](), 0
    lines = _Lines(file)
    for number, line in lines:
        names.append(_digest(line))
        by.add(named_by(line))
        if len(by) > 1:
            # One object by its id and by its path would be two ACLs of one object.
            raise _wrong(number, "the objects are named by external_id or by path, all in the same way")
        if isinstance(line, GroupMembers):
            members += len(line.members)
            if members > MAX_MEMBERSHIPS:
                raise _wrong(number, f"more than {MAX_MEMBERSHIPS} memberships")
        if seen is not None:
            seen(number, line)
    if len(names) != lines.header.count:
        raise InvalidRequestError(
            f"the header says {lines.header.count} lines, and {len(names)} follow: the file is not whole", field="count"
        )
    _refuse_doubles(file, names)
    return CheckedFile(lines.header, lines.sha256)


def lines_of(file: BinaryIO, checked_file: CheckedFile) -> Iterator[Line]:
    """Yield what a checked file holds. Raises `InvalidRequestError` at the end if it has changed since."""
    lines = _Lines(file)
    for _, line in lines:
        yield line
    if lines.sha256 != checked_file.sha256:
        raise InvalidRequestError("the file was changed while it was read; apply it again")


def name_of(line: Line) -> str:
    """Return what the line is about: an id, a path in its stored form, or a group."""
    if isinstance(line, GroupMembers):
        return line.group
    return line.external_id if line.external_id is not None else stored(line.path or "")


def named_by(line: Line) -> str:
    """Return the field that names what the line is about."""
    if isinstance(line, GroupMembers):
        return "group"
    return "path" if line.external_id is None else "external_id"


class _Lines:
    """The lines below the header, each with its number; then the hash of all bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        file.seek(0)
        try:
            self.header = FileHeader.model_validate(self._read(1))
        except ValidationError as error:
            raise _wrong(1, _said(error)) from error

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[tuple[int, Line]]:
        model, number = _MODELS[self.header.kind], 1
        while True:
            number += 1
            content = self._read(number)
            if content is None:
                return
            try:
                yield number, model.model_validate(content)
            except ValidationError as error:
                raise _wrong(number, _said(error)) from error

    def _read(self, number: int) -> dict[str, Any] | None:
        """Return the object on the next line, None at the end."""
        raw = self._file.readline(MAX_LINE_BYTES + 1)
        self._hash.update(raw)
        if not raw:
            if number == 1:
                raise _wrong(number, "the file is empty")
            return None
        if len(raw) > MAX_LINE_BYTES:
            raise _wrong(number, f"the line is longer than {MAX_LINE_BYTES} bytes")
        try:
            content = json.loads(raw, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise _wrong(number, f"no JSON object: {error}") from error
        if not isinstance(content, dict):
            raise _wrong(number, "no JSON object")
        return content


def _refuse_doubles(file: BinaryIO, digests: array[int]) -> None:
    ordered = sorted(digests)
    suspects = {one for one, other in pairwise(ordered) if one == other}
    if not suspects:
        return
    # Two names can have one digest: only equal names are refused.
    met: dict[str, int] = {}
    for number, line in _Lines(file):
        if _digest(line) in suspects:
            first = met.setdefault(name_of(line), number)
            if first != number:
                raise _wrong(number, f"{name_of(line)[:200]!r} stands there twice, first on line {first}")


def _digest(line: Line) -> int:
    return int.from_bytes(hashlib.blake2b(name_of(line).encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _said(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'line'}: {one['msg']}" for one in error.errors()[:3])


def _wrong(number: int, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"line {number}: {problem}", field=f"line {number}")
