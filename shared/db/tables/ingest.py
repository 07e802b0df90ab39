"""What happened to each object in the pipeline, why, and when it is tried again; what the index must still learn."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, created_at, id_column, metadata, one_of, reference
from shared.types import OutboxOperation

ingest_runs = sa.Table(
    "ingest_runs",
    metadata,
    id_column(),
    reference("source_id", "sources.id"),
    sa.Column("started_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.Column("finished_at", Moment),
    # Objects by outcome: found, new, changed, unchanged, quarantined.
    sa.Column("counts", Json, nullable=False, server_default="{}"),
    # By the database's clock, like every row that is compared with it.
    sa.Column("listed_from", Moment, nullable=False, server_default=sa.func.now()),
    sa.Index("ix_ingest_runs_source_id", "source_id"),
)

scanned_objects = sa.Table(
    "scanned_objects",
    metadata,
    reference("run_id", "ingest_runs.id"),
    reference("source_object_id", "source_objects.id"),
    sa.Column("seen_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.PrimaryKeyConstraint("run_id", "source_object_id"),
    sa.Index("ix_scanned_objects_source_object_id", "source_object_id"),
)

held_deletions = sa.Table(
    "held_deletions",
    metadata,
    sa.Column("source_id", sa.ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    # Hash of the ids that the scans miss, how many they are, and of how many.
    sa.Column("lost_sha256", sa.Text, nullable=False),
    sa.Column("lost", sa.Integer, nullable=False),
    sa.Column("known", sa.Integer, nullable=False),
    # How many scans in a row have missed the very same ones.
    sa.Column("scans", sa.Integer, nullable=False),
    sa.Column("since", Moment, nullable=False, server_default=sa.func.now()),
)

ingest_state = sa.Table(
    "ingest_state",
    metadata,
    reference("source_object_id", "source_objects.id"),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("producer_version", sa.Text, nullable=False),
    # Hash of what the stage worked on: the same input and producer need no second run.
    sa.Column("input_sha256", sa.Text),
    sa.Column("status", sa.Text, nullable=False),
    # What the stage handed on, ids and storage keys only: a later run goes on from here.
    sa.Column("result", Json, nullable=False, server_default="{}"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_try_at", Moment),
    sa.Column("claimed_at", Moment),
    sa.Column("claimed_by", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("updated_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.PrimaryKeyConstraint("source_object_id", "stage"),
    sa.CheckConstraint("status in ('pending', 'running', 'done', 'failed')", name="status_known"),
    sa.Index("ix_ingest_state_next_try_at", "next_try_at"),
)

quarantine = sa.Table(
    "quarantine",
    metadata,
    sa.Column(
        "source_object_id",
        sa.ForeignKey("source_objects.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("stage", sa.Text, nullable=False),
    # Class name of the error and its text for people.
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False),
    created_at(),
)

index_outbox = sa.Table(
    "index_outbox",
    metadata,
    # Also the external version of the index writes that it causes.
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    # No foreign key: a deleted version must still be deleted from the index.
    sa.Column("version_id", sa.Uuid, nullable=False),
    sa.Column("version_seq", sa.Integer, nullable=False),
    sa.Column("operation", sa.Text, nullable=False),
    # For a delete: the index rows to bury. For a rewrite: rows that no longer exist.
    sa.Column("stale_chunk_ids", sa.ARRAY(sa.Uuid), nullable=False, server_default="{}"),
    created_at(),
    sa.Column("done_at", Moment),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_try_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.Column("error", sa.Text),
    one_of("operation", OutboxOperation),
    sa.Index("ix_index_outbox_open", "id", postgresql_where=sa.text("done_at is null")),
    sa.Index("ix_index_outbox_version_id", "version_id"),
)
