"""The same question to the same model is asked once."""

import pytest
from pydantic import BaseModel, ConfigDict

from shared.errors import MisconfiguredError, ProviderUnavailableError
from shared.providers.llm.kept import KeptAnswers
from shared.providers.storage import FileStore
from shared.runtime.bootstrap import build
from shared.settings import load_settings


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str | None


class Other(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str | None
    day: str | None = None


class Model:
    model_id = "m"

    def __init__(self, signature="m:1", error=None):
        self.signature = signature
        self.error = error
        self.asked = 0

    def complete(self, _task, variables, answer):
        self.asked += 1
        if self.error is not None:
            raise self.error
        return answer(title=f"{variables['document']} für \U0001f600")


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


def test_a_question_is_asked_once_for_all_processes(store):
    first, second = Model(), Model()
    given = KeptAnswers(first, store).complete("t", {"document": "Ä"}, Answer)
    assert KeptAnswers(second, store).complete("t", {"document": "Ä"}, Answer) == given
    assert (first.asked, second.asked) == (1, 0)


def test_another_text_task_shape_or_model_is_another_question(store):
    model = Model()
    kept = KeptAnswers(model, store)
    kept.complete("t", {"document": "a"}, Answer)
    kept.complete("t", {"document": "b"}, Answer)
    kept.complete("u", {"document": "a"}, Answer)
    kept.complete("t", {"document": "a"}, Other)
    assert model.asked == 4
    other = Model("m:2")
    KeptAnswers(other, store).complete("t", {"document": "a"}, Answer)
    assert other.asked == 1


def test_what_failed_is_asked_again(store):
    model = Model(error=ProviderUnavailableError())
    kept = KeptAnswers(model, store)
    with pytest.raises(ProviderUnavailableError):
        kept.complete("t", {"document": "a"}, Answer)
    model.error = None
    assert kept.complete("t", {"document": "a"}, Answer).title.startswith("a")


def test_name_and_signature_are_those_of_the_model(store):
    kept = KeptAnswers(Model("m:3"), store)
    assert (kept.model_id, kept.signature) == ("m", "m:3")


def test_a_process_has_the_configured_model_with_its_answers_kept_and_none_by_default(store):
    assert build(load_settings({})).language_model is None
    named = {"KI_LLM__PROVIDER": "openai_compatible", "KI_LLM__BASE_URL": "http://gateway.invalid/v1"}
    made = build(load_settings(named | {"KI_LLM__MODEL_ID": "m"}), store=store).language_model
    assert isinstance(made, KeptAnswers)
    assert made.model_id == "m"
    with pytest.raises(MisconfiguredError, match="KI_LLM__MODEL_ID"):
        _ = build(load_settings(named), store=store).language_model
