"""Client files, matters, parties, documents and their versions."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import (
    Json,
    Moment,
    TextArray,
    Uuid,
    created_at,
    id_column,
    metadata,
    one_of,
    reference,
)
from shared.types import VersionStatus

projects = sa.Table(
    "projects",
    metadata,
    id_column(),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    created_at(),
)

matters = sa.Table(
    "matters",
    metadata,
    id_column(),
    reference("project_id", "projects.id", nullable=True, cascade=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("reference_numbers", TextArray, nullable=False, server_default="{}"),
    sa.Column("practice_area", sa.Text),
    sa.Column("status", sa.Text, nullable=False, server_default="open"),
    # Made from a folder, so its title is the folder's name: content of other places never leads into it.
    sa.Column("from_folder", sa.Boolean, nullable=False, server_default=sa.false()),
    created_at(),
    sa.Index("ix_matters_project_id", "project_id"),
)

parties = sa.Table(
    "parties",
    metadata,
    id_column(),
    # Shown for matters: as the configuration writes it. A party known from texts only has its normalised name here.
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("normalised_name", sa.Text, nullable=False, unique=True),
    created_at(),
)

matter_parties = sa.Table(
    "matter_parties",
    metadata,
    reference("matter_id", "matters.id"),
    reference("party_id", "parties.id"),
    sa.Column("role", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("matter_id", "party_id", "role"),
    sa.Index("ix_matter_parties_party_id", "party_id"),
)

entity_identifiers = sa.Table(
    "entity_identifiers",
    metadata,
    reference("party_id", "parties.id"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("canonical", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("party_id", "kind", "canonical"),
    sa.Index("ix_entity_identifiers_canonical", "canonical"),
)

documents = sa.Table(
    "documents",
    metadata,
    id_column(),
    reference("project_id", "projects.id", nullable=True, cascade=False),
    reference("matter_id", "matters.id", nullable=True, cascade=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("doc_type", sa.Text),
    sa.Column("doc_type_ancestors", TextArray, nullable=False, server_default="{}"),
    sa.Column("language", sa.Text, nullable=False, server_default="und"),
    # A plain calendar day; precision says how much of it was written.
    sa.Column("doc_date", sa.Date),
    sa.Column("doc_date_precision", sa.Text),
    sa.Column("doc_date_raw", sa.Text),
    # [{"kind", "raw", "canonical"}]: both forms are kept, the index holds the canonical one.
    sa.Column("identifiers", Json, nullable=False, server_default="[]"),
    # The version that stands for the document when several match alike; no foreign key, versions refer to documents.
    sa.Column("latest_final_version_id", Uuid),
    created_at(),
    sa.Column("updated_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.CheckConstraint(
        "(doc_date is null) = (doc_date_precision is null) and doc_date_precision in ('day', 'month', 'year')",
        name="doc_date_precision_known",
    ),
    sa.Index("ix_documents_project_id", "project_id", postgresql_include=["id"]),
    sa.Index("ix_documents_matter_id", "matter_id"),
)

document_parties = sa.Table(
    "document_parties",
    metadata,
    reference("version_id", "document_versions.id"),
    reference("party_id", "parties.id"),
    sa.Column("role", sa.Text, nullable=False),
    # As this version writes it: the row of `parties` is shared with whoever else names the party.
    sa.Column("name", sa.Text, nullable=False),
    # {"text", "char_start", "char_end"}: where the version's text says so; without offsets it was a file's own field.
    sa.Column("evidence", Json, nullable=False),
    sa.PrimaryKeyConstraint("version_id", "party_id", "role"),
    sa.Index("ix_document_parties_party_id", "party_id"),
)

document_versions = sa.Table(
    "document_versions",
    metadata,
    id_column(),
    sa.Column("seq", sa.Integer, sa.Identity(always=True, start=1), nullable=False, unique=True),
    reference("document_id", "documents.id"),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("ordinal", sa.Integer),
    sa.Column("status", sa.Text, nullable=False, server_default=VersionStatus.UNKNOWN),
    # [{"kind", "value"}]: what the status was read from.
    sa.Column("status_evidence", Json, nullable=False, server_default="[]"),
    reference("redline_of", "document_versions.id", nullable=True, cascade=False),
    # A redline of a version that lies there without the changes as well: such a one stands for no document.
    sa.Column("is_comparison", sa.Boolean, nullable=False, server_default=sa.false()),
    # Title of this version's own content; a document's title is that of its latest final version.
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("mime", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    # What was read from this version (type, language, date, identifiers); the document shows its latest final's.
    sa.Column("facts", Json, nullable=False, server_default="{}"),
    # Set when every row of the version is in the index.
    sa.Column("indexed_at", Moment),
    created_at(),
    one_of("status", VersionStatus),
    sa.CheckConstraint("seq > 0", name="seq_positive"),
    sa.UniqueConstraint("document_id", "sha256"),
    sa.Index("ix_document_versions_document_id", "document_id", postgresql_include=["id", "seq"]),
    sa.Index("ix_document_versions_sha256", "sha256"),
    sa.Index("ix_document_versions_redline_of", "redline_of", postgresql_where=sa.text("redline_of is not null")),
    sa.Index("ix_document_versions_unindexed", "seq", postgresql_where=sa.text("indexed_at is null")),
)
