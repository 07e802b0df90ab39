"""The ACL file of `ki ingest --acl`: what the source says about its objects and groups, as one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.access.mirror import MirrorOutcome, UnreadableAcl, replace_memberships, replace_object_acl
from shared.db.tables.sources import source_objects
from shared.errors import InvalidRequestError
from shared.runtime.events import parse_json
from shared.text.normalise import stored
from shared.types import Effect, SourceId, SourceObjectId


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AclEntry(_Model):
    """One principal as the source writes it, and its effect there."""

    principal: str
    effect: Effect = Effect.ALLOW


class AclFile(_Model):
    """Objects by path with their whole ACL (null: could not be read), and groups with all their members, if given."""

    objects: Mapping[str, tuple[AclEntry, ...] | None] = {}
    memberships: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def read(cls, file: Path) -> AclFile:
        """Return the file's content, or raise `InvalidRequestError` that names what is wrong in it.

        A key that stands twice is wrong: the second of two ACLs for one path must not undo the first unseen.
        """
        try:
            return cls.model_validate(parse_json(file.read_bytes()))
        except OSError as error:
            raise InvalidRequestError(f"{file.name} cannot be read: {error.strerror}", field="acl") from error
        except InvalidRequestError as error:
            raise InvalidRequestError(f"{file.name}: {error.message}", field="acl") from error
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidRequestError(f"{file.name}: {wrong}", field="acl") from error


def apply(engine: sa.Engine, source_id: SourceId, snapshot: AclFile, *, as_of: datetime) -> dict[str, Any]:
    """Mirror the snapshot in one transaction and return counts: changed, unchanged, warnings.

    Raises `InvalidRequestError` naming a path that is not at the source, is given in two Unicode forms, or lies in
    another file: a path that means something else than was thought must not leave a file open.
    """
    with engine.begin() as connection:
        by_path = _objects(connection, source_id)
        wanted = _by_stored_path(snapshot.objects)
        unknown = sorted(set(wanted) - set(by_path))
        if unknown:
            raise InvalidRequestError(
                f"the source has no object at {unknown[0]!r} (a file in another file has that one's ACL)", field="acl"
            )
        outcomes = [
            replace_object_acl(connection, object_id, _entries(entries), as_of=as_of)
            for path, entries in sorted(wanted.items())
            for object_id in by_path[path]
        ]
        if snapshot.memberships is not None:
            edges = [(group, member) for group, members in snapshot.memberships.items() for member in members]
            outcomes.append(replace_memberships(connection, source_id, edges, as_of=as_of))
    return _counts(outcomes)


def _by_stored_path(
    objects: Mapping[str, tuple[AclEntry, ...] | None],
) -> dict[str, tuple[AclEntry, ...] | None]:
    wanted: dict[str, tuple[AclEntry, ...] | None] = {}
    for path, entries in objects.items():
        if stored(path) in wanted:
            raise InvalidRequestError(f"{path!r} is given twice, in two Unicode forms", field="acl")
        wanted[stored(path)] = entries
    return wanted


def _objects(connection: sa.Connection, source_id: SourceId) -> dict[str, list[SourceObjectId]]:
    """Return the objects at each path, without those in other objects: these always have the ACL of what holds them."""
    columns = source_objects.c
    rows = connection.execute(
        sa.select(columns.path, columns.id)
        .where(columns.source_id == source_id, columns.parent_id.is_(None))
        .order_by(columns.id)
    )
    by_path: dict[str, list[SourceObjectId]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(SourceObjectId(row.id))
    return by_path


def _entries(entries: tuple[AclEntry, ...] | None) -> list[tuple[str, Effect]] | UnreadableAcl:
    if entries is None:
        return UnreadableAcl("the source reports an ACL that could not be read")
    return [(entry.principal, entry.effect) for entry in entries]


def _counts(outcomes: list[MirrorOutcome]) -> dict[str, Any]:
    changed = sum(outcome.changed for outcome in outcomes)
    warnings = [warning for outcome in outcomes for warning in outcome.warnings]
    return {"changed": changed, "unchanged": len(outcomes) - changed, "warnings": warnings}
