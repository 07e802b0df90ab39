"""The ACL file of `ki ingest --acl`: what the source says about its objects and groups, as one snapshot."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.access.caller import Caller
from shared.access.snapshots import AclEntry, GroupMembers, ObjectAcl
from shared.access.sync import AccessSync, Reported
from shared.errors import InvalidRequestError
from shared.runtime.events import parse_json
from shared.types import SourceId


class AclFile(BaseModel):
    """Objects by path with their whole ACL (null: could not be read), and groups with all their members, if given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    try:
        objects = [ObjectAcl(path=path, entries=entries) for path, entries in snapshot.objects.items()]
        groups = [GroupMembers(group=name, members=members) for name, members in (snapshot.memberships or {}).items()]
    except ValidationError as error:
        raise InvalidRequestError(f"a path or a group has no usable name: {error}", field="acl") from error
    reported = Reported(as_of, objects, None if snapshot.memberships is None else groups)
    caller = Caller(f"local:{getpass.getuser()}", frozenset())
    return AccessSync(engine).together(caller, source_id, reported)
