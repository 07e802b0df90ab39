"""Apply what sources report about rights: each message whole, in one transaction, and never an older one.

A message that is older than what is in force, or names an object that the source does not have, is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.mirror import MirrorOutcome, UnreadableAcl, replace_memberships, replace_object_acl
from shared.access.snapshots import AclSnapshot, MembershipSnapshot, ObjectAcl
from shared.db.engine import run_retrying
from shared.db.tables.sources import source_objects, sources
from shared.errors import ConflictError, InvalidRequestError, NotVisibleError
from shared.text.normalise import stored
from shared.types import Effect, SourceId, SourceObjectId

_MAX_AHEAD: Final = timedelta(minutes=5)
_WARNINGS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What came of a message: objects (or the list of memberships) changed and unchanged, and what was left out."""

    changed: int
    unchanged: int
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as the API answers it."""
        return {"changed": self.changed, "unchanged": self.unchanged, "warnings": list(self.warnings)}


class AccessSync:
    """Applies what sources report. Every message leaves one audit row, in the transaction that applies it."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def acls(
        self, caller: Caller, source_id: str, snapshot: AclSnapshot, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Make these the objects' ACLs, in one transaction, and return what changed.

        Raises `NotVisibleError` for an unknown source, `InvalidRequestError` naming an object that the source does not
        have or that is named twice, `ConflictError` for a snapshot older than what is in force.
        """
        asked = _identifier(source_id)

        def work(connection: sa.Connection) -> SyncReport:
            report = _applied(connection, asked, snapshot.objects, snapshot.as_of)
            _audit(connection, "access.acl", caller, asked, snapshot.as_of, report, correlation_id)
            return report

        return run_retrying(self._engine, work).to_json()

    def memberships(
        self, caller: Caller, source_id: str, snapshot: MembershipSnapshot, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Make these all memberships of the source, in one transaction. Errors as of `acls`."""
        asked = _identifier(source_id)

        def work(connection: sa.Connection) -> SyncReport:
            held = _source(connection, asked, snapshot.as_of, is_locked=True)
            if held.memberships_as_of is not None and snapshot.as_of < held.memberships_as_of:
                raise _older(snapshot.as_of, held.memberships_as_of)
            edges = ((one.group, member) for one in snapshot.groups for member in one.members)
            report = _report([replace_memberships(connection, asked, edges, as_of=snapshot.as_of)])
            _audit(connection, "access.memberships", caller, asked, snapshot.as_of, report, correlation_id)
            return report

        return run_retrying(self._engine, work).to_json()


def _applied(
    connection: sa.Connection, source_id: SourceId, objects: Sequence[ObjectAcl], as_of: datetime
) -> SyncReport:
    _source(connection, source_id, as_of)
    found = _objects(connection, source_id, objects)
    outcomes = []
    # In the order of ids: two senders of the same objects wait for each other.
    for object_id, (held_as_of, acl) in sorted(found.items()):
        if held_as_of is not None and as_of < held_as_of:
            raise _older(as_of, held_as_of)
        outcomes.append(replace_object_acl(connection, object_id, _entries(acl), as_of=as_of))
    return _report(outcomes)


def _source(
    connection: sa.Connection, source_id: SourceId, as_of: datetime, *, is_locked: bool = False
) -> sa.Row[Any, Any]:
    if as_of > datetime.now(UTC) + _MAX_AHEAD:
        # A time that lies ahead would make every later snapshot an older one.
        raise InvalidRequestError("as_of lies in the future; check the clock of the sender", field="as_of")
    statement = sa.select(sources.c.id, sources.c.memberships_as_of).where(sources.c.id == source_id)
    if is_locked:
        statement = statement.with_for_update(key_share=True)
    held = connection.execute(statement).first()
    if held is None:
        raise NotVisibleError("there is no such source")
    return held


def _objects(
    connection: sa.Connection, source_id: SourceId, acls: Sequence[ObjectAcl]
) -> dict[SourceObjectId, tuple[datetime | None, ObjectAcl]]:
    """Return the objects that are meant, each with the time of its ACL in force; in one statement."""
    by_id = {acl.external_id: acl for acl in acls if acl.external_id is not None}
    by_path = {stored(acl.path): acl for acl in acls if acl.path is not None}
    if len(by_id) + len(by_path) < len(acls):
        raise InvalidRequestError("an object stands there twice", field="objects")
    columns = source_objects.c
    # A file in another file has that one's ACL, always.
    rows = connection.execute(
        sa.select(columns.id, columns.external_id, columns.path, columns.acl_as_of)
        .where(
            columns.source_id == source_id,
            columns.parent_id.is_(None),
            sa.or_(columns.external_id.in_(list(by_id)), columns.path.in_(list(by_path))),
        )
        # Locked before the times are compared: of two senders the older must not come last.
        .order_by(columns.id)
        .with_for_update()
    ).all()
    found: dict[SourceObjectId, tuple[datetime | None, ObjectAcl]] = {}
    known_ids, known_paths = set[str](), set[str]()
    for row in rows:
        wanted = [by_id.get(row.external_id), by_path.get(row.path)]
        named = [acl for acl in wanted if acl is not None]
        if len(named) > 1:
            raise InvalidRequestError(
                f"{row.external_id!r} stands there twice, by its id and its path", field="objects"
            )
        known_ids.add(row.external_id)
        known_paths.add(row.path)
        found[SourceObjectId(row.id)] = (row.acl_as_of, named[0])
    missing = [*sorted(set(by_id) - known_ids), *sorted(set(by_path) - known_paths)]
    if missing:
        raise InvalidRequestError(
            f"the source has no object {missing[0]!r}, or it lies in another file and has that one's ACL",
            field="objects",
        )
    return found


def _entries(acl: ObjectAcl) -> list[tuple[str, Effect]] | UnreadableAcl:
    if acl.entries is None:
        return UnreadableAcl("the source reports an ACL that could not be read")
    return [(entry.principal, entry.effect) for entry in acl.entries]


def _identifier(source_id: str) -> SourceId:
    try:
        return SourceId(UUID(source_id))
    except ValueError as error:
        raise NotVisibleError("there is no such source") from error


def _audit(  # noqa: PLR0917  # what one row says
    connection: sa.Connection,
    action: str,
    caller: Caller,
    source_id: SourceId,
    as_of: datetime,
    report: SyncReport,
    correlation_id: str | None,
) -> None:
    detail = {
        "source_id": str(source_id),
        "as_of": as_of.isoformat(),
        "changed": report.changed,
        "unchanged": report.unchanged,
        "warnings": len(report.warnings),
    }
    entry = AuditEntry(
        action=action,
        subject=caller.subject,
        principals=caller.principals,
        outcome=ALLOWED,
        detail=detail,
        correlation_id=correlation_id,
    )
    connection.execute(insertion(entry))


def _report(outcomes: Sequence[MirrorOutcome]) -> SyncReport:
    changed = sum(outcome.changed for outcome in outcomes)
    warnings = tuple(warning for outcome in outcomes for warning in outcome.warnings)[:_WARNINGS_SHOWN]
    return SyncReport(changed, len(outcomes) - changed, warnings)


def _older(as_of: datetime, held: datetime) -> ConflictError:
    return ConflictError(
        f"the snapshot is of {as_of.isoformat()}, and one of {held.isoformat()} is in force; read the rights anew"
    )
