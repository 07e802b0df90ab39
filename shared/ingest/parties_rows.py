"""The parties of a version as rows: those that its own text names, and nobody else's.

A row of `parties` is what all who name the same party share, so it says no more than the key they have in common. How
a version writes the name is the version's own: a document must not show how another one spells it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.base import Json
from shared.db.tables.catalog import document_parties, document_versions, parties
from shared.ingest.facts import FoundParty
from shared.ingest.recordset import recordset
from shared.types import VersionId


def write_parties(connection: sa.Connection, version_id: VersionId, found: Sequence[FoundParty]) -> None:
    """Write the parties of a version that has none yet; nothing is sent when there are none.

    Two statements: a party that another transaction has just written is seen by the second one only.
    """
    if not found:
        return
    rows = [
        {
            "normalised_name": one.key,
            "name": one.name,
            "role": one.role,
            "evidence": {"text": one.text, "char_start": one.char_start, "char_end": one.char_end},
        }
        for one in found
    ]
    connection.execute(_insert_parties(), {"party_rows": rows})
    connection.execute(_insert_links(), {"party_rows": rows, "version_id": version_id})


def replace_parties(connection: sa.Connection, version_id: VersionId, found: Sequence[FoundParty]) -> None:
    """Make these the parties of a version."""
    connection.execute(sa.delete(document_parties).where(document_parties.c.version_id == version_id))
    write_parties(connection, version_id, found)


def forget_names(connection: sa.Connection, version_ids: Collection[VersionId]) -> None:
    """Take the parties that a file's name gave from versions whose facts name none any more."""
    left = sa.func.jsonb_array_length(sa.func.coalesce(document_versions.c.facts["parties"], sa.cast("[]", pg.JSONB)))
    connection.execute(
        sa.delete(document_parties).where(
            document_parties.c.version_id == document_versions.c.id,
            document_versions.c.id.in_(version_ids),
            left == 0,
        )
    )


def _given() -> Any:
    columns = [parties.c.normalised_name, document_parties.c.name, document_parties.c.role, document_parties.c.evidence]
    return recordset("party_rows", columns)


@cache
def _insert_parties() -> Any:
    """Return the insert of the parties that are not there; in one order for all, against deadlocks."""
    given = _given()
    names = sa.select(given.c.normalised_name, given.c.normalised_name.label("name")).distinct().order_by(sa.text("1"))
    insert = pg.insert(parties).from_select(["normalised_name", "name"], names)
    return insert.on_conflict_do_nothing(index_elements=["normalised_name"])


@cache
def _insert_links() -> Any:
    given = _given()
    links = sa.select(
        sa.bindparam("version_id", type_=document_parties.c.version_id.type),
        parties.c.id,
        given.c.role,
        given.c.name,
        sa.cast(given.c.evidence, Json),
    ).join(parties, parties.c.normalised_name == given.c.normalised_name)
    # In the order of the key, against deadlocks.
    links = links.order_by(parties.c.id, given.c.role)
    insert = pg.insert(document_parties).from_select(["version_id", "party_id", "role", "name", "evidence"], links)
    return insert.on_conflict_do_nothing()
