"""What every language model looks like to ingest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from pydantic import BaseModel

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class LanguageModel(Protocol):
    """A model that answers a prompt in the shape that is asked for, and in no other."""

    @property
    def model_id(self) -> str:
        """The model's name, as it is stored beside what it found."""

    @property
    def signature(self) -> str:
        """What changes its answers: model, prompts, limits. Part of the producer version of each stage that asks."""

    def complete(self, task: str, variables: Mapping[str, str], answer: type[AnswerT]) -> AnswerT:
        """Return the answer to the prompt called `task`, filled with `variables`.

        The answer fits its class; whether it is true is for the caller to check, and no answer decides what anybody
        may see. Raises `ProviderUnavailableError` if the same call may succeed later; `ModelRefusedError`,
        `AnswerTruncatedError`, `AnswerInvalidError` or another `ProviderRefusedError` if it cannot.
        """
