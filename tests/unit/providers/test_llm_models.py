"""Both kinds of language model against emulated answers: what fits, what does not, and what never comes."""

import json
import threading
from enum import StrEnum

import pytest
from botocore.exceptions import NoCredentialsError
from pydantic import BaseModel, ConfigDict

from shared.errors import (
    AnswerInvalidError,
    AnswerTruncatedError,
    MisconfiguredError,
    ModelRefusedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from shared.providers.embedding.bedrock import bedrock_client
from shared.providers.embedding.retry import Retry
from shared.providers.llm.bedrock import BedrockLanguageModel
from shared.providers.llm.factory import make_language_model, signature_of
from shared.providers.llm.openai_compatible import OpenAiCompatibleLanguageModel
from shared.settings import load_settings
from tests.unit.providers.conftest import Reply

VARIABLES = {"document": "Kaufvertrag über eine Maschine", "doc_types": "contract"}
GOOD = {"title": "Kaufvertrag", "colour": "red"}
KEY = "test-key-not-a-secret"


class Colour(StrEnum):
    RED = "red"


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str | None
    colour: Colour


class OpenAi:
    """The protocol of chat completions."""

    @staticmethod
    def model(server, **changes):
        return OpenAiCompatibleLanguageModel(
            **{"base_url": f"{server.url}/v1/", "model_id": "legal-1", "signature": "s", "timeout_s": 10.0}
            | {"max_answer_tokens": 500, "temperature": 0.0, "api_key": KEY}
            | changes
        )

    @staticmethod
    def says(answer, finish="stop"):
        content = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
        message = {"role": "assistant", "content": content, "refusal": None}
        return Reply({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]})

    @classmethod
    def truncated(cls):
        return cls.says('{"title": "Kau', "length")

    @staticmethod
    def refused():
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        return Reply({"choices": [{"message": message, "finish_reason": "stop"}]})

    @staticmethod
    def failure(status, **headers):
        return Reply({"error": {"message": "said the service"}}, status=status, headers=headers)

    @staticmethod
    def user_text(request):
        return request["messages"][1]["content"]

    @staticmethod
    def told(request):
        return request["messages"][-1]["content"]


class Bedrock:
    """The protocol of Converse."""

    client = None

    @classmethod
    def model(cls, _server, **changes):
        return BedrockLanguageModel(
            **{"client": cls.client, "model_id": "eu.anthropic.claude", "signature": "s", "timeout_s": 10.0}
            | {"max_answer_tokens": 500, "temperature": 0.0}
            | changes
        )

    @staticmethod
    def says(answer, stop="tool_use"):
        if answer is None:
            content = []
        elif isinstance(answer, str):
            content, stop = [{"text": answer}], "end_turn"
        else:
            content = [{"text": "Here."}, {"toolUse": {"toolUseId": "u1", "name": "answer", "input": answer}}]
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        message = {"role": "assistant", "content": content}
        body = {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}}
        return Reply(body)

    @classmethod
    def truncated(cls):
        return cls.says({}, "max_tokens")

    @classmethod
    def refused(cls):
        return cls.says(None, "content_filtered")

    @staticmethod
    def failure(status, **headers):
        code = {429: "ThrottlingException", 503: "ServiceUnavailableException"}.get(status, "ValidationException")
        return Reply({"message": "said the service"}, status=status, headers={"x-amzn-ErrorType": code, **headers})

    @staticmethod
    def user_text(request):
        return request["messages"][0]["content"][0]["text"]

    @staticmethod
    def told(request):
        block = request["messages"][-1]["content"][0]
        return block["toolResult"]["content"][0]["text"] if "toolResult" in block else block["text"]


@pytest.fixture(params=[OpenAi, Bedrock], ids=["openai", "bedrock"])
def kind(request, server, monkeypatch):
    if request.param is OpenAi:
        yield OpenAi
        return
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client = bedrock_client(region="eu-central-1", timeout_s=0.5)
    monkeypatch.setattr(Bedrock, "client", client)
    yield Bedrock
    client.close()


@pytest.fixture
def ask(kind, server, fake_time):
    def asked(*replies, **changes):
        server.replies = list(replies)
        changes.setdefault("retry", Retry(deadline_s=10.0, clock=fake_time.clock, sleep=fake_time.sleep))
        return kind.model(server, **changes).complete("describe_document", VARIABLES, Answer)

    return asked


def test_an_answer_that_fits_comes_back_as_a_value(kind, server, ask):
    assert ask(kind.says(GOOD)) == Answer(title="Kaufvertrag", colour=Colour.RED)
    [request] = server.requests
    assert "Kaufvertrag über eine Maschine" in kind.user_text(request)


def test_the_schema_goes_along_and_forbids_what_was_not_asked_for(server, kind, ask):
    ask(kind.says(GOOD))
    [request] = server.requests
    if kind is OpenAi:
        assert server.paths == ["/v1/chat/completions"]
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        shape = request["response_format"]["json_schema"]
        assert (request["response_format"]["type"], shape["name"], shape["strict"]) == (
            "json_schema", "describe_document", True,
        )  # fmt: skip
        schema = shape["schema"]
        assert (request["temperature"], request["max_completion_tokens"]) == (0.0, 500)
    else:
        assert server.paths == ["/model/eu.anthropic.claude/converse"]
        assert request["toolConfig"]["toolChoice"] == {"tool": {"name": "answer"}}
        schema = request["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]
        assert request["inferenceConfig"] == {"maxTokens": 500, "temperature": 0.0}
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["title", "colour"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("certainly! {", "the answer: "),
        ({"title": "x"}, "colour: Field required"),
        ({**GOOD, "granted_to": "user:everyone"}, "extra_forbidden"),
        ({**GOOD, "colour": "blue"}, "colour: Input should be 'red'"),
        ({**GOOD, "title": 7}, "title: Input should be a valid string"),
        ("[1]", "the answer: "),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong(kind, server, ask, wrong, told):
    assert ask(kind.says(wrong), kind.says(GOOD)).title == "Kaufvertrag"
    assert told in kind.told(server.requests[1])
    assert "granted_to" not in kind.told(server.requests[1])
    assert len(server.requests[1]["messages"]) == len(server.requests[0]["messages"]) + 2


def test_it_is_told_twice_and_then_it_is_an_error_that_says_what_is_wrong(kind, server, ask):
    with pytest.raises(AnswerInvalidError, match="does not fit, 3 times: colour: Field required"):
        ask(kind.says({"title": "x"}))
    assert len(server.requests) == 3
    assert len(server.requests[2]["messages"]) == len(server.requests[0]["messages"]) + 4


def test_an_empty_answer_is_asked_for_again_as_it_was(kind, server, ask):
    assert ask(kind.says(None), kind.says(GOOD)).title == "Kaufvertrag"
    assert server.requests[0] == server.requests[1]


def test_an_answer_that_was_cut_off_says_which_setting_to_change(kind, server, ask):
    with pytest.raises(AnswerTruncatedError, match="KI_LLM__MAX_ANSWER_TOKENS"):
        ask(kind.truncated())
    assert len(server.requests) == 1


def test_a_model_that_declines_is_not_asked_again(kind, server, ask):
    with pytest.raises(ModelRefusedError, match="declined"):
        ask(kind.refused())
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_is_busy_is_asked_again_as_late_as_it_wants(kind, server, ask, fake_time, status):
    assert ask(kind.failure(status, **{"Retry-After": "3"}), kind.says(GOOD)).title == "Kaufvertrag"
    assert fake_time.slept == [3.0]


def test_a_service_that_stays_busy_is_given_up_at_the_deadline(kind, server, ask, fake_time):
    with pytest.raises(ProviderUnavailableError, match="said the service; gave up"):
        ask(kind.failure(429))
    assert sum(fake_time.slept) <= 10.0


def test_corrections_and_retries_share_one_deadline(kind, server, ask, fake_time):
    busy = kind.failure(429, **{"Retry-After": "6"})
    with pytest.raises(ProviderUnavailableError):
        ask(busy, kind.says({"title": "x"}), busy, kind.says(GOOD))
    assert fake_time.slept == [6.0]


def test_a_service_that_does_not_answer_in_time_is_away(kind, server, ask):
    hold = threading.Event()
    try:
        with pytest.raises(ProviderUnavailableError, match="no answer"):
            ask(Reply(GOOD, hold=hold), retry=Retry(deadline_s=0.6))
    finally:
        hold.set()


def test_a_request_that_is_wrong_is_refused_at_once(kind, server, ask):
    with pytest.raises(ProviderRefusedError, match="said the service"):
        ask(kind.failure(400))
    assert len(server.requests) == 1


def test_a_key_that_is_refused_names_its_setting_and_never_itself(server):
    server.replies = [OpenAi.failure(401)]
    with pytest.raises(ProviderRefusedError, match="KI_LLM__API_KEY_FILE") as caught:
        OpenAi.model(server).complete("describe_document", VARIABLES, Answer)
    assert KEY not in str(caught.value)


def test_a_redirect_is_not_followed(server):
    server.replies = [Reply("", status=307, headers={"Location": f"{server.url}/elsewhere"})]
    with pytest.raises(ProviderRefusedError, match="HTTP 307"):
        OpenAi.model(server).complete("describe_document", VARIABLES, Answer)
    assert server.paths == ["/v1/chat/completions"]


def test_what_is_no_chat_completion_is_refused(server):
    server.replies = [Reply({"choices": []})]
    with pytest.raises(ProviderRefusedError, match="not a chat completion"):
        OpenAi.model(server).complete("describe_document", VARIABLES, Answer)


def test_without_credentials_the_role_and_the_region_are_named():
    class Client:
        def converse(self, **_):
            raise NoCredentialsError

    model = Bedrock.model(None, client=Client())
    with pytest.raises(ProviderRefusedError, match="KI_LLM__REGION"):
        model.complete("describe_document", VARIABLES, Answer)


def settings(**values):
    return load_settings({f"KI_LLM__{name.upper()}": value for name, value in values.items()}).llm


def test_rules_need_no_model():
    assert make_language_model(settings()) is None
    assert signature_of(settings()) == "rules"


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"provider": "bedrock"}, "KI_LLM__MODEL_ID"),
        ({"provider": "openai_compatible", "model_id": "m"}, "KI_LLM__BASE_URL"),
        (
            {"provider": "openai_compatible", "model_id": "m", "base_url": "http://x", "api_key_file": "/nowhere"},
            "API_KEY",
        ),
        ({"provider": "guess"}, "llm.provider"),
    ],
)
def test_a_setting_that_is_missing_is_named(values, missing):
    with pytest.raises(MisconfiguredError, match=missing):
        make_language_model(settings(**values))


def test_the_configured_model_is_made_and_signs_with_what_changes_its_answers(tmp_path):
    key = tmp_path / "key"
    key.write_text(f"{KEY}\n")
    values = {"provider": "openai_compatible", "model_id": "m", "base_url": "http://x", "api_key_file": str(key)}
    made = make_language_model(settings(**values))
    assert isinstance(made, OpenAiCompatibleLanguageModel)
    assert made.model_id == "m"
    assert made.signature == signature_of(settings(**values, timeout_s="3"))
    assert made.signature != signature_of(settings(**values | {"model_id": "n"}))
    assert made.signature != signature_of(settings(**values, max_text_chars="300"))
    bedrock = make_language_model(settings(provider="bedrock", model_id="m"), client=object())
    assert isinstance(bedrock, BedrockLanguageModel)
    assert bedrock.signature != made.signature
