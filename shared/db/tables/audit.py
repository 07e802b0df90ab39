"""The append-only audit trail."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, TextArray, metadata

audit_events = sa.Table(
    "audit_events",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
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
    sa.Index("ix_audit_events_at", "at"),
)
