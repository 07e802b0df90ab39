"""The structured layer: what a version says of others, what it is called by them, threads of mail, decisions.

A relation is no row. It is the meeting of an intent of one version with a key of another in one realm, so it is there
as soon as both ends are, whichever came first, and gone with either (ADR 0014). `shared.catalog` reads these tables,
and only for a viewer.
"""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, TextArray, Uuid, metadata, one_of, reference
from shared.types import DecisionKind, RelationKind


def _observed() -> list[sa.schema.SchemaItem]:
    """Return the columns and the reference to the observation from which a row was read; it goes with that.

    A row with `by_name` was read from the file's name or its place and is for those alone who may cite that file.
    """
    return [
        sa.Column("version_id", Uuid, nullable=False),
        sa.Column("source_object_id", Uuid, nullable=False),
        # The project, or the matter for what means something within a matter only.
        sa.Column("realm", Uuid, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("by_name", sa.Boolean, nullable=False),
        # {"source", "text", "char_start", "char_end"}: a passage of this very version, or where else it was read.
        sa.Column("evidence", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id", "source_object_id"],
            ["version_sources.version_id", "version_sources.source_object_id"],
            ondelete="CASCADE",
        ),
    ]


relation_intents = sa.Table(
    "relation_intents",
    metadata,
    *_observed(),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    one_of("kind", RelationKind),
    sa.CheckConstraint("confidence > 0 and confidence <= 1", name="confidence_in_range"),
    sa.PrimaryKeyConstraint("version_id", "source_object_id", "kind", "realm", "key"),
    sa.Index("ix_relation_intents_key", "key", "realm"),
)

relation_keys = sa.Table(
    "relation_keys",
    metadata,
    *_observed(),
    sa.PrimaryKeyConstraint("version_id", "source_object_id", "realm", "key"),
    sa.Index("ix_relation_keys_key", "key", "realm"),
)

thread_messages = sa.Table(
    "thread_messages",
    metadata,
    sa.Column(
        "version_id", Uuid, sa.ForeignKey("document_versions.id", ondelete="CASCADE"), primary_key=True, nullable=False
    ),
    sa.Column("realm", Uuid, nullable=False),
    # All messages that may belong together; which of them do is worked out among those that a viewer may see.
    sa.Column("thread_id", Uuid, nullable=False),
    sa.Column("message_id", sa.Text),
    # The ids that it answers and its own, without those that are missing.
    sa.Column("ids", TextArray, nullable=False),
    # The subject without its prefixes, null when there is none; whether it had one.
    sa.Column("subject", sa.Text),
    sa.Column("is_reply", sa.Boolean, nullable=False),
    sa.Column("sender", sa.Text),
    sa.Column("people", TextArray, nullable=False),
    sa.Column("sent_at", Moment),
    sa.Index("ix_thread_messages_thread_id", "thread_id"),
    sa.Index("ix_thread_messages_ids", "ids", postgresql_using="gin"),
    sa.Index("ix_thread_messages_subject", "realm", "subject"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    # UUID version 5 of both versions and the ordinal: the same on every run.
    sa.Column("id", Uuid, primary_key=True),
    # Null for a decision that the version itself tells of.
    reference("from_version_id", "document_versions.id", nullable=True),
    reference("to_version_id", "document_versions.id"),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("locus", sa.Text),
    # [start, end) in the text of either version.
    sa.Column("from_start", sa.Integer),
    sa.Column("from_end", sa.Integer),
    sa.Column("to_start", sa.Integer),
    sa.Column("to_end", sa.Integer),
    sa.Column("author", sa.Text),
    # The version in which the author stands when it is neither of the two: a mail that carried the draft.
    reference("author_version_id", "document_versions.id", nullable=True),
    sa.Column("decided_at", Moment),
    sa.Column("evidence", Json, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    one_of("kind", DecisionKind),
    sa.CheckConstraint("confidence > 0 and confidence <= 1", name="confidence_in_range"),
    sa.Index("ix_decisions_to_version_id", "to_version_id"),
    sa.Index("ix_decisions_from_version_id", "from_version_id"),
)
