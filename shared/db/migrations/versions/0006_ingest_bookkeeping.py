"""What a scan saw, which deletions are held, who is at which object, and what a listing says about changed bytes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("file_id", "fingerprint", "fetched_fingerprint"):
        op.add_column("source_objects", sa.Column(name, sa.Text))
    op.create_index(
        "ix_source_objects_file_id",
        "source_objects",
        ["source_id", "file_id"],
        postgresql_where=sa.text("file_id is not null"),
    )
    op.add_column("ingest_runs", _moment("listed_from"))
    op.create_index("ix_ingest_runs_source_id", "ingest_runs", ["source_id"])
    op.add_column("ingest_state", sa.Column("claimed_by", sa.Text))
    op.create_index(
        "ix_document_versions_unindexed",
        "document_versions",
        ["seq"],
        postgresql_where=sa.text("indexed_at is null"),
    )
    _scanned_objects()
    _held_deletions()


def _scanned_objects() -> None:
    op.create_table(
        "scanned_objects",
        sa.Column("run_id", pg.UUID(as_uuid=True), nullable=False),
        sa.Column("source_object_id", pg.UUID(as_uuid=True), nullable=False),
        _moment("seen_at"),
        sa.ForeignKeyConstraint(["run_id"], ["ingest_runs.id"], name="fk_scanned_objects_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["source_object_id"],
            ["source_objects.id"],
            name="fk_scanned_objects_source_object_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "source_object_id", name="pk_scanned_objects"),
    )
    op.create_index("ix_scanned_objects_source_object_id", "scanned_objects", ["source_object_id"])


def _held_deletions() -> None:
    op.create_table(
        "held_deletions",
        sa.Column("source_id", pg.UUID(as_uuid=True), nullable=False),
        sa.Column("lost_sha256", sa.Text, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
        sa.Column("known", sa.Integer, nullable=False),
        sa.Column("scans", sa.Integer, nullable=False),
        _moment("since"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_held_deletions_source_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("source_id", name="pk_held_deletions"),
    )


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())
