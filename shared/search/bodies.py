"""The body of every query that a search sends; pure, one builder a query.

Each carries the scope as a clause of its own, first and unchanged, so that the engine can cache it; inside `knn.filter`
for the semantic leg, so that the graph is searched within the scope and not filtered afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.index import fields
from shared.index.row_ref import LIGHT_ROWS
from shared.search.lexical import lexical_query
from shared.search.words import runs

Clause = dict[str, Any]
Body = dict[str, Any]

JOINED_WEIGHT: Final = 3.0
"""A whole identifier weighs more than a part of one."""
OWN_WEIGHT: Final = 3.0
"""A document whose title bears the number is what the number stands for; others only mention it."""
# Ten shingles start at each run, in two forms at most; the engine refuses a query with more than 1,024 clauses.
_MAX_RUNS: Final = 48
_LIVE: Final[Clause] = {"term": {fields.DELETED: False}}
_HEADS: Final[Clause] = {"term": {fields.IS_HEAD: True}}
MAX_ORDINAL: Final = 2**31 - 1


def strict_filter(scope: Mapping[str, Any], clauses: Sequence[Clause]) -> list[Clause]:
    """Return what every row must fulfil: in scope, live, and as the metadata filters say."""
    return [dict(scope), _LIVE, *clauses]


def lexical_body(query: str, strict: Sequence[Clause], *, size: int, minimum_should_match: str | None) -> Body:
    """Return the search for the words of `query`."""
    must, should = lexical_query(query, minimum_should_match=minimum_should_match)
    return _ranked({"bool": {"filter": list(strict), "must": [must], "should": should}}, size=size)


def semantic_body(vector: Sequence[float], strict: Sequence[Clause], *, size: int) -> Body:
    """Return the search for the nearest vectors within the filter."""
    knn = {"vector": list(vector), "k": size, "filter": {"bool": {"filter": list(strict)}}}
    return _ranked({"knn": {fields.EMBEDDING: knn}}, size=size)


def identifier_body(query: str, strict: Sequence[Clause], *, size: int) -> Body:
    """Return the search for documents whose identifier stands in `query`, or which hold the whole query as a part.

    The index decides what an identifier is. A part has at least two runs: "2020" alone is in too many numbers. The
    title only orders what has matched.
    """
    parts = runs(query)
    text = query if len(parts) <= _MAX_RUNS else " ".join(parts[:_MAX_RUNS])
    queries: list[Clause] = [{"match": {fields.IDENTIFIERS_JOINED: {"query": text, "boost": JOINED_WEIGHT}}}]
    own: list[Clause] = []
    if 1 < len(parts) <= _MAX_RUNS:
        queries.append({"match_phrase": {fields.IDENTIFIERS_PARTS: {"query": text}}})
        own.append({"match_phrase": {fields.TITLE_EXACT: {"query": text, "boost": OWN_WEIGHT}}})
    found = {"filter": list(strict), "must": [{"dis_max": {"queries": queries}}], "should": own}
    return _ranked({"bool": found}, size=size)


def listing_body(strict: Sequence[Clause], *, size: int, heads_only: bool, after: Sequence[int] | None) -> Body:
    """Return the list by metadata: newest day first, rows without one last; rows of a version stand together.

    `after` is the `sort` of the row to go on behind. With `heads_only` there is one row a version.
    """
    clauses = [*strict, _HEADS] if heads_only else list(strict)
    body = _ranked({"bool": {"filter": clauses}}, size=size)
    body["sort"] = [
        {fields.DOC_DATE: {"order": "desc", "missing": "_last"}},
        {fields.VERSION_SEQ: "asc"},
        {fields.ORDINAL: "asc"},
    ]
    if after is not None:
        body["search_after"] = list(after)
    return body


def _ranked(query: Clause, *, size: int) -> Body:
    return {**LIGHT_ROWS, "size": size, "track_total_hits": False, "query": query}
