"""Who may do what in the database: three roles besides the owner, each with the least that its work needs.

- knowledge_index_app, for search, documents and the pipeline: reads all but the audit trail, writes what the pipeline
  makes, adds to the trail.
- knowledge_index_sync, for ACL snapshots, grants, walls and aliases: writes those and nothing of a document, adds to
  the trail.
- knowledge_index_auditor, for the auditor: reads the trail, the grants and what they are on, and no text of any
  document; seals the trail.

They are roles without a login: a login is made a member of one (`grant knowledge_index_app to ...`). The owner of the
tables runs migrations and nothing else. `apply` makes the rights what stands here, whatever they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import sqlalchemy as sa

from shared.db.engine import sqlstate
from shared.errors import MisconfiguredError

APP: Final = "knowledge_index_app"
SYNC: Final = "knowledge_index_sync"
AUDITOR: Final = "knowledge_index_auditor"
ROLES: Final = (APP, SYNC, AUDITOR)

_READ, _ADD, _ALL = "select", "insert", "select, insert, update, delete"
_NOT_ALLOWED: Final = "42501"
_EXISTS: Final = frozenset({"42710", "23505"})

# By table, the rights of the application, of the synchronisation and of the auditor.
RIGHTS: Final[Mapping[str, tuple[str, str, str]]] = {
    # The authority on access. A member of a container has the container's ACL, so the pipeline writes those rows.
    "project_grants": (_READ, _ALL, _READ),
    "document_grants": (_READ, _ALL, _READ),
    "source_object_grants": (_ALL, _ALL, _READ),
    "source_group_members": (_READ, _ALL, _READ),
    "principal_aliases": (_READ, _ALL, _READ),
    # Written by triggers, with the owner's rights; pruned by the sweep.
    "scope_log": ("select, delete", _READ, _READ),
    "scope_epoch": ("select, update", _READ, _READ),
    "kept_scopes": (_ALL, "", ""),
    # Added to and never changed.
    "audit_events": (_ADD, _ADD, _READ),
    "audit_seals": ("", "", "select, insert"),
    # What grants are on.
    "projects": (_ALL, _READ, _READ),
    "matters": (_ALL, _READ, _READ),
    "sources": (_ALL, "select, update", _READ),
    "source_objects": (_ALL, "select, update (acl_state, acl_as_of, acl_warning)", _READ),
    "version_sources": (_ALL, _READ, _READ),
    "documents": (_ALL, _READ, "select (id, project_id, matter_id, latest_final_version_id, created_at, updated_at)"),
    "document_versions": (_ALL, _READ, "select (id, seq, document_id, sha256, ordinal, status, created_at)"),
    # Everything else is the pipeline's.
    **dict.fromkeys(
        (
            "artifacts",
            "chunks",
            "decisions",
            "document_parties",
            "entity_identifiers",
            "held_deletions",
            "index_outbox",
            "ingest_runs",
            "ingest_state",
            "matter_assignments",
            "matter_numbers",
            "matter_parties",
            "object_events",
            "parties",
            "quarantine",
            "relation_intents",
            "relation_keys",
            "scanned_objects",
            "thread_messages",
        ),
        (_ALL, "", ""),
    ),
}
_FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "audit_partition(date)": (APP, AUDITOR),
    "audit_final_id(integer)": (AUDITOR,),
}


def apply(connection: sa.Connection, tables: Mapping[str, object]) -> None:
    """Make the roles, if they are not there, and give each exactly its rights on these tables.

    Raises `MisconfiguredError` when the roles are missing and may not be made, or a table has no line in `RIGHTS`.
    """
    forgotten = sorted(set(tables) - set(RIGHTS))
    if forgotten:
        raise MisconfiguredError(f"shared/db/rights.py says nothing about {', '.join(forgotten)}")
    for role in ROLES:
        _ensure_role(connection, role)
    for statement in _statements():
        connection.execute(sa.text(statement))


def _statements() -> Iterator[str]:
    everybody = ", ".join(ROLES)
    yield "revoke all on all tables in schema public from public"
    yield f"revoke all on all tables in schema public from {everybody}"
    yield f"revoke all on all sequences in schema public from {everybody}"
    yield f"grant usage on schema public to {everybody}"
    for table, rights in RIGHTS.items():
        for role, right in zip(ROLES, rights, strict=True):
            if right:
                yield f"grant {right} on {table} to {role}"
    # A number for what is written; nobody learns anything from one.
    yield f"grant usage on all sequences in schema public to {APP}, {SYNC}"
    for function, roles in _FUNCTIONS.items():
        yield f"revoke execute on function {function} from public"
        yield f"grant execute on function {function} to {', '.join(roles)}"


def _ensure_role(connection: sa.Connection, role: str) -> None:
    known = sa.text("select 1 from pg_roles where rolname = :role")
    if connection.execute(known, {"role": role}).first() is not None:
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text(f"create role {role} nologin"))
    except sa.exc.DBAPIError as error:
        if sqlstate(error) in _EXISTS:
            return  # another database of this server was migrated at the same moment
        if sqlstate(error) != _NOT_ALLOWED:
            raise
        raise MisconfiguredError(
            f"the role {role} is missing and may not be made by this login; run: create role {role} nologin"
        ) from error
