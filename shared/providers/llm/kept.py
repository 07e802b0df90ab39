"""Answers that are kept: the same question to the same model is asked once.

Copies of one file at several places then read alike, and a run that begins anew costs nothing twice. An answer is
made of one text and lies beside that text; it is no less and no more secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from shared.providers.llm.protocol import AnswerT, LanguageModel
from shared.providers.llm.structured import schema_of
from shared.providers.storage import ObjectStore, derived_key


class KeptAnswers:
    """A model whose answers lie in the object store, by question, model and prompts."""

    def __init__(self, model: LanguageModel, store: ObjectStore) -> None:
        self._model = model
        self._store = store

    @property
    def model_id(self) -> str:
        """The model's name."""
        return self._model.model_id

    @property
    def signature(self) -> str:
        """What changes the answers."""
        return self._model.signature

    def complete(self, task: str, variables: Mapping[str, str], answer: type[AnswerT]) -> AnswerT:
        """Return the kept answer, or ask and keep it. What failed is not kept."""
        question = json.dumps([self.signature, task, dict(variables), schema_of(answer)], sort_keys=True)
        key = derived_key("answers", question.encode())
        if self._store.exists(key):
            return answer.model_validate_json(self._store.get(key), strict=True)
        given = self._model.complete(task, variables, answer)
        self._store.put(key, given.model_dump_json().encode())
        return given
