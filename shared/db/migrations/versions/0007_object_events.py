"""The last event of every object that a bucket told of: what comes later may only be newer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "object_events",
        sa.Column("source_id", pg.UUID(as_uuid=True), nullable=False),
        sa.Column("external_id", sa.Text, nullable=False),
        sa.Column("sequencer", sa.Text, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_object_events_source_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("source_id", "external_id", name="pk_object_events"),
    )
