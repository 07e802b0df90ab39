"""The id of a chunk, which is also the id of its row in the index."""

from __future__ import annotations

from uuid import uuid5

from shared.types import ChunkId, ChunkKind, VersionId


def chunk_id(version_id: VersionId, kind: ChunkKind, ordinal: int) -> ChunkId:
    """Return the same id for the same version, kind and ordinal on every run, so that writing twice is harmless."""
    return ChunkId(uuid5(version_id, f"{kind}:{ordinal}"))


def head_id(version_id: VersionId) -> ChunkId:
    """Return the id of the row that stands for a version without any text, so that its metadata are found."""
    return ChunkId(uuid5(version_id, "head"))
