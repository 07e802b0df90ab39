"""Intents and keys as rows: those of one observation made what they should be, in one statement.

Each writer touches the rows of its own observation only, sorted by their keys, so that two workers never wait for each
other in a circle; that two of them meet is worked out when somebody reads (ADR 0014).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.base import Uuid
from shared.db.tables.structure import relation_intents, relation_keys
from shared.ingest.recordset import recordset
from shared.ingest.relations.said import NOWHERE, PROJECT_SORTS, UNIQUE_SORTS, Intent, Key
from shared.types import RelationKind, SourceObjectId, VersionId

_KEY = ("realm", "key", "by_name", "evidence")
_INTENT = (*_KEY, "kind", "confidence")


@dataclass(frozen=True, slots=True)
class Realms:
    """Where keys hold: in the project, or in the matter for those that mean something there only."""

    project: UUID | None
    matter: UUID | None

    @classmethod
    def of(cls, project_id: UUID | None, matter_id: UUID | None) -> Realms:
        """Return the realms of a place. A matter without a project is its own; without both nothing is shared."""
        return cls(project_id or matter_id, matter_id)

    def of_key(self, key: str) -> UUID | None:
        """Return the realm in which a key is looked for, None when it is not."""
        sort = key.partition(":")[0]
        if sort in UNIQUE_SORTS:
            return self.project or NOWHERE
        return self.project if sort in PROJECT_SORTS else self.matter


def replace(
    connection: sa.Connection,
    version_id: VersionId,
    object_id: SourceObjectId,
    realms: Realms,
    said: tuple[Sequence[Intent], Sequence[Key]],
    *,
    folder: str,
) -> list[VersionId]:
    """Make these the rows of the observation; return the other redlines of its folder.

    What the object's other versions were given by its name or place goes, but for what lies in a file.
    """
    intents, keys = said
    body = {
        "of_version": version_id,
        "of_object": object_id,
        "intents": [_intent(one, realm) for one in intents if (realm := realms.of_key(one.key))],
        "keys": [_key(one, realm) for one in keys if (realm := realms.of_key(one.key))],
        "folder": folder,
        "folder_realm": realms.of_key(folder),
    }
    return [VersionId(found) for found in connection.execute(_replace(), body).scalars()]


def move(connection: sa.Connection, versions: Collection[VersionId], realms: Realms) -> None:
    """Take the rows of versions along into another place; what has no realm there goes."""
    for table in (relation_intents, relation_keys):
        sort = sa.func.split_part(table.c.key, ":", 1)
        realm = sa.case(
            (sort.in_(UNIQUE_SORTS), sa.cast(realms.project or NOWHERE, Uuid)),
            (sort.in_(PROJECT_SORTS), sa.cast(realms.project, Uuid)),
            else_=sa.cast(realms.matter, Uuid),
        )
        mine = table.c.version_id.in_(list(versions))
        connection.execute(sa.delete(table).where(mine, realm.is_(None)))
        connection.execute(sa.update(table).where(mine).values(realm=realm))


def forget_names(connection: sa.Connection, objects: Collection[SourceObjectId]) -> None:
    """Drop what was read from the names of these files; where a file lies is not its name."""
    for table in (relation_intents, relation_keys):
        named = table.c.evidence["source"].astext == "file_name"
        connection.execute(sa.delete(table).where(table.c.source_object_id.in_(list(objects)), named))


def _intent(intent: Intent, realm: UUID) -> dict[str, Any]:
    return {**_key(intent, realm), "kind": intent.kind.value, "confidence": intent.confidence}


def _key(one: Intent | Key, realm: UUID) -> dict[str, Any]:
    return {"realm": str(realm), "key": one.key, "by_name": one.by_name, "evidence": dict(one.evidence)}


@cache
def _replace() -> sa.Select[Any]:
    ctes: list[sa.CTE] = []
    for parameter, table, names in (("intents", relation_intents, _INTENT), ("keys", relation_keys, _KEY)):
        ctes += _changes(parameter, table, names)
    others = (
        sa.select(relation_intents.c.version_id)
        .distinct()
        .where(
            relation_intents.c.kind == sa.literal_column(f"'{RelationKind.REDLINE_OF}'"),
            relation_intents.c.key == sa.bindparam("folder", type_=sa.Text),
            relation_intents.c.realm == sa.bindparam("folder_realm", type_=Uuid),
            relation_intents.c.version_id != _OF_VERSION,
        )
        .order_by(relation_intents.c.version_id)
    )
    return others.add_cte(*ctes)


_OF_VERSION = sa.bindparam("of_version", type_=Uuid)
_OF_OBJECT = sa.bindparam("of_object", type_=Uuid)


def _changes(parameter: str, table: sa.Table, names: Sequence[str]) -> list[sa.CTE]:
    """Return the steps that delete what is no longer said and write the rest."""
    given = recordset(parameter, [table.c[name] for name in names])
    wanted = sa.select(*(given.c[name] for name in names)).cte(f"wanted_{parameter}")
    identity = [name for name in ("kind", "realm", "key") if name in names]
    is_wanted = sa.exists().where(*(wanted.c[name] == table.c[name] for name in identity))
    gone = (
        sa.delete(table)
        .where(
            table.c.source_object_id == _OF_OBJECT,
            sa.or_(
                sa.and_(table.c.version_id == _OF_VERSION, ~is_wanted),
                sa.and_(table.c.version_id != _OF_VERSION, table.c.by_name, ~table.c.key.startswith("member:")),
            ),
        )
        .cte(f"gone_{parameter}")
    )
    insert = pg.insert(table).from_select(
        ["version_id", "source_object_id", *names],
        sa.select(_OF_VERSION, _OF_OBJECT, *(wanted.c[name] for name in names)).order_by(
            *(wanted.c[name] for name in identity)
        ),
    )
    values: Mapping[str, Any] = {name: insert.excluded[name] for name in names if name not in identity}
    differs = sa.or_(*(table.c[name].is_distinct_from(value) for name, value in values.items()))
    written = insert.on_conflict_do_update(
        index_elements=["version_id", "source_object_id", *identity], set_=values, where=differs
    ).cte(f"written_{parameter}")
    return [gone, written]
