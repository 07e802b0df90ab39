"""The configured language model, made once at start; none where rules do the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.errors import MisconfiguredError
from shared.providers.llm.prompts import fingerprint
from shared.providers.llm.protocol import LanguageModel
from shared.settings import Llm

RULES = "rules"


def make_language_model(llm: Llm, *, client: Any = None) -> LanguageModel | None:
    """Return the model of `settings.llm`, None for `rules`; `client` replaces the Bedrock client.

    Raises `MisconfiguredError` naming the setting that is missing.
    """
    if llm.provider == RULES:
        return None
    if not llm.model_id:
        raise MisconfiguredError(f"llm.provider is {llm.provider}: set KI_LLM__MODEL_ID")
    # Here: each provider needs a library that the other does not, and rules need neither.
    if llm.provider == "bedrock":
        from shared.providers.embedding.bedrock import bedrock_client  # noqa: PLC0415
        from shared.providers.llm.bedrock import BedrockLanguageModel  # noqa: PLC0415

        return BedrockLanguageModel(
            client=client or bedrock_client(region=llm.region, timeout_s=llm.timeout_s),
            model_id=llm.model_id,
            signature=signature_of(llm),
            timeout_s=llm.timeout_s,
            max_answer_tokens=llm.max_answer_tokens,
            temperature=llm.temperature,
        )
    from shared.providers.llm.openai_compatible import OpenAiCompatibleLanguageModel  # noqa: PLC0415

    if not llm.base_url:
        raise MisconfiguredError("llm.provider is openai_compatible: set KI_LLM__BASE_URL")
    return OpenAiCompatibleLanguageModel(
        base_url=llm.base_url,
        model_id=llm.model_id,
        signature=signature_of(llm),
        timeout_s=llm.timeout_s,
        max_answer_tokens=llm.max_answer_tokens,
        temperature=llm.temperature,
        api_key=_api_key(llm.api_key_file),
    )


def signature_of(llm: Llm) -> str:
    """Return what changes the answers of this configuration: known without making the model."""
    if llm.provider == RULES:
        return RULES
    limits = f"{llm.max_text_chars}:{llm.max_answer_tokens}:{llm.temperature}"
    return f"{llm.provider}:{llm.model_id}:{fingerprint()}:{limits}"


def _api_key(path: str | None) -> str | None:
    """Return the key in the file, without the line end an editor leaves. The key appears in no message."""
    if path is None:
        return None
    try:
        key = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MisconfiguredError(f"KI_LLM__API_KEY_FILE cannot be read: {type(error).__name__}") from error
    if not key or not key.isprintable():
        raise MisconfiguredError("KI_LLM__API_KEY_FILE holds no usable key")
    return key
