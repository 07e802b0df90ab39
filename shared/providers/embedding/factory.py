"""The configured embedding model, made once at start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.errors import MisconfiguredError
from shared.providers.embedding.bedrock import BedrockEmbedding, bedrock_client
from shared.providers.embedding.cache import cached
from shared.providers.embedding.e5_model import MODEL_ID
from shared.providers.embedding.local_e5 import LocalE5Embedding
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.providers.embedding.vectors import width_error
from shared.settings import Embedding, Settings


def make_embedding_provider(settings: Settings, *, client: Any = None) -> EmbeddingProvider:
    """Return the model of `settings.embedding`, with its cache if one is configured.

    `client` replaces the Bedrock client that would be made. Raises `EmbeddingWidthError` if the model is known to
    make another width than `settings.retrieval.embedding_dimensions`; a remote model's true width shows with its
    first answer, which `verify_width` asks for.
    """
    embedding = settings.embedding
    cache_path = Path(embedding.cache_path) if embedding.cache_path else None
    provider = _made(embedding, dimensions=settings.retrieval.embedding_dimensions, client=client)
    return cached(provider, cache_path)


def verify_width(provider: EmbeddingProvider) -> None:
    """Ask the model for one vector, so that a wrong width, key or address shows before work begins."""
    provider.embed_queries(["?"])


def _made(embedding: Embedding, *, dimensions: int, client: Any) -> EmbeddingProvider:
    match embedding.provider:
        case "local_e5":
            return _local(embedding, dimensions=dimensions)
        case "bedrock":
            return BedrockEmbedding(
                client=client or bedrock_client(region=embedding.region, timeout_s=embedding.timeout_s),
                model_id=embedding.model_id,
                dimensions=dimensions,
                timeout_s=embedding.timeout_s,
                batch_size=embedding.batch_size,
            )
        case "openai_compatible":
            return _gateway(embedding, dimensions=dimensions)


def _local(embedding: Embedding, *, dimensions: int) -> EmbeddingProvider:
    if embedding.model_id != MODEL_ID:
        raise MisconfiguredError(
            f"the local provider has one model: set KI_EMBEDDING__MODEL_ID={MODEL_ID} (it is {embedding.model_id})"
        )
    if dimensions != LocalE5Embedding.dimensions:
        raise width_error(model_id=MODEL_ID, configured=dimensions, actual=LocalE5Embedding.dimensions)
    return LocalE5Embedding(graph_dir=Path(embedding.cache_path).parent if embedding.cache_path else None)


def _gateway(embedding: Embedding, *, dimensions: int) -> EmbeddingProvider:
    # Here: only this provider needs an HTTP client of its own.
    from shared.providers.embedding.openai_compatible import OpenAiCompatibleEmbedding  # noqa: PLC0415

    if not embedding.base_url:
        raise MisconfiguredError("the provider openai_compatible needs KI_EMBEDDING__BASE_URL")
    return OpenAiCompatibleEmbedding(
        base_url=embedding.base_url,
        model_id=embedding.model_id,
        dimensions=dimensions,
        api_key=_api_key(embedding.api_key_file),
        timeout_s=embedding.timeout_s,
        batch_size=embedding.batch_size,
        query_prefix=embedding.query_prefix,
        passage_prefix=embedding.passage_prefix,
        send_dimensions=embedding.send_dimensions,
    )


def _api_key(path: str | None) -> str | None:
    """Return the key in the file, without the line end an editor leaves. The key appears in no message."""
    if path is None:
        return None
    try:
        key = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MisconfiguredError(f"KI_EMBEDDING__API_KEY_FILE cannot be read: {type(error).__name__}") from error
    if not key or not key.isprintable():
        raise MisconfiguredError("KI_EMBEDDING__API_KEY_FILE holds no usable key")
    return key
