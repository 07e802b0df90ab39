"""Which matter an object belongs to and why, and the numbers by which a matter is recognised."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, metadata, one_of, reference
from shared.types import MatterMethod

matter_numbers = sa.Table(
    "matter_numbers",
    metadata,
    reference("matter_id", "matters.id"),
    # What all spellings of a number have in common, and the number as it is configured.
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("number", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("matter_id", "key"),
    sa.Index("ix_matter_numbers_key", "key"),
)

matter_assignments = sa.Table(
    "matter_assignments",
    metadata,
    sa.Column("source_object_id", sa.ForeignKey("source_objects.id", ondelete="CASCADE"), primary_key=True),
    reference("project_id", "projects.id", nullable=True),
    # A matter that is deleted takes its assignments along: a manual one would else read "in no matter".
    reference("matter_id", "matters.id", nullable=True),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("confidence", sa.REAL, nullable=False),
    # [{"kind", "value", "matters"}]: what it was read from, and every matter that it speaks for.
    sa.Column("evidence", Json, nullable=False, server_default="[]"),
    # Who decided, for a manual one.
    sa.Column("decided_by", sa.Text),
    sa.Column("decided_at", Moment, nullable=False, server_default=sa.func.now()),
    one_of("method", MatterMethod),
    sa.CheckConstraint("(method = 'manual') = (decided_by is not null)", name="manual_has_author"),
    sa.CheckConstraint(
        "method in ('manual', 'inherited') or (method = 'none') = (matter_id is null)", name="none_has_no_matter"
    ),
    sa.Index("ix_matter_assignments_matter_id", "matter_id"),
    sa.Index("ix_matter_assignments_project_id", "project_id"),
)
