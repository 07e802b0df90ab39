"""Where files come from, the objects that lie there, and which version was seen at which object."""

from __future__ import annotations

import sqlalchemy as sa

from shared.db.tables.base import Json, Moment, created_at, id_column, metadata, one_of, reference
from shared.types import AclState, SourceKind

sources = sa.Table(
    "sources",
    metadata,
    id_column(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    # Project and matters by path prefix, include and exclude rules: shared.sources.config.
    sa.Column("config", Json, nullable=False, server_default="{}"),
    sa.Column("memberships_as_of", Moment),
    # No object's ACL is older than this: set by a file of ACLs that named them all.
    sa.Column("acls_as_of", Moment),
    # Of the newest file of ACLs that was begun: nothing older is taken any more.
    sa.Column("acls_begun_as_of", Moment),
    created_at(),
    one_of("kind", SourceKind),
)

source_objects = sa.Table(
    "source_objects",
    metadata,
    id_column(),
    reference("source_id", "sources.id"),
    sa.Column("external_id", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("mime", sa.Text),
    sa.Column("size_bytes", sa.BigInteger),
    sa.Column("sha256", sa.Text),
    sa.Column("modified_at", Moment),
    # The source's own version id or sequencer, if it has one.
    sa.Column("source_version", sa.Text),
    # What stays the same when the object is renamed at its source, if the source has such a thing (device and inode).
    sa.Column("file_id", sa.Text),
    # What changes at the source whenever the bytes do, as the last listing gave it, and as it was when the bytes were
    # last read: equal, and the object need not be opened.
    sa.Column("fingerprint", sa.Text),
    sa.Column("fetched_fingerprint", sa.Text),
    # The object that this one was taken out of: a mail for its attachment, an archive for its member.
    reference("parent_id", "source_objects.id", nullable=True),
    sa.Column("acl_state", sa.Text, nullable=False, server_default=AclState.UNKNOWN),
    sa.Column("acl_as_of", Moment),
    sa.Column("acl_warning", sa.Text),
    sa.Column("deleted_at", Moment),
    created_at(),
    one_of("acl_state", AclState),
    sa.UniqueConstraint("source_id", "external_id"),
    sa.Index("ix_source_objects_parent_id", "parent_id"),
    sa.Index("ix_source_objects_file_id", "source_id", "file_id", postgresql_where=sa.text("file_id is not null")),
)

version_sources = sa.Table(
    "version_sources",
    metadata,
    reference("version_id", "document_versions.id"),
    reference("source_object_id", "source_objects.id"),
    created_at(),
    sa.PrimaryKeyConstraint("version_id", "source_object_id"),
    sa.Index("ix_version_sources_source_object_id", "source_object_id", postgresql_include=["version_id"]),
)

object_events = sa.Table(
    "object_events",
    metadata,
    # No reference to the object: a deletion may be the first that is heard of it.
    reference("source_id", "sources.id"),
    sa.Column("external_id", sa.Text, nullable=False),
    # Hexadecimal digits of any length, as the bucket gave them: shared.ingest.events compares them.
    sa.Column("sequencer", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False, server_default=sa.func.now()),
    sa.PrimaryKeyConstraint("source_id", "external_id"),
)
