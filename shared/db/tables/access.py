"""Grants, memberships, aliases, and what keeps compiled scopes fresh."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import (
    Moment,
    PgSnapshot,
    TextArray,
    Uuid,
    Xid8,
    created_at,
    metadata,
    one_of,
    reference,
)
from shared.types import Effect


def _grants(name: str, target: str, target_table: str) -> sa.Table:
    """Return a grant table: one row a target, principal and effect, with who set it and why."""
    return sa.Table(
        name,
        metadata,
        reference(target, f"{target_table}.id"),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("effect", sa.Text, nullable=False),
        sa.Column("granted_by", sa.Text),
        sa.Column("reason", sa.Text),
        created_at(),
        one_of("effect", Effect),
        sa.PrimaryKeyConstraint(target, "principal", "effect"),
        sa.Index(f"ix_{name}_principal", "principal", "effect", postgresql_include=[target]),
    )


project_grants = _grants("project_grants", "project_id", "projects")
document_grants = _grants("document_grants", "document_id", "documents")
source_object_grants = _grants("source_object_grants", "source_object_id", "source_objects")

source_group_members = sa.Table(
    "source_group_members",
    metadata,
    reference("source_id", "sources.id"),
    # Both ends are stored qualified: see shared.access.principals.
    sa.Column("group_principal", sa.Text, nullable=False),
    sa.Column("member_principal", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("source_id", "group_principal", "member_principal"),
    # A source can put people and groups into groups; it can never hand out a role.
    sa.CheckConstraint("group_principal like 'group:_%'", name="group_is_group"),
    sa.CheckConstraint("member_principal ~ '^(user|username|group):.'", name="member_is_user_or_group"),
    sa.Index("ix_source_group_members_member", "member_principal", postgresql_include=["group_principal"]),
)

principal_aliases = sa.Table(
    "principal_aliases",
    metadata,
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("alias", sa.Text, nullable=False),
    sa.Column("granted_by", sa.Text),
    sa.Column("reason", sa.Text),
    created_at(),
    sa.PrimaryKeyConstraint("principal", "alias"),
    sa.CheckConstraint("principal <> alias", name="not_itself"),
    sa.Index("ix_principal_aliases_alias", "alias", postgresql_include=["principal"]),
)

scope_log = sa.Table(
    "scope_log",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("xid", Xid8, nullable=False, server_default=sa.text("pg_current_xact_id()")),
    # project, document, source_object (by target), version (by seq), everything.
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("target", Uuid),
    sa.Column("seq", sa.Integer),
    # The principal concerned; null = everyone.
    sa.Column("principal", sa.Text),
    sa.CheckConstraint("kind in ('project', 'document', 'source_object', 'version', 'everything')", name="kind_known"),
    sa.Index("ix_scope_log_xid", "xid"),
)

scope_epoch = sa.Table(
    "scope_epoch",
    metadata,
    sa.Column("one", sa.Boolean, primary_key=True, server_default=sa.true()),
    # Renewed after a logical restore: kept scopes of another life of the database are worth nothing.
    sa.Column("token", Uuid, nullable=False, server_default=sa.text("gen_random_uuid()")),
    # The log is complete for snapshots whose xmin is at or above the floor.
    sa.Column("floor", Xid8, nullable=False, server_default=sa.text("pg_current_xact_id()")),
    sa.CheckConstraint("one", name="single_row"),
)

kept_scopes = sa.Table(
    "kept_scopes",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Text, nullable=False),
    sa.Column("snapshot", PgSnapshot, nullable=False),
    sa.Column("principals", TextArray, nullable=False),
    sa.Column("visible", sa.LargeBinary, nullable=False),
    sa.Column("used_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.Index("ix_kept_scopes_used_at", "used_at"),
)
