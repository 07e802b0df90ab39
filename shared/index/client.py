"""The only module that talks to the ranking engine: whole answers within a deadline, or an error.

Nothing but connection failures, 429 and 503 is tried again, with jitter, while the deadline lasts. A request that
tripped a circuit breaker is not: the same body would trip it again. A read that ran out of time is not either: the
engine may still be busy with it.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from shared.errors import EngineUnavailableError, MisconfiguredError
from shared.index.answers import (
    BulkItem,
    BulkOutcome,
    Failure,
    PackedRow,
    RankedRow,
    SearchAnswer,
    bulk_items,
    count_answer,
    failure,
    multi_search_answer,
    packed_rows,
    packed_rows_at_once,
    search_answer,
)
from shared.settings import OpenSearch

MAX_BULK_BYTES: Final = 5_000_000
_MAX_TRIES: Final = 4
_FIRST_PAUSE_S: Final = 0.1
_CONNECTIONS: Final = 10
_SHARDS: Final = "_shards.total,_shards.successful,_shards.failed"
_ITEM: Final = (
    f"status,error,timed_out,{_SHARDS},hits.total,hits.hits._id,hits.hits._score,hits.hits.fields,hits.hits.sort"
)
# What an answer needs to be judged and read; the rest (index name, took, types) is not even written by the engine.
# Percent-encoded, because signers disagree on how a bare comma or star is to be signed.
_SEARCH_PATHS: Final = quote(_ITEM, safe="")
_MULTI_SEARCH_PATHS: Final = quote(
    ",".join(["error", "status", *(f"responses.{path}" for path in _ITEM.split(","))]), safe=""
)
_BULK_PATHS: Final = quote("error,status,errors,items.*._id,items.*.status,items.*.error", safe="")

_EVERY_STATUS: Final = range(300, 600)

_T = TypeVar("_T")
Refresh = Literal["false", "wait_for"]


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """What a request is signed with."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Write:
    """One row to write at a version of its own; without a row, the row to remove for good."""

    chunk_id: str
    version: int
    row: Mapping[str, Any] | None


class Connection(Protocol):
    """One keep-alive pool to one address."""

    def perform_request(
        self, method: str, url: str, *, body: bytes | None, timeout: float, ignore: range
    ) -> tuple[int, Any, str]:
        """Return status, headers and text."""

    def close(self) -> None:
        """Close the pool."""


class IndexClient:
    """Searches and writes by alias. Safe to share between threads."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout_s: float,
        deadline_s: float,
        on_request: Callable[[bytes], None] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._pause = pause
        self.on_request = on_request
        """Gets the exact bytes of every search as they are sent, so that a benchmark can replay them."""

    def multi_search(
        self, alias: str, bodies: Sequence[Mapping[str, Any]], *, preference: str | None = None
    ) -> list[list[RankedRow]]:
        """Return the rows of every search, in order, from one request; an error if any of them is not whole.

        `preference` keeps a session on one copy of each shard, so that equal scores keep their order.
        """
        if not bodies:
            return []
        path, payload = self.multi_search_request(alias, bodies, preference=preference)
        return self._asked(
            _Request("POST", path, payload, alias),
            lambda answer: multi_search_answer(answer, expected=len(bodies), target=alias),
        )

    def multi_search_packed(
        self, alias: str, bodies: Sequence[Mapping[str, Any]], *, preference: str | None = None
    ) -> list[list[PackedRow]]:
        """Return what `multi_search` returns, but of each row its packed `RowRef` and its score alone.

        Every body needs `row_ref.LIGHT_ROWS`. Several times faster, because most is done in C.
        """
        path, payload = self.multi_search_request(alias, bodies, preference=preference)
        return self._asked(
            _Request("POST", path, payload, alias),
            lambda answer: packed_rows(answer, expected=len(bodies), target=alias),
            at_once=lambda text: packed_rows_at_once(text, expected=len(bodies)),
        )

    def multi_search_request(
        self, alias: str, bodies: Sequence[Mapping[str, Any]], *, preference: str | None = None
    ) -> tuple[str, bytes]:
        """Return path and body of the request that `multi_search` sends."""
        header: dict[str, Any] = {
            "allow_partial_search_results": False,
            "cancel_after_time_interval": f"{int(self._timeout_s * 1000)}ms",
        }
        if preference is not None:
            header["preference"] = preference
        first = _json(header)
        payload = b"".join(part for body in bodies for part in (first, b"\n", _json(body), b"\n"))
        return f"/{quote(alias)}/_msearch?filter_path={_MULTI_SEARCH_PATHS}", payload

    def search(self, alias: str, body: Mapping[str, Any]) -> SearchAnswer:
        """Return the rows of one search, and the exact total if the body tracks it."""
        path = f"/{quote(alias)}/_search?allow_partial_search_results=false&filter_path={_SEARCH_PATHS}"
        request = _Request("POST", path, _json(body), alias)
        return self._asked(request, lambda answer: search_answer(answer, target=alias))

    def count(self, alias: str, query: Mapping[str, Any]) -> int:
        """Return the number of rows that match `query`."""
        request = _Request("POST", f"/{quote(alias)}/_count", _json({"query": query}), alias)
        return self._asked(request, lambda answer: count_answer(answer, target=alias))

    def bulk(self, alias: str, writes: Sequence[Write], *, refresh: Refresh = "false") -> list[BulkItem]:
        """Return the outcome of every write, in order.

        Bodies stay under 5 MB. What the engine could not take is tried again while the deadline lasts. With
        `wait_for`, the call returns when searches see the writes. Raises only if the engine cannot be reached.
        """
        outcomes: dict[int, BulkItem] = {}
        for batch in _batches(writes):
            self._write(alias, batch, outcomes, refresh=refresh)
        return [outcomes[place] for place in range(len(writes))]

    def refresh(self, alias: str) -> None:
        """Make every write so far visible to searches. For tests and for comparing, never on the way of a write."""
        self.request("POST", f"/{quote(alias)}/_refresh", target=alias)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, target: str = "") -> Any:
        """Return the answer to an administrative request as JSON. Raises on every status from 400 on."""
        payload = None if body is None else _json(body)
        return self._sent(_Request(method, path, payload, target), _taken_as_it_is, self._ends())

    def raw(self, method: str, path: str, payload: bytes | None) -> tuple[int, str]:
        """Return status and text of one try, unread: the bare arm of a benchmark."""
        status, _, text = self._connection.perform_request(
            method, path, body=payload, timeout=self._timeout_s, ignore=_EVERY_STATUS
        )
        return status, text

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def _asked(
        self,
        request: _Request,
        read: Callable[[object], _T | Failure],
        *,
        at_once: Callable[[str], _T | None] | None = None,
    ) -> _T:
        if self.on_request is not None:
            self.on_request(request.payload or b"")
        return self._sent(request, read, self._ends(), at_once=at_once)

    def _write(self, alias: str, batch: list[_Line], outcomes: dict[int, BulkItem], *, refresh: Refresh) -> None:
        """Fill `outcomes` for one batch, sending again what the engine could not take."""
        ends = self._ends()
        path = f"/{quote(alias)}/_bulk?require_alias=true&refresh={refresh}&filter_path={_BULK_PATHS}"
        for attempt in range(1, _MAX_TRIES + 1):
            request = _Request("POST", path, b"".join(line.payload for line in batch), alias)
            items = self._sent(request, partial(bulk_items, expected=len(batch)), ends)
            outcomes.update((line.place, item) for line, item in zip(batch, items, strict=True))
            batch = [line for line in batch if outcomes[line.place].outcome is BulkOutcome.UNAVAILABLE]
            if not batch or not self._paused(attempt, ends):
                return

    def _sent(
        self,
        request: _Request,
        read: Callable[[object], _T | Failure],
        ends: float,
        *,
        at_once: Callable[[str], _T | None] | None = None,
    ) -> _T:
        """Return what `at_once` makes of the answer's text, else `read` of its JSON; try again where that may help."""
        for attempt in range(1, _MAX_TRIES + 1):
            outcome = self._tried(request, read, ends, at_once)
            if not isinstance(outcome, Failure):
                return outcome
            if not outcome.again or not self._paused(attempt, ends):
                raise outcome.error
        raise AssertionError("the last try returns or raises")

    def _tried(
        self,
        request: _Request,
        read: Callable[[object], _T | Failure],
        ends: float,
        at_once: Callable[[str], _T | None] | None,
    ) -> _T | Failure:
        from opensearchpy.exceptions import ConnectionTimeout, SSLError, TransportError  # noqa: PLC0415

        timeout_s = max(0.001, min(self._timeout_s, ends - time.monotonic()))
        try:
            status, _, text = self._connection.perform_request(
                request.method, request.path, body=request.payload, timeout=timeout_s, ignore=_EVERY_STATUS
            )
        except ConnectionTimeout as error:
            return _away(f"The index engine did not answer within {timeout_s:.3g} s; try again shortly.", error)
        except TransportError as error:
            text = "The index engine cannot be reached; check that it runs and that opensearch.url is right."
            return _away(text, error, again=not isinstance(error, SSLError))
        except ValueError as error:
            return _not_json(error)
        if at_once is not None and status == HTTPStatus.OK and (found := at_once(text)) is not None:
            return found
        return _judged(request, status, text, read)

    def _paused(self, attempt: int, ends: float) -> bool:
        """Wait before another try and return True, or return False if there is none left or no time."""
        wait_s = _FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 (jitter)
        if attempt >= _MAX_TRIES or time.monotonic() + wait_s >= ends:
            return False
        self._pause(wait_s)
        return True

    def _ends(self) -> float:
        return time.monotonic() + self._deadline_s


def connect(
    settings: OpenSearch,
    *,
    credentials: Callable[[], AwsCredentials] | None = None,
    on_request: Callable[[bytes], None] | None = None,
) -> IndexClient:
    """Return a client for the configured engine; nothing is sent yet.

    `credentials` is asked for every request, so that they may be refreshed; it is needed for `auth: sigv4` alone.
    """
    from opensearchpy.connection import Urllib3HttpConnection  # noqa: PLC0415 (costs 0.4 s; tests and tools go without)

    if settings.url is None:
        raise MisconfiguredError("opensearch.url is not set; set KI_OPENSEARCH__URL to the engine's address.")
    address = urlsplit(settings.url)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise MisconfiguredError("opensearch.url must be an address such as https://search.example:443.")
    secure = address.scheme == "https"
    connection = Urllib3HttpConnection(
        host=address.hostname,
        port=address.port or (443 if secure else 80),
        use_ssl=secure,
        url_prefix=address.path.rstrip("/"),
        http_auth=_signer(settings, credentials),
        pool_maxsize=_CONNECTIONS,
        # Vectors and bitmaps do not shrink; on loopback packing costs more than it saves.
        http_compress=False,
    )
    return IndexClient(connection, timeout_s=settings.timeout_s, deadline_s=settings.deadline_s, on_request=on_request)


def _signer(
    settings: OpenSearch, credentials: Callable[[], AwsCredentials] | None
) -> Callable[[str, str, bytes | None], dict[str, str]] | None:
    """Return what signs each request for an Amazon domain, or None where no signature is wanted."""
    if settings.auth == "none":
        return None
    if credentials is None or settings.region is None:
        raise MisconfiguredError("opensearch.auth is sigv4: it needs opensearch.region and AWS credentials.")
    import requests  # noqa: PLC0415
    from requests_aws4auth.aws4auth import AWS4Auth  # noqa: PLC0415

    region = settings.region

    def sign(method: str, url: str, body: bytes | None) -> dict[str, str]:
        now = credentials()
        auth = AWS4Auth(  # type: ignore[no-untyped-call]  # the package has no types
            now.access_key,
            now.secret_key,
            region,
            "es",
            session_token=now.token,
            include_hdrs={"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"},
        )
        signed = auth(requests.Request(method, url, data=body).prepare())
        names = ("authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token")
        return {name: signed.headers[name] for name in names if name in signed.headers}

    return sign


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    payload: bytes | None
    target: str


@dataclass(frozen=True, slots=True)
class _Line:
    place: int
    payload: bytes


def _batches(writes: Sequence[Write]) -> Iterator[list[_Line]]:
    """Yield the writes in request bodies of at most `MAX_BULK_BYTES`; a larger single row goes alone."""
    batch: list[_Line] = []
    size = 0
    for place, write in enumerate(writes):
        payload = _lines(write)
        if batch and size + len(payload) > MAX_BULK_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(_Line(place, payload))
        size += len(payload)
    if batch:
        yield batch


def _lines(write: Write) -> bytes:
    # Without external versions a late write would overtake a newer one, or revive a deleted row.
    what = {"_id": write.chunk_id, "version": write.version, "version_type": "external_gte"}
    if write.row is None:
        return _json({"delete": what}) + b"\n"
    return _json({"index": what}) + b"\n" + _json(write.row) + b"\n"


def _json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError):
        # A lone surrogate cannot travel; texts have none, and a fault elsewhere must not become a crash here.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _judged(request: _Request, status: int, text: str, read: Callable[[object], _T | Failure]) -> _T | Failure:
    try:
        answer = json.loads(text) if text else {}
    except ValueError as error:
        return _not_json(error)
    if status >= HTTPStatus.BAD_REQUEST:
        problem = answer.get("error") if isinstance(answer, dict) else None
        return failure(status, problem, target=request.target)
    try:
        return read(answer)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        return _away("The index engine's answer is not what it should be; check opensearch.url.", error)


def _taken_as_it_is(answer: object) -> Any:
    return answer


def _not_json(cause: ValueError) -> Failure:
    return _away("The index engine's answer is not JSON; check opensearch.url.", cause)


def _away(message: str, cause: Exception, *, again: bool = False) -> Failure:
    error = EngineUnavailableError(message)
    error.__cause__ = cause
    return Failure(error, again=again)
