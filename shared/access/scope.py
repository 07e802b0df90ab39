"""The compiled scope: exactly the versions that a caller may see, in the form in which the index is asked."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sys import byteorder
from typing import Any, Protocol, Self

from pyroaring import FrozenBitMap

from shared.access.predicate import Viewer
from shared.index import fields
from shared.types import AclMode, Principal, ProjectId

_SHOWN_DIGITS = 20


class Pending(Protocol):
    """Something that is worth writing once the answer is out; losing it costs time only."""

    @property
    def key(self) -> str:
        """What it is kept under."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledAccessScope:
    """What one caller may see, true for one SQL snapshot.

    `principals` are expanded. `visible` holds `seq` numbers; it is shared between requests, hence frozen. `snapshot`
    is null when the scope was compiled inside a transaction that had written, or on a standby. `pending` is for
    `AccessService.keep`, after the answer.
    """

    principals: frozenset[Principal]
    mode: AclMode
    visible: FrozenBitMap
    narrowed_to: tuple[ProjectId, ...] | None
    snapshot: str | None
    serialised: bytes
    fingerprint: str
    bitmap_threshold: int
    pending: Pending | None = None

    @classmethod
    def of(
        cls,
        viewer: Viewer,
        visible: FrozenBitMap,
        serialised: bytes,
        *,
        narrowed_to: Iterable[ProjectId] | None,
        snapshot: str | None,
        bitmap_threshold: int,
        pending: Pending | None = None,
    ) -> Self:
        """Return the scope with its fingerprint; `serialised` is `visible` in canonical form."""
        narrowing = None if narrowed_to is None else tuple(sorted(set(narrowed_to)))
        return cls(
            principals=viewer.principals,
            mode=viewer.mode,
            visible=visible,
            narrowed_to=narrowing,
            snapshot=snapshot,
            serialised=serialised,
            fingerprint=_fingerprint(viewer, narrowing, serialised),
            bitmap_threshold=bitmap_threshold,
            pending=pending,
        )

    @property
    def viewer(self) -> Viewer:
        """What the predicate needs to verify hits of this scope."""
        return Viewer(self.principals, self.mode)

    @property
    def administrator(self) -> bool:
        """Whether the rule was skipped for an administrator."""
        return self.viewer.is_administrator

    @property
    def size(self) -> int:
        """How many versions are visible."""
        return len(self.visible)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is visible: then nothing is sent to the index at all."""
        return not self.visible

    @property
    def shown_fingerprint(self) -> str:
        """The part of the fingerprint that is shown and logged."""
        return self.fingerprint[:_SHOWN_DIGITS]

    def opensearch_filter(self) -> dict[str, Any]:
        """Return the one clause that every query carries; equal scopes give equal bytes, so the engine can cache it.

        Never put it under `must_not`: there the engine's own rewrites of an empty set fail open.
        """
        if self.is_empty:
            return {"match_none": {}}
        if self.size <= self.bitmap_threshold:
            return {"terms": {fields.VERSION_SEQ: list(self.visible)}}
        encoded = base64.b64encode(self.serialised).decode("ascii")
        return {"terms": {fields.VERSION_SEQ: [encoded], "value_type": "bitmap"}}


def bitmap_of(packed: bytes | None) -> FrozenBitMap:
    """Return the set that PostgreSQL packed with `string_agg(int4send(seq), '')`."""
    numbers = array("I")
    numbers.frombytes(packed or b"")
    if byteorder == "little":
        numbers.byteswap()
    return FrozenBitMap(numbers)


def serialise(visible: FrozenBitMap) -> bytes:
    """Return the portable form: the same set gives the same bytes, however it came about."""
    visible.run_optimize()  # changes the form only, not the set
    return bytes(visible.serialize())


def _fingerprint(viewer: Viewer, narrowing: Sequence[ProjectId] | None, serialised: bytes) -> str:
    digest = hashlib.sha256()
    narrowed = None if narrowing is None else [str(project) for project in narrowing]
    digest.update(repr((viewer.mode.value, sorted(viewer.principals), narrowed)).encode())
    digest.update(serialised)
    return digest.hexdigest()
