"""Apply what sources report about rights: each message whole, in one transaction, and never an older one.

A message that is older than what is in force, or names an object that the source does not have, is refused as a whole.
A file of any size is checked to its end first, and then applied in transactions of 1,000 objects; from its first one
on nothing older than the file is taken any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.mirror import MirrorOutcome, UnreadableAcl, replace_memberships, replace_object_acls
from shared.access.snapshot_files import CheckedFile, checked, lines_of, name_of
from shared.access.snapshots import MAX_OBJECTS, AclSnapshot, FileKind, GroupMembers, MembershipSnapshot, ObjectAcl
from shared.db.engine import run_retrying
from shared.db.tables.base import TextArray, Uuid
from shared.db.tables.sources import source_objects, sources
from shared.errors import ConflictError, InvalidRequestError, NotVisibleError
from shared.text.normalise import stored
from shared.types import Effect, SourceId, SourceKind, SourceObjectId

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


@dataclass(frozen=True, slots=True)
class FileReport:
    """What came of a file: objects (or the list of memberships) changed and unchanged, and what it does not settle.

    `kept`: objects whose ACL in force is newer. `unknown`: named objects that the source does not have; they are closed
    when they come. `unnamed`: objects of the source that the file does not name, which keep the ACL they have.
    `rights_as_of` is as of when all rights of this kind are known at the source, None if that cannot be said.
    """

    kind: FileKind
    as_of: datetime
    lines: int
    changed: int
    unchanged: int
    kept: int
    unknown: int
    unnamed: int
    rights_as_of: datetime | None
    warnings: tuple[str, ...]

    @property
    def settles_all(self) -> bool:
        """Whether every name of the file is known, and every object of the source is in the file."""
        return not self.unknown and not self.unnamed

    def to_json(self) -> dict[str, Any]:
        """Return the report as `ki acl apply --json` prints it."""
        as_of = self.rights_as_of
        return {
            **asdict(self),
            "as_of": self.as_of.isoformat(),
            "rights_as_of": None if as_of is None else as_of.isoformat(),
            "warnings": list(self.warnings),
        }


Progress = Callable[[int, int], None]
"""Gets how many lines are applied, and of how many."""


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
        asked, by = _identifier(source_id), _By(caller, correlation_id)
        whole = Reported(snapshot.as_of, snapshot.objects)
        return run_retrying(self._engine, lambda connection: _mirror(connection, by, asked, whole)).to_json()

    def memberships(
        self, caller: Caller, source_id: str, snapshot: MembershipSnapshot, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Make these all memberships of the source, in one transaction. Errors as of `acls`."""
        asked, by = _identifier(source_id), _By(caller, correlation_id)
        whole = Reported(snapshot.as_of, groups=snapshot.groups)
        return run_retrying(self._engine, lambda connection: _mirror(connection, by, asked, whole)).to_json()

    def together(self, caller: Caller, source_id: SourceId, reported: Reported) -> dict[str, Any]:
        """Apply ACLs and memberships in one transaction. Errors as of `acls`."""
        by = _By(caller)
        return run_retrying(self._engine, lambda connection: _mirror(connection, by, source_id, reported)).to_json()

    def file(
        self, caller: Caller, source_id: SourceId, file: BinaryIO, *, progress: Progress | None = None
    ) -> FileReport:
        """Apply a file of ACLs or memberships (`snapshot_files`), which is read twice.

        Raises `InvalidRequestError` naming the line that is wrong and `ConflictError` for a file older than what is in
        force, before anything is applied; `ConflictError` in its midst when a newer file was begun meanwhile.
        """
        with self._engine.connect() as connection:
            kind = connection.execute(sa.select(sources.c.kind).where(sources.c.id == source_id)).scalar_one_or_none()
            if kind is None:
                raise _no_source()
            known = _UnknownObjects(connection, source_id, is_closed=kind != SourceKind.LOCAL_FS)
            whole = checked(file, seen=known.look_up)
            known.finish()
        by = _By(caller, file=whole.sha256)
        if whole.header.kind is FileKind.MEMBERSHIPS:
            return self._members(by, source_id, file, whole)
        return self._objects(by, source_id, file, whole, progress=progress)

    def _members(self, by: _By, source_id: SourceId, file: BinaryIO, whole: CheckedFile) -> FileReport:
        as_of = whole.header.as_of

        def work(connection: sa.Connection) -> SyncReport:
            groups = (line for line in lines_of(file, whole) if isinstance(line, GroupMembers))
            return _mirror(connection, by, source_id, Reported(as_of, groups=groups))

        report = run_retrying(self._engine, work)
        return FileReport(
            kind=FileKind.MEMBERSHIPS,
            as_of=as_of,
            lines=whole.header.count,
            changed=report.changed,
            unchanged=report.unchanged,
            kept=0,
            unknown=0,
            unnamed=0,
            rights_as_of=as_of,
            warnings=report.warnings,
        )

    def _objects(
        self, by: _By, source_id: SourceId, file: BinaryIO, whole: CheckedFile, *, progress: Progress | None
    ) -> FileReport:
        as_of, count = whole.header.as_of, whole.header.count
        run_retrying(self._engine, lambda connection: _begin(connection, source_id, as_of))
        total, warnings = _Batch(), list[str]()
        lines = (line for line in lines_of(file, whole) if isinstance(line, ObjectAcl))
        done = 0
        while batch := list(islice(lines, MAX_OBJECTS)):
            part = run_retrying(
                self._engine, partial(_mirror_batch, by=by, source_id=source_id, acls=batch, as_of=as_of)
            )
            total = total.plus(part)
            warnings += part.warnings[: _WARNINGS_SHOWN - len(warnings)]
            done += len(batch)
            if progress is not None:
                progress(done, count)
        named = total.present
        unnamed = run_retrying(self._engine, lambda connection: _end(connection, source_id, as_of, named=named))
        return FileReport(
            kind=FileKind.ACL,
            as_of=as_of,
            lines=count,
            changed=total.changed,
            unchanged=total.unchanged,
            kept=total.kept,
            unknown=total.unknown,
            unnamed=unnamed,
            rights_as_of=None if unnamed else as_of,
            warnings=tuple(warnings),
        )


@dataclass(frozen=True, slots=True)
class Reported:
    """What a source says, as of one time: whole ACLs of objects, and all its groups with their members (None: none)."""

    as_of: datetime
    objects: Sequence[ObjectAcl] = ()
    groups: Iterable[GroupMembers] | None = None


@dataclass(frozen=True, slots=True)
class _By:
    """Who reports, for the audit row. `file` is the hash of the file that it came in."""

    caller: Caller
    correlation_id: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class _Batch:
    """What came of a part of a file. `present` are the objects that are still at the source."""

    changed: int = 0
    unchanged: int = 0
    kept: int = 0
    unknown: int = 0
    present: int = 0
    warnings: tuple[str, ...] = ()

    def plus(self, other: _Batch) -> _Batch:
        return _Batch(
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.kept + other.kept,
            self.unknown + other.unknown,
            self.present + other.present,
        )


class _UnknownObjects:
    """Refuses a file that names objects which the source does not have, where they would be open when they come.

    An object without ACL at a local folder is its project's to see; everywhere else it is closed until its ACL is
    mirrored, so that its line can be left out.
    """

    def __init__(self, connection: sa.Connection, source_id: SourceId, *, is_closed: bool) -> None:
        self._connection = connection
        self._source_id = source_id
        self._is_closed = is_closed
        self._waiting: list[tuple[int, ObjectAcl]] = []

    def look_up(self, number: int, line: ObjectAcl | GroupMembers) -> None:
        """Take one line; ask the database when a thousand have come."""
        if self._is_closed or isinstance(line, GroupMembers):
            return
        self._waiting.append((number, line))
        if len(self._waiting) == MAX_OBJECTS:
            self.finish()

    def finish(self) -> None:
        """Ask about the lines that still wait."""
        found = _find(self._connection, self._source_id, [line for _, line in self._waiting], is_locked=False)
        missing = set(found.missing)
        for number, line in self._waiting:
            if name_of(line) in missing:
                raise InvalidRequestError(f"line {number}: {_not_there(name_of(line))}", field=f"line {number}")
        self._waiting.clear()


def _mirror(connection: sa.Connection, by: _By, source_id: SourceId, reported: Reported) -> SyncReport:
    """Apply ACLs, then memberships, and write down each; all or nothing."""
    as_of = reported.as_of
    held = _source(connection, source_id, as_of)
    reports = []
    if reported.objects or reported.groups is None:
        if held.acls_begun_as_of is not None and as_of < held.acls_begun_as_of:
            raise _older(as_of, held.acls_begun_as_of)
        acls = _mirror_message(connection, source_id, reported.objects, as_of)
        _audit(connection, "access.acl", by, source_id, as_of, acls)
        reports.append(acls)
    if reported.groups is not None:
        if held.memberships_as_of is not None and as_of < held.memberships_as_of:
            raise _older(as_of, held.memberships_as_of)
        edges = ((one.group, member) for one in reported.groups for member in one.members)
        members = _report([replace_memberships(connection, source_id, edges, as_of=as_of)])
        # Unchanged, too: what comes later and is older than this must not come into force.
        connection.execute(sa.update(sources).where(sources.c.id == source_id).values(memberships_as_of=as_of))
        _audit(connection, "access.memberships", by, source_id, as_of, members)
        reports.append(members)
    return SyncReport(
        sum(one.changed for one in reports),
        sum(one.unchanged for one in reports),
        tuple(warning for one in reports for warning in one.warnings)[:_WARNINGS_SHOWN],
    )


def _mirror_message(
    connection: sa.Connection, source_id: SourceId, acls: Sequence[ObjectAcl], as_of: datetime
) -> SyncReport:
    found = _find(connection, source_id, acls, is_locked=True)
    if found.missing:
        raise InvalidRequestError(_not_there(found.missing[0]), field="objects")
    newer = [one.acl_as_of for one in found.objects.values() if one.acl_as_of is not None and one.acl_as_of > as_of]
    if newer:
        raise _older(as_of, newer[0])
    outcomes = replace_object_acls(
        connection, {key: _entries(one.acl) for key, one in found.objects.items()}, as_of=as_of
    )
    # Unchanged, too: what comes later and is older than this must not come into force.
    columns, ids = source_objects.c, sa.bindparam(None, list(outcomes), type_=pg.ARRAY(Uuid))
    connection.execute(
        sa.update(source_objects)
        .where(columns.id == sa.any_(ids), columns.acl_as_of.is_distinct_from(as_of))
        .values(acl_as_of=as_of)
    )
    return _report(list(outcomes.values()))


def _begin(connection: sa.Connection, source_id: SourceId, as_of: datetime) -> None:
    """Take nothing older than the file from now on; whoever applies an older message now has ended before."""
    held = _source(connection, source_id, as_of)
    if held.acls_begun_as_of is not None and as_of < held.acls_begun_as_of:
        raise _older(as_of, held.acls_begun_as_of)
    connection.execute(sa.update(sources).where(sources.c.id == source_id).values(acls_begun_as_of=as_of))


def _mirror_batch(
    connection: sa.Connection, *, by: _By, source_id: SourceId, acls: Sequence[ObjectAcl], as_of: datetime
) -> _Batch:
    # The tables grow under the plans that triggers keep: made for a few rows, they read a million for each one.
    connection.execute(sa.text("discard plans"))
    _still_newest(_source(connection, source_id, as_of), as_of)
    found = _find(connection, source_id, acls, is_locked=True)
    due = {key: one for key, one in found.objects.items() if one.acl_as_of is None or one.acl_as_of <= as_of}
    outcomes = replace_object_acls(connection, {key: _entries(one.acl) for key, one in due.items()}, as_of=as_of)
    report = _report(list(outcomes.values()))
    _audit(connection, "access.acl", by, source_id, as_of, report)
    return _Batch(
        changed=report.changed,
        unchanged=report.unchanged,
        kept=len(found.objects) - len(due),
        unknown=len(found.missing),
        present=sum(one.is_present for one in found.objects.values()),
        warnings=(*(_not_there(name) for name in found.missing[:_WARNINGS_SHOWN]), *report.warnings),
    )


def _end(connection: sa.Connection, source_id: SourceId, as_of: datetime, *, named: int) -> int:
    """Return how many objects of the source the file does not name; if none, all rights are of its time or later."""
    _still_newest(_source(connection, source_id, as_of), as_of)
    columns = source_objects.c
    present = connection.execute(
        sa.select(sa.func.count()).where(
            columns.source_id == source_id, columns.parent_id.is_(None), columns.deleted_at.is_(None)
        )
    ).scalar_one()
    unnamed = max(0, present - named)
    if not unnamed:
        connection.execute(sa.update(sources).where(sources.c.id == source_id).values(acls_as_of=as_of))
    return unnamed


def _still_newest(held: sa.Row[Any, Any], as_of: datetime) -> None:
    if held.acls_begun_as_of != as_of:
        raise _older(as_of, held.acls_begun_as_of)


def _source(connection: sa.Connection, source_id: SourceId, as_of: datetime) -> sa.Row[Any, Any]:
    """Return what is in force at the source, and hold it: of two messages the older must not come last."""
    if as_of > datetime.now(UTC) + _MAX_AHEAD:
        # A time that lies ahead would make every later snapshot an older one.
        raise InvalidRequestError("as_of lies in the future; check the clock of the sender", field="as_of")
    statement = (
        sa.select(sources.c.memberships_as_of, sources.c.acls_begun_as_of)
        .where(sources.c.id == source_id)
        .with_for_update(key_share=True)
    )
    held = connection.execute(statement).first()
    if held is None:
        raise _no_source()
    return held


@dataclass(frozen=True, slots=True)
class _Found:
    """One object that is meant: the time of its ACL in force, whether it is at its source, and its ACL now."""

    acl_as_of: datetime | None
    is_present: bool
    acl: ObjectAcl


@dataclass(frozen=True, slots=True)
class _Meant:
    objects: Mapping[SourceObjectId, _Found]
    missing: Sequence[str]


def _find(connection: sa.Connection, source_id: SourceId, acls: Sequence[ObjectAcl], *, is_locked: bool) -> _Meant:
    """Return the objects that are meant, by id in their order, and the names that mean none; in one statement.

    Raises `InvalidRequestError` if one is named twice.
    """
    by_id = {acl.external_id: acl for acl in acls if acl.external_id is not None}
    by_path = {stored(acl.path): acl for acl in acls if acl.path is not None}
    if len(by_id) + len(by_path) < len(acls):
        raise InvalidRequestError("an object stands there twice", field="objects")
    columns = source_objects.c
    ids, paths = (sa.bindparam(None, list(names), type_=TextArray) for names in (by_id, by_path))
    statement = (
        # A file in another file has that one's ACL, always.
        sa.select(columns.id, columns.external_id, columns.path, columns.acl_as_of, columns.deleted_at)
        .where(
            columns.source_id == source_id,
            columns.parent_id.is_(None),
            sa.or_(columns.external_id == sa.any_(ids), columns.path == sa.any_(paths)),
        )
        # In the order of ids: two senders of the same objects wait for each other.
        .order_by(columns.id)
    )
    rows = connection.execute(statement.with_for_update() if is_locked else statement).all()
    found: dict[SourceObjectId, _Found] = {}
    for row in rows:
        named = [acl for acl in (by_id.get(row.external_id), by_path.get(row.path)) if acl is not None]
        if len(named) > 1:
            raise InvalidRequestError(
                f"{row.external_id!r} stands there twice, by its id and its path", field="objects"
            )
        found[SourceObjectId(row.id)] = _Found(row.acl_as_of, row.deleted_at is None, named[0])
    missing = sorted({*by_id} - {row.external_id for row in rows}) + sorted({*by_path} - {row.path for row in rows})
    return _Meant(found, missing)


def _not_there(name: str) -> str:
    return f"the source has no object {name!r}, or it lies in another file and has that one's ACL"


def _entries(acl: ObjectAcl) -> list[tuple[str, Effect]] | UnreadableAcl:
    if acl.entries is None:
        return UnreadableAcl("the source reports an ACL that could not be read")
    return [(entry.principal, entry.effect) for entry in acl.entries]


def _no_source() -> NotVisibleError:
    return NotVisibleError("there is no such source")


def _identifier(source_id: str) -> SourceId:
    try:
        return SourceId(UUID(source_id))
    except ValueError as error:
        raise _no_source() from error


def _audit(  # noqa: PLR0917  # what one row says
    connection: sa.Connection, action: str, by: _By, source_id: SourceId, as_of: datetime, report: SyncReport
) -> None:
    detail = {
        "source_id": str(source_id),
        "as_of": as_of.isoformat(),
        "changed": report.changed,
        "unchanged": report.unchanged,
        "warnings": len(report.warnings),
        **({} if by.file is None else {"file_sha256": by.file}),
    }
    entry = AuditEntry(
        action=action,
        subject=by.caller.subject,
        principals=by.caller.principals,
        outcome=ALLOWED,
        detail=detail,
        correlation_id=by.correlation_id,
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
