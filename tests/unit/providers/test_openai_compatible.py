"""What a gateway may answer, and what becomes of it."""

import json
import math
import threading

import pytest

from shared.errors import EmbeddingWidthError, ProviderRefusedError, ProviderUnavailableError
from shared.providers.embedding.openai_compatible import OpenAiCompatibleEmbedding
from shared.providers.embedding.retry import Retry
from tests.unit.providers.conftest import Reply

KEY = "test-key-not-a-secret"


def vector(text, width=4):
    return [float(len(text)), *[1.0] * (width - 1)]


def answering(width=4, order=1):
    def reply(request):
        data = [
            {"object": "embedding", "index": n, "embedding": vector(text, width)}
            for n, text in enumerate(request["input"])
        ]
        return Reply({"object": "list", "data": data[::order], "model": request["model"]})

    return reply


@pytest.fixture
def model(server, fake_time):
    def make(**changes):
        changes.setdefault("retry", Retry(deadline_s=10.0, clock=fake_time.clock, sleep=fake_time.sleep))
        return OpenAiCompatibleEmbedding(
            **{"base_url": f"{server.url}/v1/", "model_id": "legal-embed", "dimensions": 4, "api_key": KEY} | changes
        )

    return make


def unit(values):
    return pytest.approx([value / math.hypot(*values) for value in values])


def test_vectors_come_back_at_length_one_in_the_order_of_the_texts(server, model):
    server.replies = [answering(order=-1)]
    assert model().embed_passages(["a", "bbb"]) == [unit(vector("a")), unit(vector("bbb"))]
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.requests == [
        {"model": "legal-embed", "input": ["a", "bbb"], "encoding_format": "float", "dimensions": 4}
    ]


def test_texts_go_out_in_batches(server, model):
    server.replies = [answering()]
    texts = ["x" * n for n in range(1, 8)]
    assert model(batch_size=3).embed_passages(texts) == [unit(vector(text)) for text in texts]
    assert [len(request["input"]) for request in server.requests] == [3, 3, 1]


def test_queries_and_passages_carry_their_prefixes(server, model):
    server.replies = [answering()]
    embedding = model(query_prefix="query: ", passage_prefix="passage: ")
    embedding.embed_queries(["a"])
    embedding.embed_passages(["a"])
    assert [request["input"] for request in server.requests] == [["query: a"], ["passage: a"]]


def test_prefixes_are_part_of_the_signature_and_the_batch_size_is_not(model):
    assert model().signature == model(batch_size=1).signature == "legal-embed-4"
    assert model(query_prefix="q").signature.startswith("legal-embed-4-")
    assert model(query_prefix="q").signature != model(passage_prefix="q").signature
    assert model(model_id="Org/Model_v2.1").signature == "org-model-v2-1-4"


def test_dimensions_are_sent_only_if_configured(server, model):
    server.replies = [answering()]
    model(send_dimensions=False).embed_queries(["a"])
    assert "dimensions" not in server.requests[0]


def test_without_a_key_no_authorization_is_sent(server, model):
    server.replies = [answering()]
    model(api_key=None).embed_queries(["a"])
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("text", ["", "  \n", "\x00", "\ud800", "a\x00b\udfff", "😀", "שלום", "e\u0301" * 50])
def test_any_text_is_sent_as_valid_unicode_that_is_not_blank(server, model, text):
    server.replies = [answering()]
    assert math.hypot(*model().embed_passages([text])[0]) == pytest.approx(1)
    (sent,) = server.requests[0]["input"]
    assert sent.strip()
    assert "\x00" not in sent
    sent.encode()


def test_no_texts_ask_for_nothing(server, model):
    assert model().embed_passages([]) == []
    assert server.requests == []


def test_a_server_that_ignores_the_asked_width_is_named_with_both_widths(server, model):
    server.replies = [answering(width=6)]
    with pytest.raises(EmbeddingWidthError) as caught:
        model().embed_queries(["a"])
    for part in ("legal-embed", "6 dimensions", "4 are configured", "ignored", "KI_RETRIEVAL__EMBEDDING_DIMENSIONS=6"):
        assert part in str(caught.value)


def test_a_model_of_another_width_is_named_with_both_widths(server, model):
    server.replies = [answering(width=6)]
    with pytest.raises(EmbeddingWidthError, match="legal-embed makes vectors of 6 dimensions, but 4 are configured"):
        model(send_dimensions=False).embed_queries(["a"])


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "This model does not support specifying dimensions.", "type": "invalid_request_error"}},
        {"detail": "unexpected parameter: dimensions"},
        {"object": "error", "message": "Model does not support matryoshka representation, changing output dimensions"},
    ],
)
def test_a_server_that_rejects_the_asked_width_is_told_how_to_go_on(server, model, body):
    server.replies = [Reply(body, status=400)]
    with pytest.raises(EmbeddingWidthError, match=r"configured 4 dimensions .*KI_EMBEDDING__SEND_DIMENSIONS=false"):
        model().embed_queries(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(server, model, status, fake_time):
    server.replies = [Reply("", status=status), answering()]
    assert model().embed_queries(["a"]) == [unit(vector("a"))]
    assert len(fake_time.slept) == 1


def test_the_pause_a_server_asks_for_is_kept(server, model, fake_time):
    server.replies = [Reply("", status=429, headers={"Retry-After": "4"}), answering()]
    model().embed_queries(["a"])
    assert fake_time.slept == [4.0]


def test_a_server_that_throttles_for_ever_is_unavailable(server, model):
    server.replies = [Reply({"error": {"message": "Rate limit reached"}}, status=429)]
    with pytest.raises(ProviderUnavailableError, match=r"legal-embed: HTTP 429 .*Rate limit reached.* gave up after"):
        model().embed_queries(["a"])
    assert len(server.requests) > 3


def test_one_batch_that_fails_fails_the_whole_call(server, model):
    server.replies = [answering(), Reply("", status=400)]
    with pytest.raises(ProviderRefusedError):
        model(batch_size=1).embed_passages(["a", "b"])


def test_a_server_that_does_not_answer_in_time_is_unavailable(server, model):
    hold = threading.Event()
    server.replies = [Reply("", hold=hold)]
    try:
        with pytest.raises(ProviderUnavailableError, match="no answer"):
            model(retry=Retry(deadline_s=0.3)).embed_queries(["a"])
    finally:
        hold.set()


def test_an_address_where_nobody_listens_is_unavailable(model, unused_port):
    with pytest.raises(ProviderUnavailableError, match="no answer"):
        model(base_url=f"http://127.0.0.1:{unused_port}").embed_queries(["a"])


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_permanent_and_never_shown(server, model, status):
    server.replies = [Reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=status)]
    with pytest.raises(ProviderRefusedError, match="KI_EMBEDDING__API_KEY_FILE") as caught:
        model().embed_queries(["a"])
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 307, 400, 404, 413, 422])
def test_any_other_answer_is_permanent_and_no_redirect_is_followed(server, model, status):
    server.replies = [Reply("", status=status, headers={"Location": f"{server.url}/elsewhere"}), answering()]
    with pytest.raises(ProviderRefusedError, match=f"HTTP {status}"):
        model().embed_queries(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "<html>",
        "[]",
        "null",
        "{}",
        {"data": None},
        {"data": {}},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1, 2, 3, None]}]},
        {"data": [{"index": 0, "embedding": [1, 2, 3, "4"]}]},
        {"data": [{"index": 0, "embedding": [True, True, True, True]}]},
        {"data": [{"index": 1, "embedding": [1, 2, 3, 4]}]},
        {"data": [{"index": -1, "embedding": [1, 2, 3, 4]}]},
        {"data": [{"index": 0, "embedding": [0, 0, 0, 0]}]},
        '{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}]}',
        '{"data": [{"index": 0, "embedding": [1e999, 1, 1, 1]}]}',
        {"data": [{"index": 0, "embedding": [1, 2, 3, 4]}, {"index": 1, "embedding": [1, 2, 3, 4]}]},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
def test_an_answer_that_is_not_one_good_vector_for_one_text_is_refused(server, model, body):
    server.replies = [Reply(body)]
    with pytest.raises(ProviderRefusedError, match="legal-embed"):
        model().embed_queries(["a"])


def test_an_answer_for_only_some_texts_is_refused(server, model):
    server.replies = [Reply({"data": [{"index": 0, "embedding": [1, 2, 3, 4]}]})]
    with pytest.raises(ProviderRefusedError, match="1 vectors for 2 texts"):
        model().embed_passages(["a", "b"])


def test_an_answer_that_names_one_text_twice_is_refused(server, model):
    server.replies = [Reply({"data": [{"index": 0, "embedding": [1, 2, 3, 4]}] * 2})]
    with pytest.raises(ProviderRefusedError, match="index"):
        model().embed_passages(["a", "b"])


def test_an_answer_without_indices_is_taken_in_its_order(server, model):
    server.replies = [Reply({"data": [{"embedding": [1, 0, 0, 0]}, {"embedding": [0, 2, 0, 0]}]})]
    assert model().embed_passages(["a", "b"]) == [[1, 0, 0, 0], [0, 1, 0, 0]]
