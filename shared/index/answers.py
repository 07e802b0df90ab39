"""What the engine's answers mean: rows, or the error to raise. A part of an answer is never taken for the whole.

An HTTP status of 200 says little: inside it a shard may have failed, a limit may have cut the search short, or one of
several searches may have been refused. Each of these is an error here. Texts of the engine can quote a query, so they
go into no message; only the engine's name for the error does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from shared.errors import (
    EngineUnavailableError,
    IndexRequestError,
    KnowledgeIndexError,
    MisconfiguredError,
    PartialAnswerError,
)
from shared.index import fields
from shared.index.row_ref import CHUNK_ID_CHARS, RowRef, unpacked

PackedRow = tuple[str, float]
"""A row of a body with `row_ref.LIGHT_ROWS`: its packed `RowRef`, and its score."""


class RankedRow(NamedTuple):
    """One row of an answer: id, score, and the asked-for fields as the engine gives them (each a list of values).

    `ref` needs a body with `row_ref.LIGHT_ROWS`; it is read only when asked for.
    """

    chunk_id: str
    score: float
    fields: Mapping[str, list[Any]]
    sort: Sequence[Any] = ()

    @property
    def ref(self) -> RowRef:
        """What the row says of itself. Raises `KeyError` if the body did not ask for it."""
        return unpacked(self.fields[fields.ROW][0])


class _Shards(msgspec.Struct, gc=False):
    total: int
    successful: int
    failed: int


class _LightFields(msgspec.Struct, gc=False):
    row: tuple[str]


class _LightHit(msgspec.Struct, gc=False):
    fields: _LightFields
    score: float | None = msgspec.field(name="_score", default=None)


class _LightHits(msgspec.Struct):
    hits: list[_LightHit] = []


class _LightSearch(msgspec.Struct):
    timed_out: bool
    shards: _Shards = msgspec.field(name="_shards")
    hits: _LightHits = msgspec.field(default_factory=_LightHits)
    error: None = None

    @property
    def is_whole(self) -> bool:
        return not self.timed_out and not self.shards.failed and self.shards.successful >= self.shards.total > 0


class _LightAnswer(msgspec.Struct):
    responses: list[_LightSearch]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Rows in the engine's order and the exact number of matches, if the body asked for it."""

    rows: list[RankedRow]
    total: int | None


class BulkOutcome(StrEnum):
    """What became of one write."""

    WRITTEN = "written"
    NEWER = "newer"
    """The index holds a newer state already: as good as written."""
    REFUSED = "refused"
    """The row itself is wrong; writing it again cannot succeed."""
    UNAVAILABLE = "unavailable"
    """The engine could not take it now."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """One write's outcome, with the engine's reason when it failed."""

    chunk_id: str
    outcome: BulkOutcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The error to raise, and whether the same request may be sent again at once."""

    error: KnowledgeIndexError
    again: bool


_NOTHING: Mapping[str, list[Any]] = {}
_LIGHT_ANSWERS = msgspec.json.Decoder(_LightAnswer)
_BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE})
_CANCELLED = frozenset({"task_cancelled_exception", "rejected_execution_exception"})
_BREAKER = "circuit_breaking_exception"
_NO_INDEX = "index_not_found_exception"
_BLOCKED = "cluster_block_exception"
_PARTIAL = "search_phase_execution_exception"


def failure(status: int, error: object, *, target: str) -> Failure:
    """Return what an error answer means. `error` is the body's `error`; `target` is the index asked."""
    names = _names(error)
    name = names[0] if names else f"HTTP {status}"
    if _BREAKER in names:
        # The same body would trip it again, and trying adds to the load that trips it.
        text = "The index engine is short of memory for this request; try again later or narrow the request."
        return Failure(EngineUnavailableError(text), again=False)
    if _NO_INDEX in names or (status == HTTPStatus.NOT_FOUND and not names):
        text = f"The search index {target!r} does not exist; create it with `ki up` or the migrate function."
        return Failure(EngineUnavailableError(text), again=False)
    if status in _BUSY or _CANCELLED & set(names):
        kind = PartialAnswerError if _PARTIAL in names else EngineUnavailableError
        return Failure(kind(f"The index engine is busy or away ({name}); try again shortly."), again=True)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} and _BLOCKED not in names:
        text = f"The index engine refuses these credentials ({name}); check opensearch.auth, the region and the role."
        return Failure(MisconfiguredError(text), again=False)
    if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and _BLOCKED not in names:
        text = f"The index refused the request ({name}); this is a fault of the product, not of the query."
        return Failure(IndexRequestError(text, reason=_reason(error)), again=False)
    kind = PartialAnswerError if _PARTIAL in names else EngineUnavailableError
    return Failure(kind(f"The index engine failed ({name}); try again shortly."), again=False)


def multi_search_answer(answer: object, *, expected: int, target: str) -> list[list[RankedRow]] | Failure:
    """Return the rows of each search in order, or the gravest failure if any of them is not whole."""
    responses = answer.get("responses") if isinstance(answer, dict) else None
    if not isinstance(responses, list) or len(responses) != expected:
        return _garbage()
    ranked: list[list[RankedRow]] = []
    failures: list[Failure] = []
    for response in responses:
        problem = _problem(response, target=target)
        if problem is None:
            ranked.append(_rows(response))
        else:
            failures.append(problem)
    if failures:
        # One search that must not be repeated forbids repeating them all.
        return min(failures, key=lambda one: one.again)
    return ranked


def packed_rows_at_once(text: str, *, expected: int) -> list[list[PackedRow]] | None:
    """Return the packed rows of each search, straight from the answer's text, or None if anything is not as usual.

    Then `multi_search_answer` says what is wrong with it: this one only ever takes what that one takes.
    """
    try:
        answer = _LIGHT_ANSWERS.decode(text)
    except ValueError:
        return None
    if len(answer.responses) != expected or not all(one.is_whole for one in answer.responses):
        return None
    return [[(hit.fields.row[0], hit.score or 0.0) for hit in one.hits.hits] for one in answer.responses]


def packed_rows(answer: object, *, expected: int, target: str) -> list[list[PackedRow]] | Failure:
    """Return the packed rows of each search in order, or the gravest failure if any of them is not whole."""
    found = multi_search_answer(answer, expected=expected, target=target)
    if isinstance(found, Failure):
        return found
    return [[(row.fields[fields.ROW][0], row.score) for row in rows] for rows in found]


def search_answer(answer: object, *, target: str) -> SearchAnswer | Failure:
    """Return the rows and the total of one search, or why it is not whole."""
    problem = _problem(answer, target=target)
    if problem is not None:
        return problem
    assert isinstance(answer, dict)
    total = answer.get("hits", {}).get("total")
    if total is None:
        return SearchAnswer(_rows(answer), None)
    if not isinstance(total, dict) or total.get("relation") != "eq":
        # A lower bound must not be shown as a number of matches.
        return SearchAnswer(_rows(answer), None)
    return SearchAnswer(_rows(answer), int(total["value"]))


def count_answer(answer: object, *, target: str) -> int | Failure:
    """Return the number of matches, or why it is not whole."""
    if not isinstance(answer, dict) or not isinstance(answer.get("count"), int):
        return _garbage()
    return _shards_problem(answer, target=target) or int(answer["count"])


def bulk_items(answer: object, *, expected: int) -> list[BulkItem] | Failure:
    """Return the outcome of each write in order."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != expected:
        return _garbage()
    return [_bulk_item(next(iter(item.values()))) for item in items]


def _bulk_item(item: Mapping[str, Any]) -> BulkItem:
    chunk_id, status, error = str(item["_id"]), int(item["status"]), item.get("error")
    names = _names(error)
    if status == HTTPStatus.CONFLICT:
        return BulkItem(chunk_id, BulkOutcome.NEWER)
    if error is None and (status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.NOT_FOUND):
        # A delete of what is not there is done.
        return BulkItem(chunk_id, BulkOutcome.WRITTEN)
    reason = f"{names[0] if names else status}: {_reason(error)}"
    if (
        status in _BUSY
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or {_NO_INDEX, _BLOCKED, _BREAKER} & set(names)
        or status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    ):
        return BulkItem(chunk_id, BulkOutcome.UNAVAILABLE, reason)
    return BulkItem(chunk_id, BulkOutcome.REFUSED, reason)


def _problem(response: object, *, target: str) -> Failure | None:
    """Return why one search's answer is not whole, or None."""
    if not isinstance(response, dict):
        return _garbage()
    error = response.get("error")
    if error is not None:
        return failure(int(response.get("status", HTTPStatus.INTERNAL_SERVER_ERROR)), error, target=target)
    if response.get("timed_out") is not False:
        return Failure(PartialAnswerError("The index ran out of time; try again or narrow the request."), again=False)
    return _shards_problem(response, target=target)


def _shards_problem(response: Mapping[str, Any], *, target: str) -> Failure | None:
    shards = response.get("_shards")
    if not isinstance(shards, dict) or not {"total", "successful", "failed"} <= shards.keys():
        return _garbage()
    if shards["failed"] or shards["successful"] < shards["total"]:
        text = f"Only {shards['successful']} of {shards['total']} shards of {target!r} answered; try again shortly."
        return Failure(PartialAnswerError(text), again=True)
    if not shards["total"]:
        # An alias without an index behind it answers "no hits" with no shard at all.
        return Failure(EngineUnavailableError(f"The search index {target!r} has no shards."), again=False)
    return None


def _rows(response: Mapping[str, Any]) -> list[RankedRow]:
    return [_row(hit) for hit in response.get("hits", _NOTHING).get("hits", ())]


def _row(hit: Mapping[str, Any]) -> RankedRow:
    values = hit.get("fields", _NOTHING)
    row = values.get(fields.ROW)
    # Without stored fields the engine gives no `_id`.
    chunk_id = row[0][:CHUNK_ID_CHARS] if row else hit.get("_id") or values[fields.CHUNK_ID][0]
    return RankedRow(chunk_id, hit.get("_score") or 0.0, values, hit.get("sort", ()))


def _garbage() -> Failure:
    text = "The index engine's answer is not what it should be; try again shortly, and check opensearch.url."
    return Failure(EngineUnavailableError(text), again=False)


def _names(error: object) -> list[str]:
    """Return the engine's names for an error, the outermost first."""
    if isinstance(error, str):
        return [error]
    if not isinstance(error, dict):
        return []
    names = [str(error["type"])] if "type" in error else []
    for cause in error.get("root_cause") or ():
        names += _names(cause)
    for shard in error.get("failed_shards") or ():
        names += _names(shard.get("reason"))
    return names


def _reason(error: object) -> str:
    """Return the engine's own words, for the log of a developer or the record of one row; never for a user."""
    if not isinstance(error, dict):
        return str(error)[:300]
    deepest = error
    while isinstance(deepest.get("caused_by"), dict):
        deepest = deepest["caused_by"]
    return f"{error.get('reason')} ({deepest.get('reason')})"[:500]
