"""Where a list by metadata goes on: sealed, so that nobody can read or change it.

Inside stand the number of the last row, which would tell how many versions the firm has, and how many results came
before, which the last page's total is made of. A cursor is good for the caller and the filters that it was made for,
and for a day. It decides nothing about access: every page is filtered and verified anew.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from shared.errors import InvalidRequestError
from shared.search.bodies import MAX_ORDINAL
from shared.search.request import FilterRequest

KEY_LABEL: Final = "search.filter cursor"
LIFETIME_S: Final = 24 * 60 * 60
_FORMAT: Final = b"\x01"
_NONCE_BYTES: Final = 12
# Until when, day, version, results seen, filters. Always as long, so that its length tells nothing either.
_BODY: Final = struct.Struct(">qqqq16s")


@dataclass(frozen=True, slots=True)
class Position:
    """The list goes on behind this day (as the index counts it) and version; `seen` results came before."""

    day: int
    version_seq: int
    seen: int

    @property
    def after(self) -> list[int]:
        """The sort values to go on behind: after all rows of the version."""
        return [self.day, self.version_seq, MAX_ORDINAL]


class CursorSeal:
    """Seals positions into cursors and opens them again (AES-256-GCM)."""

    def __init__(self, key: bytes, *, now: Callable[[], float] = time.time) -> None:
        self._key = key
        self._now = now

    def sealed(self, position: Position, request: FilterRequest, *, subject: str) -> str:
        """Return the cursor for the page after `position`."""
        # An import of some 20 ms, which only those pay who follow a list.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        until = int(self._now()) + LIFETIME_S
        body = _BODY.pack(until, position.day, position.version_seq, position.seen, _digest(request))
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._key).encrypt(nonce, body, _bound_to(subject))
        return base64.urlsafe_b64encode(_FORMAT + nonce + sealed).decode("ascii").rstrip("=")

    def opened(self, request: FilterRequest, *, subject: str) -> Position | None:
        """Return where `request` goes on, None at the beginning. Raises `InvalidRequestError` on any other cursor."""
        if request.cursor is None:
            return None
        until, day, version_seq, seen, digest = _BODY.unpack(self._body(request.cursor, subject))
        if digest != _digest(request):
            raise _invalid("cursor belongs to other filters; start again without it")
        if until < self._now():
            raise _invalid("cursor is older than a day; start again without it")
        return Position(day=day, version_seq=version_seq, seen=seen)

    def _body(self, cursor: str, subject: str) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            content = base64.b64decode(padded, altchars=b"-_", validate=True)
            nonce, sealed = content[1 : 1 + _NONCE_BYTES], content[1 + _NONCE_BYTES :]
            if content[:1] == _FORMAT and len(nonce) == _NONCE_BYTES:
                return AESGCM(self._key).decrypt(nonce, sealed, _bound_to(subject))
        except (ValueError, InvalidTag) as error:
            raise _invalid("cursor is not one that this service gave you") from error
        raise _invalid("cursor is not one that this service gave you")


def _bound_to(subject: str) -> bytes:
    return _FORMAT + subject.encode("utf-8", "surrogatepass")


def _digest(request: FilterRequest) -> bytes:
    asked = request.model_dump(mode="json", include={"filters", "project_ids"})
    asked["project_ids"] = sorted(asked["project_ids"] or [])
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()[:16]


def _invalid(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="cursor")
