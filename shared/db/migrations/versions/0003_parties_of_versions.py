"""Parties are read from a version and are that version's: a draft's change must not show in the final."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table anew: of a document's rows nobody can tell which version they were read from."""
    op.drop_table("document_parties")
    op.create_table(
        "document_parties",
        sa.Column("version_id", sa.UUID(), nullable=False),
        sa.Column("party_id", sa.UUID(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"], ["document_versions.id"], name=op.f("fk_document_parties_version_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["party_id"], ["parties.id"], name=op.f("fk_document_parties_party_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("version_id", "party_id", "role", name=op.f("pk_document_parties")),
    )
    op.create_index("ix_document_parties_party_id", "document_parties", ["party_id"], unique=False)
