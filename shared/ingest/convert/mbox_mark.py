"""What a mail begins with in a file of several (mbox, RFC 4155)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

_MARK = b"From "
# A time in the line, and a header below it: else it is a line of somebody's text.
_LINE = re.compile(rb"From [^\r\n]{0,200}\d\d:\d\d[^\r\n]{0,60}\r?\n(?=>?[A-Za-z][!-9;-~]{0,60}:)")
_BLANK_LINES = (b"\n\n", b"\n\r\n")
_BLANK_BYTES = 3
_MAX_LOOKS = 20_000


def beginnings(content: bytes, *, looks: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield where each mail's own line begins and ends; such a line stands at the very start or below a blank one.

    After so many `looks` at lines that only might be one it ends.
    """
    at = content.find(_MARK)
    for _ in count() if looks is None else range(looks):
        if at < 0:
            return
        is_free = at == 0 or content[max(0, at - _BLANK_BYTES) : at].endswith(_BLANK_LINES)
        if is_free and (line := _LINE.match(content, at)) is not None:
            yield line.span()
        at = content.find(_MARK, at + 1)


def is_mbox(content: bytes) -> bool:
    """Return whether a file holds several mails; one mail may have such a line above it, too."""
    if not content.startswith(_MARK):
        return False
    found = beginnings(content, looks=_MAX_LOOKS)
    return next(found, None) is not None and next(found, None) is not None
