"""Rows in one JSON parameter as a table: the statement is the same however many rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg


def recordset(parameter: str, columns: Sequence[sa.ColumnClause[Any]]) -> sa.TableValuedAlias:
    """Return the table whose rows are the objects of the JSON array in `parameter`; a field that is missing is null."""
    typed = [sa.column(column.name, column.type) for column in columns]
    array = sa.bindparam(parameter, type_=pg.JSONB)
    return sa.func.jsonb_to_recordset(array).table_valued(*typed).render_derived(name=parameter, with_types=True)
