"""The client against an engine in trouble: a whole answer or the right error, within the deadline."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shared.errors import (
    EngineUnavailableError,
    IndexRequestError,
    KnowledgeIndexError,
    MisconfiguredError,
    PartialAnswerError,
)
from shared.index.answers import BulkOutcome
from shared.index.client import MAX_BULK_BYTES, AwsCredentials, IndexClient, Write, connect
from shared.settings import load_settings
from tests.index.stub_engine import WHOLE, Answer, StubEngine, error, item, items, stub_engine

BODY = {"query": {"match_all": {}}}


def client_of(url: str, *, timeout_s: float = 2.0, deadline_s: float = 4.0, **more: str) -> IndexClient:
    environment = {
        "KI_OPENSEARCH__URL": url,
        "KI_OPENSEARCH__TIMEOUT_S": str(timeout_s),
        "KI_OPENSEARCH__DEADLINE_S": str(deadline_s),
    }
    return connect(load_settings(environment | more).opensearch)


@contextmanager
def engine(*answers: Answer) -> Iterator[tuple[StubEngine, IndexClient]]:
    with stub_engine(*answers) as stub:
        client = client_of(stub.url)
        client._pause = lambda _: None
        yield stub, client
        client.close()


def refused(client: IndexClient, searches: int = 1) -> KnowledgeIndexError:
    with pytest.raises(KnowledgeIndexError) as caught:
        client.multi_search("chunks", [BODY] * searches)
    assert "SECRET" not in str(caught.value)
    return caught.value


def test_rows_come_back_for_every_search_in_order() -> None:
    with engine(items(item("a", "b"), item(), item("c"))) as (stub, client):
        answers = client.multi_search("chunks", [BODY] * 3, preference="me")
    assert [[row.chunk_id for row in rows] for rows in answers] == [["a", "b"], [], ["c"]]
    header = json.loads(stub.asked[0].splitlines()[0])
    assert header["allow_partial_search_results"] is False
    assert header["preference"] == "me"


def test_no_search_asks_nothing() -> None:
    with engine(items()) as (stub, client):
        assert client.multi_search("chunks", []) == []
    assert stub.asked == []


def test_the_hook_sees_the_exact_bytes_that_are_sent() -> None:
    seen: list[bytes] = []
    with engine(items(item("a"))) as (stub, client):
        client.on_request = seen.append
        client.multi_search("chunks", [{"query": {"match": {"text": "Kündigung"}}}])
        path, payload = client.multi_search_request("chunks", [{"query": {"match": {"text": "Kündigung"}}}])
        status, text = client.raw("POST", path, payload)
    assert seen == stub.asked[:1] == [payload]
    assert (status, json.loads(text)["responses"][0]["hits"]["hits"][0]["_id"]) == (200, "a")


@pytest.mark.parametrize(
    "partial",
    [
        item("a", _shards={"total": 2, "successful": 1, "failed": 1}),
        item("a", _shards={"total": 2, "successful": 1, "failed": 0}),
        item("a", timed_out=True),
        {"status": 200, "_shards": WHOLE, "hits": {"hits": []}},
        error("search_phase_execution_exception", 503),
        error("search_phase_execution_exception", 504),
    ],
    ids=["failed shard", "missing shard", "timed out", "no word on time", "shards failure", "time exceeded"],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_partial_answer_of_any_leg_is_refused(partial: dict[str, Any], place: int) -> None:
    legs = [item("x"), item("y")]
    legs[place] = partial
    with engine(items(*legs)) as (_, client):
        assert isinstance(refused(client, 2), PartialAnswerError)


@pytest.mark.parametrize(
    "partial",
    [
        item("a", _shards={"total": 2, "successful": 1, "failed": 1}),
        item("a", _shards={"total": 2, "successful": 1, "failed": 0}),
        item("a", timed_out=True),
    ],
)
def test_a_partial_list_or_count_is_refused_too(partial: dict[str, Any]) -> None:
    with engine(Answer(partial)) as (_, client), pytest.raises(PartialAnswerError):
        client.search("chunks", BODY)
    if not partial["timed_out"]:
        with (
            engine(Answer({"count": 1, "_shards": partial["_shards"]})) as (_, client),
            pytest.raises(PartialAnswerError),
        ):
            client.count("chunks", {"match_all": {}})


@pytest.mark.parametrize(
    ("total", "told"), [({"value": 7, "relation": "eq"}, 7), ({"value": 10_000, "relation": "gte"}, None), (None, None)]
)
def test_a_total_is_told_only_if_it_is_exact(total: Any, told: int | None) -> None:
    with engine(Answer(item(hits={"total": total, "hits": []}))) as (_, client):
        assert client.search("chunks", BODY).total == told


def test_a_shard_that_comes_back_makes_the_answer_whole() -> None:
    broken = items(item("a", _shards={"total": 1, "successful": 0, "failed": 1}))
    with engine(broken, items(item("a"))) as (stub, client):
        assert client.multi_search("chunks", [BODY])[0][0].chunk_id == "a"
    assert len(stub.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        Answer(error("rejected_execution_exception", 429), 429),
        Answer(error("cluster_block_exception", 503), 503),
        Answer({}, 503),
        Answer({"message": "bad gateway"}, 502),
        items(error("rejected_execution_exception", 429)),
        items(error("task_cancelled_exception", 500)),
        Answer(status=0),
    ],
    ids=["429", "503", "bare 503", "502", "429 of a leg", "cancelled leg", "closed connection"],
)
def test_a_busy_engine_is_asked_again_and_then_given_up(answer: Answer) -> None:
    with engine(answer, items(item("a"))) as (stub, client):
        assert client.multi_search("chunks", [BODY])[0][0].chunk_id == "a"
    assert len(stub.asked) == 2
    with engine(answer) as (stub, client):
        assert isinstance(refused(client), EngineUnavailableError)
    assert len(stub.asked) == 4


@pytest.mark.parametrize(
    "answer",
    [
        Answer(error("circuit_breaking_exception", 429), 429),
        items(error("circuit_breaking_exception", 429)),
        items(error("search_phase_execution_exception", 503, root_cause=[{"type": "circuit_breaking_exception"}])),
        items(
            error(
                "search_phase_execution_exception",
                503,
                failed_shards=[{"reason": {"type": "circuit_breaking_exception"}}],
            )
        ),
    ],
)
def test_a_tripped_breaker_is_never_tried_again(answer: Answer) -> None:
    with engine(answer) as (stub, client):
        problem = refused(client)
    assert isinstance(problem, EngineUnavailableError)
    assert "memory" in problem.message
    assert len(stub.asked) == 1


def test_one_leg_with_a_tripped_breaker_forbids_repeating_the_others() -> None:
    legs = items(error("rejected_execution_exception", 429), error("circuit_breaking_exception", 429))
    with engine(legs) as (stub, client):
        assert "memory" in refused(client, 2).message
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        Answer(b"<html>it works</html>"),
        Answer(b""),
        Answer(b"\xff\xfe"),
        Answer([]),
        Answer({"responses": "none"}),
        Answer({"responses": []}),
        items(item(), item()),
        Answer({"responses": ["text"]}),
        Answer({"responses": [{"hits": {"hits": []}, "timed_out": False}]}),
        Answer({"responses": [{"timed_out": False, "_shards": {"total": 1}}]}),
        items(item(_shards={"total": 0, "successful": 0, "failed": 0})),
        items(item(hits={"hits": [{"_score": 1.0}]})),
        items(item(hits=["a"])),
    ],
)
def test_garbage_is_no_answer(garbage: Answer) -> None:
    with engine(garbage) as (_, client):
        assert isinstance(refused(client), EngineUnavailableError)


def test_a_missing_index_says_what_to_do() -> None:
    for answer in (
        items(error("index_not_found_exception", 404)),
        Answer(error("index_not_found_exception", 404), 404),
    ):
        with engine(answer) as (_, client):
            problem = refused(client)
        assert isinstance(problem, EngineUnavailableError)
        assert "'chunks' does not exist" in problem.message
        assert "ki up" in problem.message


def test_a_refused_request_is_a_fault_of_ours_and_keeps_the_engines_words_to_itself() -> None:
    for answer in (items(error("parsing_exception", 400)), Answer(error("parsing_exception", 400), 400)):
        with engine(answer) as (stub, client):
            problem = refused(client)
        assert isinstance(problem, IndexRequestError)
        assert "parsing_exception" in problem.message
        assert "SECRET" in (problem.reason or "")
        assert len(stub.asked) == 1


def test_refused_credentials_are_a_matter_of_configuration() -> None:
    for status in (401, 403):
        with engine(Answer({"error": error("security_exception")["error"]}, status)) as (_, client):
            assert isinstance(refused(client), MisconfiguredError)


def test_a_slow_engine_is_given_up_in_time_and_not_asked_twice() -> None:
    slow = Answer({}, hold=threading.Event())
    with stub_engine(slow) as stub:
        client = client_of(stub.url, timeout_s=0.2)
        begin = time.monotonic()
        problem = refused(client)
        took_s = time.monotonic() - begin
        client.close()
    assert isinstance(problem, EngineUnavailableError)
    assert took_s < 1.5
    assert len(stub.asked) == 1


def test_a_dead_engine_is_given_up_within_the_deadline() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = client_of(f"http://127.0.0.1:{port}", deadline_s=2.0)
    begin = time.monotonic()
    problem = refused(client)
    assert isinstance(problem, EngineUnavailableError)
    assert "opensearch.url" in problem.message
    assert time.monotonic() - begin < 2.0
    client.close()


def test_the_deadline_ends_the_retries() -> None:
    busy = Answer(error("rejected_execution_exception", 429), 429)
    with stub_engine(busy) as stub:
        client = client_of(stub.url, deadline_s=0.05)
        refused(client)
        client.close()
    assert len(stub.asked) == 1


def bulk_answer(*statuses: int) -> Answer:
    names = {429: "rejected_execution_exception", 400: "mapper_parsing_exception", 409: "version_conflict"}
    return Answer(
        {
            "errors": True,
            "items": [
                {
                    "index": {"_id": f"c{place}", "status": status}
                    | ({"error": {"type": names[status]}} if status in names else {})
                }
                for place, status in enumerate(statuses)
            ],
        }
    )


def writes(count: int) -> list[Write]:
    return [Write(f"c{place}", 7, {"text": "x"}) for place in range(count)]


def test_each_write_has_its_own_outcome() -> None:
    with engine(bulk_answer(201, 409, 400, 200)) as (stub, client):
        outcomes = [one.outcome for one in client.bulk("chunks", writes(4))]
    assert outcomes == [BulkOutcome.WRITTEN, BulkOutcome.NEWER, BulkOutcome.REFUSED, BulkOutcome.WRITTEN]
    first = json.loads(stub.asked[0].splitlines()[0])
    assert first == {"index": {"_id": "c0", "version": 7, "version_type": "external_gte"}}


def test_only_the_writes_that_were_not_taken_are_sent_again() -> None:
    again = Answer({"errors": False, "items": [{"index": {"_id": "c1", "status": 201}}]})
    with engine(bulk_answer(201, 429, 400), again) as (stub, client):
        outcomes = [one.outcome for one in client.bulk("chunks", writes(3))]
    assert outcomes == [BulkOutcome.WRITTEN, BulkOutcome.WRITTEN, BulkOutcome.REFUSED]
    assert [len(asked.splitlines()) for asked in stub.asked] == [6, 2]


def test_writes_that_are_never_taken_are_reported_not_lost() -> None:
    with engine(bulk_answer(429)) as (stub, client):
        [one] = client.bulk("chunks", writes(1))
    assert one.outcome is BulkOutcome.UNAVAILABLE
    assert len(stub.asked) == 4


def test_bulk_bodies_stay_under_the_limit() -> None:
    with engine(
        Answer({"items": [{"index": {"_id": f"{place}", "status": 201}} for place in range(2)]}),
        Answer({"items": [{"index": {"_id": "2", "status": 201}}]}),
    ) as (stub, client):
        big = {"text": "x" * (MAX_BULK_BYTES // 2 - 200)}
        outcomes = client.bulk("chunks", [Write(str(place), 1, big) for place in range(3)])
    assert [len(asked) < MAX_BULK_BYTES for asked in stub.asked] == [True, True]
    assert [one.chunk_id for one in outcomes] == ["0", "1", "2"]


def test_a_bulk_answer_of_another_length_is_garbage() -> None:
    with engine(bulk_answer(201)) as (_, client), pytest.raises(EngineUnavailableError):
        client.bulk("chunks", writes(2))


@pytest.mark.parametrize("url", [None, "not an address", "ftp://search.example"])
def test_an_address_that_is_none_is_named(url: str | None) -> None:
    environment = {} if url is None else {"KI_OPENSEARCH__URL": url}
    with pytest.raises(MisconfiguredError, match=r"opensearch\.url"):
        connect(load_settings(environment).opensearch)


def test_signing_needs_a_region_and_credentials() -> None:
    environment = {"KI_OPENSEARCH__URL": "https://search.example", "KI_OPENSEARCH__AUTH": "sigv4"}
    with pytest.raises(MisconfiguredError, match="sigv4"):
        connect(load_settings(environment).opensearch)


@pytest.fixture
def signed() -> Iterator[Any]:
    """What `connect` signs a request with, given keys that change with each request."""
    settings = load_settings(
        {
            "KI_OPENSEARCH__URL": "https://search.example",
            "KI_OPENSEARCH__AUTH": "sigv4",
            "KI_OPENSEARCH__REGION": "eu-central-1",
        }
    ).opensearch
    keys = iter(["FIRST", "SECOND"])
    client = connect(settings, credentials=lambda: AwsCredentials(next(keys), "invented", "session"))
    sign = client._connection.http_auth  # type: ignore[attr-defined]
    yield lambda path, body: sign("POST", f"https://search.example:443{path}", body)
    client.close()


def test_each_request_is_signed_with_the_credentials_of_the_moment(signed: Any) -> None:
    authorizations = [signed("/chunks/_msearch", b"body")["authorization"] for _ in range(2)]
    assert ["Credential=FIRST/" in one for one in authorizations] == [True, False]
    assert "Credential=SECOND/" in authorizations[1]


def test_a_signature_is_the_one_that_amazons_own_signer_makes(signed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import datetime

    from botocore import auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    with engine(items(item("a"))) as (_, client):
        path, payload = client.multi_search_request("chunks", [BODY])
    ours = signed(path, payload)
    moment = datetime.strptime(ours["x-amz-date"], "%Y%m%dT%H%M%SZ")  # noqa: DTZ007
    monkeypatch.setattr(auth, "get_current_datetime", lambda **_: moment)
    headers = {"x-amz-content-sha256": ours["x-amz-content-sha256"]}
    theirs = AWSRequest("POST", f"https://search.example{path}", data=payload, headers=headers)
    auth.SigV4Auth(Credentials("FIRST", "invented", "session"), "es", "eu-central-1").add_auth(theirs)
    assert ours["authorization"] == theirs.headers["Authorization"]
