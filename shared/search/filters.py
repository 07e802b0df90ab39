"""Metadata filters as clauses of an index query."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from shared.index import fields
from shared.ontology.tree import Ontology
from shared.search.request import Filters

_TERMS: Final = {
    "project_id": fields.PROJECT_ID,
    "matter_id": fields.MATTER_ID,
    # A type matches what lies below it: each row carries its type's ancestors.
    "doc_type": fields.DOC_TYPE_ANCESTORS,
    "version_status": fields.VERSION_STATUS,
    "language": fields.LANGUAGE,
    "chunk_kind": fields.CHUNK_KIND,
}
_BOUNDS: Final = {"date_from": "gte", "date_to": "lte"}


def filter_clauses(filters: Filters, ontology: Ontology) -> list[dict[str, Any]]:
    """Return one clause a filter, in a fixed order; all of them must match. Rows without a date match no range.

    A type of clauses matches what lies below it in the tree.

    Raises `TypeError` on a filter or a value of a shape that is not known here: leaving it out would widen the search.
    """
    given = {name: value for name, value in filters if value is not None}
    clauses: list[dict[str, Any]] = [
        {"term": {field: _value(given.pop(name))}} for name, field in _TERMS.items() if name in given
    ]
    clause_type = given.pop("clause_type", None)
    if clause_type is not None:
        clauses.append({"terms": {fields.CLAUSE_TYPE: list(ontology.clause_subtree(_value(clause_type)))}})
    bounds = {bound: _value(given.pop(name)) for name, bound in _BOUNDS.items() if name in given}
    if given:
        raise TypeError(f"no clause is known for the filters {sorted(given)}")
    if bounds:
        clauses.append({"range": {fields.DOC_DATE: bounds}})
    return clauses


def _value(value: object) -> str:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, UUID):
        return str(value)
    # A moment is a day too for Python, but it would be compared with its time.
    if type(value) is date:
        return value.isoformat()
    raise TypeError(f"a filter cannot hold a {type(value).__name__}")
