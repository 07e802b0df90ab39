"""Language models on Amazon Bedrock, through Converse; the answer is the input of a tool that the model must use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import AnswerTruncatedError, ModelRefusedError, ProviderRefusedError
from shared.providers.embedding.retry import Retry, TryAgainError, retry_after_s
from shared.providers.llm.prompts import Filled, fill
from shared.providers.llm.protocol import AnswerT
from shared.providers.llm.structured import Correction, Reply, complete, schema_of

_TOOL = "answer"
_PASSING_CODES = frozenset(
    {
        "ThrottlingException",
        "TooManyRequestsException",
        "ModelTimeoutException",
        "ModelNotReadyException",
        "InternalServerException",
        "ServiceUnavailableException",
        "RequestTimeout",
    }
)
_FIRST_SERVER_ERROR = 500
_REFUSED = frozenset({"guardrail_intervened", "content_filtered", "refusal"})
_TRUNCATED = frozenset({"max_tokens", "model_context_window_exceeded"})


class BedrockLanguageModel:
    """A model behind `Converse`; `client` is a `bedrock-runtime` client whose own retries are off.

    `timeout_s` is the time that one question may take with all that is tried again. A model must be one that can be
    told which tool to use (Anthropic Claude, Amazon Nova).
    """

    def __init__(
        self,
        *,
        client: Any,
        model_id: str,
        signature: str,
        timeout_s: float,
        max_answer_tokens: int,
        temperature: float | None = None,
        retry: Retry | None = None,
    ) -> None:
        self._client = client
        self._model_id = model_id
        self._signature = signature
        self._limits: dict[str, Any] = {"maxTokens": max_answer_tokens}
        if temperature is not None:
            self._limits["temperature"] = temperature
        self._retry = retry or Retry(deadline_s=timeout_s)

    @property
    def model_id(self) -> str:
        """The Bedrock model id."""
        return self._model_id

    @property
    def signature(self) -> str:
        """What changes the answers."""
        return self._signature

    def complete(self, task: str, variables: Mapping[str, str], answer: type[AnswerT]) -> AnswerT:
        """Return the answer to a prompt."""
        filled, tool = fill(task, variables), _tool(schema_of(answer))
        return complete(
            lambda corrections, _left_s: self._ask(filled, tool, corrections),
            answer,
            model_id=self._model_id,
            retry=self._retry,
        )

    def _ask(self, filled: Filled, tool: dict[str, Any], corrections: Sequence[Correction]) -> Reply:
        from botocore import exceptions  # noqa: PLC0415 - whoever made the client has loaded it

        try:
            response = self._client.converse(
                modelId=self._model_id,
                system=[{"text": filled.system}],
                messages=_messages(filled, corrections),
                inferenceConfig=self._limits,
                toolConfig=tool,
            )
        except exceptions.ClientError as error:
            raise self._mapped(error) from error
        except (exceptions.HTTPClientError, exceptions.IncompleteReadError) as error:
            raise TryAgainError(f"no answer ({type(error).__name__})") from error
        except exceptions.BotoCoreError as error:
            raise ProviderRefusedError(f"{self._model_id}: {error}; check the role and KI_LLM__REGION") from error
        return self._reply(response)

    def _reply(self, response: Mapping[str, Any]) -> Reply:
        reason = response.get("stopReason")
        if reason in _REFUSED:
            raise ModelRefusedError(f"{self._model_id}: the model declined to answer ({reason})")
        if reason in _TRUNCATED:
            raise AnswerTruncatedError(
                f"{self._model_id}: the answer was cut off ({reason}); raise KI_LLM__MAX_ANSWER_TOKENS"
                " or lower KI_LLM__MAX_TEXT_CHARS"
            )
        message = response.get("output", {}).get("message", {})
        content = message.get("content", [])
        used = [block["toolUse"] for block in content if "toolUse" in block]
        return Reply(used[0]["input"] if used else "", message if content else None)

    def _mapped(self, error: Any) -> Exception:
        detail = error.response.get("Error", {})
        metadata = error.response.get("ResponseMetadata", {})
        code, status = str(detail.get("Code", "")), int(metadata.get("HTTPStatusCode", 0))
        said = f"{code}: {detail.get('Message', '')}"
        if code in _PASSING_CODES or status == 429 or status >= _FIRST_SERVER_ERROR:  # noqa: PLR2004
            return TryAgainError(said, retry_after_s=retry_after_s(metadata.get("HTTPHeaders", {}).get("retry-after")))
        return ProviderRefusedError(f"{self._model_id}: {said}")


def _tool(schema: dict[str, Any]) -> dict[str, Any]:
    spec = {"name": _TOOL, "description": "Takes the answer.", "inputSchema": {"json": schema}}
    return {"tools": [{"toolSpec": spec}], "toolChoice": {"tool": {"name": _TOOL}}}


def _messages(filled: Filled, corrections: Sequence[Correction]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": filled.user}]}]
    for correction in corrections:
        used = [block["toolUse"] for block in correction.message["content"] if "toolUse" in block]
        told: list[dict[str, Any]] = [{"text": correction.told}]
        if used:
            # Every use of a tool wants its result in the next message.
            told = [{"toolResult": {"toolUseId": u["toolUseId"], "content": told, "status": "error"}} for u in used]
        messages += [correction.message, {"role": "user", "content": told}]
    return messages
