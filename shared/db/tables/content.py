"""What stages make of a version: content-addressed artifacts and the chunks that are indexed."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Uuid, created_at, metadata, one_of, reference
from shared.types import ChunkKind

artifacts = sa.Table(
    "artifacts",
    metadata,
    # Of the original bytes; with producer and its version the key of a result that is never made twice.
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("producer", sa.Text, nullable=False),
    sa.Column("producer_version", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("storage_key", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("meta", Json, nullable=False, server_default="{}"),
    created_at(),
    sa.PrimaryKeyConstraint("sha256", "producer", "producer_version", "kind"),
)

chunks = sa.Table(
    "chunks",
    metadata,
    # UUID version 5 of (version, kind, ordinal): the same on every run; also the id of the index row.
    sa.Column("id", Uuid, primary_key=True),
    reference("version_id", "document_versions.id"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    # As stored (NFC); [char_start, char_end) in the version's text, null for a profile.
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("char_start", sa.Integer),
    sa.Column("char_end", sa.Integer),
    sa.Column("page_from", sa.Integer),
    sa.Column("page_to", sa.Integer),
    sa.Column("locus", sa.Text),
    sa.Column("clause_type", sa.Text),
    sa.Column("language", sa.Text, nullable=False),
    # Hash of the string that was embedded; the vector itself lies in the index and the embedding cache.
    sa.Column("embedded_sha256", sa.Text),
    one_of("kind", ChunkKind),
    sa.UniqueConstraint("version_id", "kind", "ordinal"),
)
