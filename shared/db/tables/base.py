"""The metadata with its naming rule, and the column shapes that recur."""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Uuid = pg.UUID(as_uuid=True)
Json = pg.JSONB(none_as_null=True)
TextArray = pg.ARRAY(sa.Text)
Moment = sa.DateTime(timezone=True)


class _TextBacked(sa.types.UserDefinedType[str]):
    """A PostgreSQL type without a Python one; it travels as text."""

    cache_ok = True
    name: str

    def get_col_spec(self, **_: Any) -> str:
        return self.name


class Xid8(_TextBacked):
    """A transaction id that never wraps."""

    cache_ok = True
    name = "xid8"


class PgSnapshot(_TextBacked):
    """Which transactions were finished at a moment."""

    cache_ok = True
    name = "pg_snapshot"


def id_column() -> sa.Column[uuid.UUID]:
    """Return the primary key column `id`, made by the database when the writer gives none."""
    return sa.Column("id", Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()"))


def reference(name: str, target: str, *, nullable: bool = False, cascade: bool = True) -> sa.Column[uuid.UUID]:
    """Return a column that refers to `target` ("table.column")."""
    rule = "CASCADE" if cascade else "SET NULL"
    return sa.Column(name, Uuid, sa.ForeignKey(target, ondelete=rule), nullable=nullable)


def created_at() -> sa.Column[Any]:
    """Return the column that says when the row came to be."""
    return sa.Column("created_at", Moment, nullable=False, server_default=sa.func.now())


def one_of(column: str, values: type[StrEnum]) -> sa.CheckConstraint:
    """Return the check that `column` holds a member of a closed set."""
    listed = ", ".join(f"'{value.value}'" for value in values)
    return sa.CheckConstraint(f"{column} in ({listed})", name=f"{column}_known")
