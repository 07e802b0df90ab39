"""Which matter an object belongs to and why; the numbers by which a matter is recognised."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Numbers of matters that are there already are written by the next scan of the source that names them."""
    op.add_column("matters", sa.Column("from_folder", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_table(
        "matter_numbers",
        sa.Column("matter_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["matter_id"], ["matters.id"], name=op.f("fk_matter_numbers_matter_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("matter_id", "key", name=op.f("pk_matter_numbers")),
    )
    op.create_index("ix_matter_numbers_key", "matter_numbers", ["key"], unique=False)
    op.create_table(
        "matter_assignments",
        sa.Column("source_object_id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=True),
        sa.Column("matter_id", sa.UUID(), nullable=True),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("confidence", sa.REAL(), nullable=False),
        sa.Column(
            "evidence", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="[]", nullable=False
        ),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "method in ('manual', 'path', 'folder', 'inherited', 'number', 'party', 'none')",
            name=op.f("ck_matter_assignments_method_known"),
        ),
        sa.CheckConstraint(
            "(method = 'manual') = (decided_by is not null)", name=op.f("ck_matter_assignments_manual_has_author")
        ),
        sa.CheckConstraint(
            "method in ('manual', 'inherited') or (method = 'none') = (matter_id is null)",
            name=op.f("ck_matter_assignments_none_has_no_matter"),
        ),
        sa.ForeignKeyConstraint(
            ["source_object_id"],
            ["source_objects.id"],
            name=op.f("fk_matter_assignments_source_object_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_matter_assignments_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["matter_id"], ["matters.id"], name=op.f("fk_matter_assignments_matter_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_object_id", name=op.f("pk_matter_assignments")),
    )
    op.create_index("ix_matter_assignments_matter_id", "matter_assignments", ["matter_id"], unique=False)
    op.create_index("ix_matter_assignments_project_id", "matter_assignments", ["project_id"], unique=False)
