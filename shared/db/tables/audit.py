"""The append-only audit trail, a partition a month, and the seals that make a change of it visible."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, TextArray, metadata

audit_number = sa.Sequence("audit_events_number", metadata=metadata, data_type=sa.BigInteger)

audit_events = sa.Table(
    "audit_events",
    metadata,
    # From a sequence, not an identity: those of partitions are not known before PostgreSQL 17.
    sa.Column("id", sa.BigInteger, audit_number, server_default=audit_number.next_value(), nullable=False),
    sa.Column("at", Moment, nullable=False, server_default=sa.func.now()),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("principals", TextArray, nullable=False, server_default="{}"),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("scope_fingerprint", sa.Text),
    # Keyed hash and length of the query, never its text.
    sa.Column("query_hash", sa.Text),
    sa.Column("query_chars", sa.Integer),
    # Ids of what left the house, and what an administrator did.
    sa.Column("detail", Json, nullable=False, server_default="{}"),
    sa.Column("correlation_id", sa.Text),
    sa.PrimaryKeyConstraint("id", "at"),
    sa.Index("ix_audit_events_at", "at"),
    postgresql_partition_by="RANGE (at)",
)

audit_seals = sa.Table(
    "audit_seals",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("sealed_at", Moment, nullable=False, server_default=sa.func.now()),
    # The seal stands for the rows of this month (in UTC) with after_id < id <= until_id.
    sa.Column("month", sa.Date, nullable=False),
    sa.Column("after_id", sa.BigInteger, nullable=False),
    sa.Column("until_id", sa.BigInteger, nullable=False),
    sa.Column("events", sa.BigInteger, nullable=False),
    # HMAC-SHA-256 of the previous digest and of the rows: shared.access.audit_trail.
    sa.Column("digest", sa.Text, nullable=False),
    sa.CheckConstraint("after_id < until_id and events >= 0", name="range_known"),
)
