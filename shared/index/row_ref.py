"""What a ranked search is told about a row: one packed field instead of six.

A first page reads up to 1,200 rows. Asking for `_id` or `_source` makes the engine unpack each row's stored text, and
every further field adds to its answer and to ours: see docs/adr/0004-index-and-writes.md for the figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from shared.index import fields
from shared.types import ChunkKind, VersionStatus

LIGHT_ROWS: Final[dict[str, Any]] = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": [fields.ROW],
}
"""Body parameters of a search that needs no more of a row than its `RowRef`."""

CHUNK_ID_CHARS: Final = 36
# Calling an enumeration costs ten times as much, for each of some hundred rows.
_KINDS: Final = {kind.value: kind for kind in ChunkKind}
_STATUSES: Final = {status.value: status for status in VersionStatus}


class RowRef(NamedTuple):
    """Which chunk a row stands for, and what fusion, priors, collapse and a total order need to know of it."""

    chunk_id: str
    document_id: str
    version_seq: int
    ordinal: int
    kind: ChunkKind
    status: VersionStatus


def packed(ref: RowRef) -> str:
    """Return the text of `ref` as it lies in the index; it starts with the chunk id."""
    return " ".join(map(str, ref))


def unpacked(text: str) -> RowRef:
    """Return the `RowRef` that was packed. Raises `ValueError` on anything else."""
    chunk_id, document_id, version_seq, ordinal, kind, status = text.split(" ")
    try:
        row = (chunk_id, document_id, int(version_seq), int(ordinal), _KINDS[kind], _STATUSES[status])
    except KeyError as error:
        raise ValueError(f"no kind or status of a row: {error}") from error
    return RowRef._make(row)


def version_seq_of(text: str) -> int:
    """Return the version of a packed row without reading the rest."""
    return int(text.split(" ", 3)[2])


def statuses_of(texts: Iterable[str]) -> list[str]:
    """Return the status of each packed row without reading the rest."""
    return [text.rpartition(" ")[2] for text in texts]
