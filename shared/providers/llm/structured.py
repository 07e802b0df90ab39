"""An answer in the shape that was asked for: checked, and asked for again with what was wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.errors import AnswerInvalidError
from shared.providers.embedding.retry import Retry
from shared.providers.llm.protocol import AnswerT

MAX_CORRECTIONS = 2
_MAX_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said: the answer as JSON (text or value), and the message as its provider wants it back.

    A message of None holds nothing that could be sent back: the question is then repeated as it was.
    """

    answer: Any
    message: Any


@dataclass(frozen=True, slots=True)
class Correction:
    """A reply that did not fit, and what the model is told about it."""

    message: Any
    told: str


Ask = Callable[[Sequence[Correction], float], Reply]
"""Sends the question with the corrections so far, within the seconds that are left; raises `TryAgainError` to go on."""


def complete(ask: Ask, answer: type[AnswerT], *, model_id: str, retry: Retry) -> AnswerT:
    """Return the first answer that fits; the deadline of `retry` holds for all rounds together.

    Raises `AnswerInvalidError` when the answer after the last correction does not fit either.
    """
    end = retry.clock() + retry.deadline_s
    corrections: list[Correction] = []
    rounds = 0
    while True:
        rounds += 1
        left = replace(retry, deadline_s=max(end - retry.clock(), 0.0))
        reply = left.run(f"asking {model_id}", lambda left_s: ask(tuple(corrections), left_s))
        try:
            return _validated(reply.answer, answer)
        except ValidationError as error:
            problems = _problems(error, answer)
            if rounds > MAX_CORRECTIONS:
                raise AnswerInvalidError(
                    f"{model_id}: the answer does not fit, {rounds} times: {'; '.join(problems)}"
                ) from error
        if reply.message is not None:
            corrections.append(Correction(reply.message, _told(problems)))


def schema_of(answer: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema that a model is held to, without references: not every model follows them."""
    schema = answer.model_json_schema()
    parts = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inlined(schema, parts)
    return inlined


def _validated(given: Any, answer: type[AnswerT]) -> AnswerT:
    # As JSON, whatever a provider hands over: one set of rules for both.
    return answer.model_validate_json(given if isinstance(given, str) else json.dumps(given), strict=True)


def _told(problems: Sequence[str]) -> str:
    return f"This answer does not fit the schema: {'; '.join(problems)}. Answer again, in full, and fit the schema."


def _problems(error: ValidationError, answer: type[BaseModel]) -> list[str]:
    """Return what is wrong, without anything that the model has said: its words may be the document's."""
    found = []
    for each in error.errors(include_url=False, include_input=False, include_context=False)[:_MAX_PROBLEMS]:
        known = [str(part) for part in each["loc"] if isinstance(part, int) or part in _names(answer)]
        found.append(f"{'.'.join(known) or 'the answer'}: {each['msg'] if known else each['type']}")
    return found


def _inlined(part: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inlined(each, parts) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(parts[part["$ref"].rpartition("/")[2]], parts)
    return {key: _inlined(value, parts) for key, value in part.items()}


def _names(answer: type[BaseModel]) -> set[str]:
    """Return the field names of the class and of the classes in it."""
    schema = answer.model_json_schema()
    return {name for part in (schema, *schema.get("$defs", {}).values()) for name in part.get("properties", {})}
