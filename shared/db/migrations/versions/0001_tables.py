"""Make all tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from shared.db.tables import base

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("producer_version", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("storage_key", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column(
            "meta", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "producer", "producer_version", "kind", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("principals", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("scope_fingerprint", sa.Text(), nullable=True),
        sa.Column("query_hash", sa.Text(), nullable=True),
        sa.Column("query_chars", sa.Integer(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("correlation_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index("ix_audit_events_at", "audit_events", ["at"], unique=False)
    op.create_table(
        "index_outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("version_seq", sa.Integer(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("stale_chunk_ids", sa.ARRAY(sa.Uuid()), server_default="{}", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("operation in ('index', 'delete')", name=op.f("ck_index_outbox_operation_known")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_index_outbox")),
    )
    op.create_index(
        "ix_index_outbox_open", "index_outbox", ["id"], unique=False, postgresql_where=sa.text("done_at is null")
    )
    op.create_index("ix_index_outbox_version_id", "index_outbox", ["version_id"], unique=False)
    op.create_table(
        "kept_scopes",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("snapshot", base.PgSnapshot(), nullable=False),
        sa.Column("principals", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("visible", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_kept_scopes")),
    )
    op.create_index("ix_kept_scopes_used_at", "kept_scopes", ["used_at"], unique=False)
    op.create_table(
        "parties",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("normalised_name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_parties")),
        sa.UniqueConstraint("normalised_name", name=op.f("uq_parties_normalised_name")),
    )
    op.create_table(
        "principal_aliases",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("principal <> alias", name=op.f("ck_principal_aliases_not_itself")),
        sa.PrimaryKeyConstraint("principal", "alias", name=op.f("pk_principal_aliases")),
    )
    op.create_index(
        "ix_principal_aliases_alias", "principal_aliases", ["alias"], unique=False, postgresql_include=["principal"]
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("key", name=op.f("uq_projects_key")),
    )
    op.create_table(
        "scope_epoch",
        sa.Column("one", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("token", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("floor", base.Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.CheckConstraint("one", name=op.f("ck_scope_epoch_single_row")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_scope_epoch")),
    )
    op.create_table(
        "scope_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("xid", base.Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.UUID(), nullable=True),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind in ('project', 'document', 'source_object', 'version', 'everything')",
            name=op.f("ck_scope_log_kind_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scope_log")),
    )
    op.create_index("ix_scope_log_xid", "scope_log", ["xid"], unique=False)
    op.create_table(
        "sources",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("memberships_as_of", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind in ('local_fs', 's3', 'external')", name=op.f("ck_sources_kind_known")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
    )
    op.create_table(
        "entity_identifiers",
        sa.Column("party_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["party_id"], ["parties.id"], name=op.f("fk_entity_identifiers_party_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("party_id", "kind", "canonical", name=op.f("pk_entity_identifiers")),
    )
    op.create_index("ix_entity_identifiers_canonical", "entity_identifiers", ["canonical"], unique=False)
    op.create_table(
        "ingest_runs",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "counts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_ingest_runs_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingest_runs")),
    )
    op.create_table(
        "matters",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("reference_numbers", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("practice_area", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_matters_project_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_matters")),
        sa.UniqueConstraint("key", name=op.f("uq_matters_key")),
    )
    op.create_index("ix_matters_project_id", "matters", ["project_id"], unique=False)
    op.create_table(
        "project_grants",
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("effect in ('allow', 'deny')", name=op.f("ck_project_grants_effect_known")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_project_grants_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "principal", "effect", name=op.f("pk_project_grants")),
    )
    op.create_index(
        "ix_project_grants_principal",
        "project_grants",
        ["principal", "effect"],
        unique=False,
        postgresql_include=["project_id"],
    )
    op.create_table(
        "source_group_members",
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.Column("group_principal", sa.Text(), nullable=False),
        sa.Column("member_principal", sa.Text(), nullable=False),
        sa.CheckConstraint("group_principal like 'group:_%'", name=op.f("ck_source_group_members_group_is_group")),
        sa.CheckConstraint(
            "member_principal ~ '^(user|username|group):.'",
            name=op.f("ck_source_group_members_member_is_user_or_group"),
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_source_group_members_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            "source_id", "group_principal", "member_principal", name=op.f("pk_source_group_members")
        ),
    )
    op.create_index(
        "ix_source_group_members_member",
        "source_group_members",
        ["member_principal"],
        unique=False,
        postgresql_include=["group_principal"],
    )
    op.create_table(
        "source_objects",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mime", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("modified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source_version", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.UUID(), nullable=True),
        sa.Column("acl_state", sa.Text(), server_default="unknown", nullable=False),
        sa.Column("acl_as_of", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acl_warning", sa.Text(), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("acl_state in ('unknown', 'known')", name=op.f("ck_source_objects_acl_state_known")),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["source_objects.id"], name=op.f("fk_source_objects_parent_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_source_objects_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_objects")),
        sa.UniqueConstraint("source_id", "external_id", name=op.f("uq_source_objects_source_id_external_id")),
    )
    op.create_index("ix_source_objects_parent_id", "source_objects", ["parent_id"], unique=False)
    op.create_table(
        "documents",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=True),
        sa.Column("matter_id", sa.UUID(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("doc_type", sa.Text(), nullable=True),
        sa.Column("doc_type_ancestors", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("language", sa.Text(), server_default="und", nullable=False),
        sa.Column("doc_date", sa.Date(), nullable=True),
        sa.Column("doc_date_precision", sa.Text(), nullable=True),
        sa.Column("doc_date_raw", sa.Text(), nullable=True),
        sa.Column(
            "identifiers",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
        ),
        sa.Column("latest_final_version_id", sa.UUID(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "(doc_date is null) = (doc_date_precision is null) and doc_date_precision in ('day', 'month', 'year')",
            name=op.f("ck_documents_doc_date_precision_known"),
        ),
        sa.ForeignKeyConstraint(
            ["matter_id"], ["matters.id"], name=op.f("fk_documents_matter_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_documents_project_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
    )
    op.create_index("ix_documents_matter_id", "documents", ["matter_id"], unique=False)
    op.create_index("ix_documents_project_id", "documents", ["project_id"], unique=False, postgresql_include=["id"])
    op.create_table(
        "ingest_state",
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("producer_version", sa.Text(), nullable=False),
        sa.Column("input_sha256", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column(
            "result", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status in ('pending', 'running', 'done', 'failed')", name=op.f("ck_ingest_state_status_known")
        ),
        sa.ForeignKeyConstraint(
            ["source_object_id"],
            ["source_objects.id"],
            name=op.f("fk_ingest_state_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("source_object_id", "stage", name=op.f("pk_ingest_state")),
    )
    op.create_index("ix_ingest_state_next_try_at", "ingest_state", ["next_try_at"], unique=False)
    op.create_table(
        "matter_parties",
        sa.Column("matter_id", sa.UUID(), nullable=False),
        sa.Column("party_id", sa.UUID(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["matter_id"], ["matters.id"], name=op.f("fk_matter_parties_matter_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["party_id"], ["parties.id"], name=op.f("fk_matter_parties_party_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("matter_id", "party_id", "role", name=op.f("pk_matter_parties")),
    )
    op.create_index("ix_matter_parties_party_id", "matter_parties", ["party_id"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_object_id"], ["source_objects.id"], name=op.f("fk_quarantine_source_object_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_object_id", name=op.f("pk_quarantine")),
    )
    op.create_table(
        "source_object_grants",
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("effect in ('allow', 'deny')", name=op.f("ck_source_object_grants_effect_known")),
        sa.ForeignKeyConstraint(
            ["source_object_id"],
            ["source_objects.id"],
            name=op.f("fk_source_object_grants_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("source_object_id", "principal", "effect", name=op.f("pk_source_object_grants")),
    )
    op.create_index(
        "ix_source_object_grants_principal",
        "source_object_grants",
        ["principal", "effect"],
        unique=False,
        postgresql_include=["source_object_id"],
    )
    op.create_table(
        "document_grants",
        sa.Column("document_id", sa.UUID(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("effect in ('allow', 'deny')", name=op.f("ck_document_grants_effect_known")),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_document_grants_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", "principal", "effect", name=op.f("pk_document_grants")),
    )
    op.create_index(
        "ix_document_grants_principal",
        "document_grants",
        ["principal", "effect"],
        unique=False,
        postgresql_include=["document_id"],
    )
    op.create_table(
        "document_parties",
        sa.Column("document_id", sa.UUID(), nullable=False),
        sa.Column("party_id", sa.UUID(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_document_parties_document_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["party_id"], ["parties.id"], name=op.f("fk_document_parties_party_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", "party_id", "role", name=op.f("pk_document_parties")),
    )
    op.create_index("ix_document_parties_party_id", "document_parties", ["party_id"], unique=False)
    op.create_table(
        "document_versions",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("seq", sa.Integer(), sa.Identity(always=True, start=1), nullable=False),
        sa.Column("document_id", sa.UUID(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=True),
        sa.Column("status", sa.Text(), server_default="unknown", nullable=False),
        sa.Column(
            "status_evidence",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
        ),
        sa.Column("redline_of", sa.UUID(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("mime", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column(
            "facts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("indexed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status in ('draft', 'final', 'executed', 'unknown')", name=op.f("ck_document_versions_status_known")
        ),
        sa.CheckConstraint("seq > 0", name=op.f("ck_document_versions_seq_positive")),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_document_versions_document_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["redline_of"], ["document_versions.id"], name=op.f("fk_document_versions_redline_of"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_versions")),
        sa.UniqueConstraint("document_id", "sha256", name=op.f("uq_document_versions_document_id_sha256")),
        sa.UniqueConstraint("seq", name=op.f("uq_document_versions_seq")),
    )
    op.create_index(
        "ix_document_versions_document_id",
        "document_versions",
        ["document_id"],
        unique=False,
        postgresql_include=["id", "seq"],
    )
    op.create_index("ix_document_versions_sha256", "document_versions", ["sha256"], unique=False)
    op.create_table(
        "chunks",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("char_start", sa.Integer(), nullable=True),
        sa.Column("char_end", sa.Integer(), nullable=True),
        sa.Column("page_from", sa.Integer(), nullable=True),
        sa.Column("page_to", sa.Integer(), nullable=True),
        sa.Column("locus", sa.Text(), nullable=True),
        sa.Column("clause_type", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("embedded_sha256", sa.Text(), nullable=True),
        sa.CheckConstraint("kind in ('chunk', 'profile', 'clause')", name=op.f("ck_chunks_kind_known")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["document_versions.id"], name=op.f("fk_chunks_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint("version_id", "kind", "ordinal", name=op.f("uq_chunks_version_id_kind_ordinal")),
    )
    op.create_table(
        "version_sources",
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_object_id"],
            ["source_objects.id"],
            name=op.f("fk_version_sources_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["document_versions.id"], name=op.f("fk_version_sources_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("version_id", "source_object_id", name=op.f("pk_version_sources")),
    )
    op.create_index(
        "ix_version_sources_source_object_id",
        "version_sources",
        ["source_object_id"],
        unique=False,
        postgresql_include=["version_id"],
    )
