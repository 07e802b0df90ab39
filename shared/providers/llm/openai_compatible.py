"""Language models behind any server that speaks the OpenAI `POST /chat/completions` protocol with JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import urllib3
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import AnswerTruncatedError, ModelRefusedError, ProviderRefusedError
from shared.providers.embedding.retry import Retry, TryAgainError, retry_after_s
from shared.providers.llm.prompts import Filled, fill
from shared.providers.llm.protocol import AnswerT
from shared.providers.llm.structured import Correction, Reply, complete, schema_of

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_REASON_CHARS = 300


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    model_config = ConfigDict(extra="ignore")
    message: _Message
    finish_reason: str | None = None


class _Response(BaseModel):
    model_config = ConfigDict(extra="ignore")
    choices: list[_Choice] = Field(min_length=1)


class OpenAiCompatibleLanguageModel:
    """A model behind `{base_url}/chat/completions`.

    `timeout_s` is the time that one question may take with all that is tried again.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model_id: str,
        signature: str,
        timeout_s: float,
        max_answer_tokens: int,
        temperature: float | None = None,
        api_key: str | None = None,
        pool: urllib3.PoolManager | None = None,
        retry: Retry | None = None,
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model_id = model_id
        self._signature = signature
        self._limits: dict[str, Any] = {"max_completion_tokens": max_answer_tokens}
        if temperature is not None:
            self._limits["temperature"] = temperature
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._pool = pool or urllib3.PoolManager()
        self._retry = retry or Retry(deadline_s=timeout_s)

    @property
    def model_id(self) -> str:
        """The model's name at the server."""
        return self._model_id

    @property
    def signature(self) -> str:
        """What changes the answers."""
        return self._signature

    def complete(self, task: str, variables: Mapping[str, str], answer: type[AnswerT]) -> AnswerT:
        """Return the answer to a prompt."""
        filled = fill(task, variables)
        shape = {
            "type": "json_schema",
            "json_schema": {"name": task, "strict": True, "schema": schema_of(answer)},
        }

        def ask(corrections: Sequence[Correction], left_s: float) -> Reply:
            request = {"model": self._model_id, "messages": _messages(filled, corrections), "response_format": shape}
            return self._reply(self._post(json.dumps(request | self._limits).encode(), left_s))

        return complete(ask, answer, model_id=self._model_id, retry=self._retry)

    def _reply(self, content: bytes) -> Reply:
        try:
            choice = _Response.model_validate_json(content).choices[0]
        except ValidationError as error:
            raise ProviderRefusedError(f"{self._model_id}: the answer is not a chat completion") from error
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise ModelRefusedError(f"{self._model_id}: the model declined to answer")
        if choice.finish_reason == "length":
            raise AnswerTruncatedError(
                f"{self._model_id}: the answer was cut off (length); raise KI_LLM__MAX_ANSWER_TOKENS"
                " or lower KI_LLM__MAX_TEXT_CHARS"
            )
        said = choice.message.content
        return Reply(said or "", {"role": "assistant", "content": said} if said else None)

    def _post(self, body: bytes, left_s: float) -> bytes:
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=body,
                headers=self._headers,
                timeout=urllib3.Timeout(total=left_s),
                retries=False,
                redirect=False,  # a redirect would carry the key and the document elsewhere
            )
        except urllib3.exceptions.LocationValueError as error:
            raise ProviderRefusedError(f"KI_LLM__BASE_URL is not an address: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise TryAgainError(f"no answer ({type(error).__name__})") from error
        if response.status == 200:  # noqa: PLR2004
            return response.data
        reason = _reason(response.data)
        if response.status in _PASSING_STATUSES:
            raise TryAgainError(
                f"HTTP {response.status} {reason}", retry_after_s=retry_after_s(response.headers.get("Retry-After"))
            )
        if response.status in {401, 403}:
            raise ProviderRefusedError(
                f"{self._model_id}: the server refuses the key (HTTP {response.status}); check KI_LLM__API_KEY_FILE"
            )
        raise ProviderRefusedError(f"{self._model_id}: HTTP {response.status} {reason}")


def _messages(filled: Filled, corrections: Sequence[Correction]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": filled.system},
        {"role": "user", "content": filled.user},
    ]
    for correction in corrections:
        messages += [correction.message, {"role": "user", "content": correction.told}]
    return messages


def _reason(content: bytes) -> str:
    """Return the server's own words on an error, shortened; servers differ in where they put them."""
    try:
        said = json.loads(content)
    except ValueError:
        return ""
    for field in ("error", "detail", "message"):
        if isinstance(said, dict) and field in said:
            said = said[field]
    return str(said)[:_MAX_REASON_CHARS]
