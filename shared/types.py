"""The closed sets and id types that every part shares."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType
from uuid import UUID

ProjectId = NewType("ProjectId", UUID)
MatterId = NewType("MatterId", UUID)
SourceId = NewType("SourceId", UUID)
SourceObjectId = NewType("SourceObjectId", UUID)
DocumentId = NewType("DocumentId", UUID)
VersionId = NewType("VersionId", UUID)
ChunkId = NewType("ChunkId", UUID)
VersionSeq = NewType("VersionSeq", int)
"""Dense positive 32-bit number of a version, unique in the database; the scope is a set of these."""

Principal = NewType("Principal", str)
"""A normalised `kind:value` string; made only by `shared.access.principals`."""


class Effect(StrEnum):
    """What a grant does."""

    ALLOW = "allow"
    DENY = "deny"


class SourceKind(StrEnum):
    """Where a source's objects lie. Everything but `local_fs` is external and closed without an ACL."""

    LOCAL_FS = "local_fs"
    S3 = "s3"
    EXTERNAL = "external"


class AclState(StrEnum):
    """Whether the ACL of a source object was ever mirrored; `known` without rows names nobody."""

    UNKNOWN = "unknown"
    KNOWN = "known"


class AclMode(StrEnum):
    """Whether an allow at the source is enough, or a local allow is needed as well."""

    SUFFICIENT = "sufficient"
    INTERSECT = "intersect"


class VersionStatus(StrEnum):
    """How far a version has come."""

    DRAFT = "draft"
    FINAL = "final"
    EXECUTED = "executed"
    UNKNOWN = "unknown"


class MatterMethod(StrEnum):
    """How it was found to which matter an object belongs."""

    MANUAL = "manual"
    PATH = "path"
    FOLDER = "folder"
    INHERITED = "inherited"
    NUMBER = "number"
    PARTY = "party"
    NONE = "none"


class ChunkKind(StrEnum):
    """What a row of the index stands for."""

    CHUNK = "chunk"
    PROFILE = "profile"
    CLAUSE = "clause"


class Language(StrEnum):
    """Languages with an analyser of their own; everything else is `und`."""

    GERMAN = "de"
    ENGLISH = "en"
    UNDETERMINED = "und"


class OutboxOperation(StrEnum):
    """What the index still has to learn about a version."""

    INDEX = "index"
    DELETE = "delete"


class RelationKind(StrEnum):
    """What one version is to another; the first end is the one that says so."""

    SUPERSEDES = "supersedes"
    ANNEX_OF = "annex_of"
    RESPONDS_TO = "responds_to"
    REFERENCES = "references"
    AMENDS = "amends"
    CONTAINS = "contains"
    REDLINE_OF = "redline_of"
    BELONGS_TO_THREAD = "belongs_to_thread"


class DecisionKind(StrEnum):
    """What happened between two drafts, or what a text says was settled."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RESOLVED = "resolved"
