"""Titan and Cohere on Bedrock, through the real client, against an emulated endpoint."""

import math
import threading

import pytest
from botocore.exceptions import NoCredentialsError

from shared.errors import EmbeddingWidthError, MisconfiguredError, ProviderRefusedError, ProviderUnavailableError
from shared.providers.embedding.bedrock import BedrockEmbedding, bedrock_client
from shared.providers.embedding.retry import Retry
from tests.unit.providers.conftest import Reply

TITAN = "amazon.titan-embed-text-v2:0"
COHERE_V3 = "cohere.embed-multilingual-v3"
COHERE_V4 = "eu.cohere.embed-v4:0"


def vector(text, width):
    return [float(len(text) + 1), *[1.0] * (width - 1)]


def unit(values):
    return pytest.approx([value / math.hypot(*values) for value in values])


def titan(width=256):
    return lambda request: Reply({"embedding": vector(request["inputText"], width), "inputTextTokenCount": 3})


def cohere(width=1024, *, typed=True):
    def reply(request):
        rows = [vector(text, width) for text in request["texts"]]
        return Reply({"id": "x", "texts": request["texts"], "embeddings": {"float": rows} if typed else rows})

    return reply


def failure(code, status, message="said the service", **headers):
    return Reply({"message": message}, status=status, headers={"x-amzn-ErrorType": code, **headers})


@pytest.fixture
def client(server, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    made = bedrock_client(region="eu-central-1", timeout_s=0.5)
    yield made
    made.close()


@pytest.fixture
def model(client, fake_time):
    def make(model_id=TITAN, *, dimensions=256, **changes):
        changes.setdefault("retry", Retry(deadline_s=10.0, clock=fake_time.clock, sleep=fake_time.sleep))
        return BedrockEmbedding(client=client, model_id=model_id, dimensions=dimensions, **changes)

    return make


def test_titan_is_asked_text_by_text_for_the_configured_width(server, model):
    server.replies = [titan()]
    texts = ["a", "bb", "ccc"]
    assert model().embed_passages(texts) == [unit(vector(text, 256)) for text in texts]
    assert sorted(request["inputText"] for request in server.requests) == texts
    assert server.requests[0] | {"inputText": ""} == {"inputText": "", "dimensions": 256, "normalize": True}
    assert server.paths[0] == "/model/amazon.titan-embed-text-v2%3A0/invoke"


def test_cohere_is_told_which_side_of_the_search_a_text_stands_on(server, model):
    server.replies = [cohere()]
    embedding = model(COHERE_V3, dimensions=1024)
    embedding.embed_queries(["a"])
    assert embedding.embed_passages(["a", "b"]) == [unit(vector("a", 1024))] * 2
    assert [request["input_type"] for request in server.requests] == ["search_query", "search_document"]
    assert "output_dimension" not in server.requests[0]


def test_the_width_is_sent_to_the_cohere_model_that_has_several(server, model):
    server.replies = [cohere(1536)]
    assert len(model(COHERE_V4, dimensions=1536).embed_queries(["a"])[0]) == 1536
    assert server.requests[0]["output_dimension"] == 1536


def test_the_older_untyped_answer_is_read_as_well(server, model):
    server.replies = [cohere(typed=False)]
    assert model(COHERE_V3, dimensions=1024).embed_queries(["a"]) == [unit(vector("a", 1024))]


def test_cohere_never_gets_more_texts_than_it_takes(server, model):
    server.replies = [cohere()]
    assert len(model(COHERE_V3, dimensions=1024, batch_size=500).embed_passages(["x"] * 200)) == 200
    assert [len(request["texts"]) for request in server.requests] == [96, 96, 8]


@pytest.mark.parametrize(
    ("model_id", "dimensions", "offered"),
    [(TITAN, 1536, "256, 512, 1024"), (COHERE_V3, 384, "1024"), (COHERE_V4, 384, "256, 512, 1024, 1536")],
)
def test_a_width_the_model_cannot_make_is_refused_before_any_call(server, model, model_id, dimensions, offered):
    with pytest.raises(EmbeddingWidthError) as caught:
        model(model_id, dimensions=dimensions)
    for part in (model_id, f"{offered} dimensions", f"{dimensions} are configured", "EMBEDDING_DIMENSIONS"):
        assert part in str(caught.value)
    assert server.requests == []


def test_an_unknown_model_is_refused_with_the_known_ones(model):
    with pytest.raises(MisconfiguredError, match=r"amazon\.titan-embed-text-v1.*known on Bedrock are"):
        model("amazon.titan-embed-text-v1", dimensions=1536)


def test_an_answer_of_another_width_names_both(server, model):
    server.replies = [titan(512)]
    with pytest.raises(EmbeddingWidthError, match="makes vectors of 512 dimensions, but 256 are configured"):
        model().embed_queries(["a"])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 429),
        ("ServiceUnavailableException", 503),
        ("InternalServerException", 500),
        ("ModelTimeoutException", 408),
        ("ModelNotReadyException", 429),
    ],
)
def test_a_passing_failure_is_tried_again(server, model, fake_time, code, status):
    server.replies = [failure(code, status), titan()]
    assert model().embed_queries(["a"]) == [unit(vector("a", 256))]
    assert len(fake_time.slept) == 1


def test_the_pause_the_service_asks_for_is_kept(server, model, fake_time):
    server.replies = [failure("ThrottlingException", 429, **{"Retry-After": "3"}), titan()]
    model().embed_queries(["a"])
    assert fake_time.slept == [3.0]


def test_a_service_that_throttles_for_ever_is_unavailable(server, model):
    server.replies = [failure("ThrottlingException", 429, "Too many requests")]
    with pytest.raises(ProviderUnavailableError, match=r"Too many requests.*gave up after"):
        model().embed_queries(["a"])
    assert len(server.requests) > 3


def test_a_service_that_does_not_answer_in_time_is_unavailable(server, client):
    hold = threading.Event()
    server.replies = [Reply("", hold=hold)]
    try:
        with pytest.raises(ProviderUnavailableError, match="ReadTimeoutError"):
            BedrockEmbedding(client=client, model_id=TITAN, dimensions=256, timeout_s=0.6).embed_queries(["a"])
    finally:
        hold.set()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AccessDeniedException", 403),
        ("UnrecognizedClientException", 403),
        ("ValidationException", 400),
        ("ResourceNotFoundException", 404),
    ],
)
def test_a_refusal_is_permanent_and_not_repeated(server, model, code, status):
    server.replies = [failure(code, status)]
    with pytest.raises(ProviderRefusedError, match=f"{TITAN}: {code}: said the service"):
        model().embed_queries(["a"])
    assert len(server.requests) == 1


def test_missing_credentials_are_permanent_and_say_where_to_look():
    class WithoutCredentials:
        def invoke_model(self, **_request):
            raise NoCredentialsError

    with pytest.raises(ProviderRefusedError, match="Unable to locate credentials; check the role"):
        BedrockEmbedding(client=WithoutCredentials(), model_id=TITAN, dimensions=256).embed_queries(["a"])


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "{}", {"embedding": None}, {"embedding": [0] * 256}, {"embedding": ["1"] * 256}]
)
def test_an_answer_that_is_not_one_good_vector_is_refused(server, model, body):
    server.replies = [Reply(body)]
    with pytest.raises(ProviderRefusedError, match=TITAN):
        model().embed_queries(["a"])


@pytest.mark.parametrize("embeddings", [None, {}, {"int8": [[1]]}, [], [[1.0] * 1024] * 3, "x"])
def test_an_answer_for_other_than_all_texts_is_refused(server, model, embeddings):
    server.replies = [Reply({"embeddings": embeddings})]
    with pytest.raises(ProviderRefusedError, match=COHERE_V3):
        model(COHERE_V3, dimensions=1024).embed_passages(["a", "b"])


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "😀"])
def test_any_text_is_sent_as_valid_unicode_that_is_not_blank(server, model, text):
    server.replies = [titan()]
    model().embed_queries([text])
    assert server.requests[0]["inputText"].strip()
    server.requests[0]["inputText"].encode()


def test_no_texts_ask_for_nothing(server, model):
    assert model().embed_passages([]) == model(COHERE_V3, dimensions=1024).embed_queries([]) == []
    assert server.requests == []


def test_the_signature_fits_an_index_name(model):
    assert model().signature == "amazon-titan-embed-text-v2-0-256"
