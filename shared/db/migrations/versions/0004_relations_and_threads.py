"""Relations by intent and key, threads of mail, decisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "document_versions", sa.Column("is_comparison", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.create_table(
        "relation_intents",
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("realm", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("by_name", sa.Boolean(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "kind in ('supersedes', 'annex_of', 'responds_to', 'references', 'amends', 'contains', 'redline_of', "
            "'belongs_to_thread')",
            name=op.f("ck_relation_intents_kind_known"),
        ),
        sa.CheckConstraint("confidence > 0 and confidence <= 1", name=op.f("ck_relation_intents_confidence_in_range")),
        sa.ForeignKeyConstraint(
            ["version_id", "source_object_id"],
            ["version_sources.version_id", "version_sources.source_object_id"],
            name=op.f("fk_relation_intents_version_id_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "version_id", "source_object_id", "kind", "realm", "key", name=op.f("pk_relation_intents")
        ),
    )
    op.create_index("ix_relation_intents_key", "relation_intents", ["key", "realm"], unique=False)
    op.create_table(
        "relation_keys",
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("realm", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("by_name", sa.Boolean(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id", "source_object_id"],
            ["version_sources.version_id", "version_sources.source_object_id"],
            name=op.f("fk_relation_keys_version_id_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("version_id", "source_object_id", "realm", "key", name=op.f("pk_relation_keys")),
    )
    op.create_index("ix_relation_keys_key", "relation_keys", ["key", "realm"], unique=False)
    op.create_table(
        "thread_messages",
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("realm", sa.UUID(), nullable=False),
        sa.Column("thread_id", sa.UUID(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("ids", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("is_reply", sa.Boolean(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=True),
        sa.Column("people", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["version_id"], ["document_versions.id"], name=op.f("fk_thread_messages_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("version_id", name=op.f("pk_thread_messages")),
    )
    op.create_index("ix_thread_messages_ids", "thread_messages", ["ids"], unique=False, postgresql_using="gin")
    op.create_index("ix_thread_messages_subject", "thread_messages", ["realm", "subject"], unique=False)
    op.create_index("ix_thread_messages_thread_id", "thread_messages", ["thread_id"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("from_version_id", sa.UUID(), nullable=True),
        sa.Column("to_version_id", sa.UUID(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("locus", sa.Text(), nullable=True),
        sa.Column("from_start", sa.Integer(), nullable=True),
        sa.Column("from_end", sa.Integer(), nullable=True),
        sa.Column("to_start", sa.Integer(), nullable=True),
        sa.Column("to_end", sa.Integer(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("author_version_id", sa.UUID(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("evidence", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.CheckConstraint("kind in ('changed', 'added', 'removed', 'resolved')", name=op.f("ck_decisions_kind_known")),
        sa.CheckConstraint("confidence > 0 and confidence <= 1", name=op.f("ck_decisions_confidence_in_range")),
        sa.ForeignKeyConstraint(
            ["author_version_id"],
            ["document_versions.id"],
            name=op.f("fk_decisions_author_version_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["from_version_id"], ["document_versions.id"], name=op.f("fk_decisions_from_version_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["to_version_id"], ["document_versions.id"], name=op.f("fk_decisions_to_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index("ix_decisions_from_version_id", "decisions", ["from_version_id"], unique=False)
    op.create_index("ix_decisions_to_version_id", "decisions", ["to_version_id"], unique=False)
    op.create_index(
        "ix_document_versions_redline_of",
        "document_versions",
        ["redline_of"],
        unique=False,
        postgresql_where=sa.text("redline_of is not null"),
    )
