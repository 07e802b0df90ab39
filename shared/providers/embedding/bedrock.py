"""Embeddings from Amazon Bedrock: Titan Text Embeddings V2 and Cohere Embed (multilingual v3, v4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shared.errors import EmbeddingWidthError, MisconfiguredError, ProviderRefusedError
from shared.providers.embedding.model_input import sendable
from shared.providers.embedding.protocol import InputKind, Vector, signature_of
from shared.providers.embedding.retry import Retry, TryAgainError, retry_after_s
from shared.providers.embedding.vectors import WIDTH_SETTING, checked_unit

TITAN_WIDTHS = (256, 512, 1024)
COHERE_V4_WIDTHS = (256, 512, 1024, 1536)
COHERE_V3_WIDTHS = (1024,)
COHERE_MAX_TEXTS = 96
"""Limits of the models as Bedrock documents them (user guide, model parameters)."""

_TITAN_V2 = "titan-embed-text-v2"
_TITAN_CONCURRENCY = 8
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
_COHERE_INPUT_TYPES = {InputKind.QUERY: "search_query", InputKind.PASSAGE: "search_document"}


def bedrock_client(*, region: str | None, timeout_s: float) -> Any:
    """Return a Bedrock runtime client that leaves retrying to this package."""
    import boto3  # noqa: PLC0415 - takes 0.2 s, and only this provider needs it
    from botocore.config import Config  # noqa: PLC0415

    config = Config(  # type: ignore[no-untyped-call] # botocore has no annotations
        connect_timeout=min(timeout_s, 5.0),
        read_timeout=timeout_s,
        retries={"total_max_attempts": 1},
        max_pool_connections=_TITAN_CONCURRENCY,
    )
    return boto3.client("bedrock-runtime", region_name=region, config=config)  # type: ignore[no-untyped-call] # nor has boto3


class BedrockEmbedding:
    """A Bedrock embedding model; `client` is a `bedrock-runtime` client whose own retries are off.

    The model family is read from the id (`eu.cohere.embed-v4:0`, `amazon.titan-embed-text-v2:0`). A width the family
    cannot make is refused here, before any call. `timeout_s` is the time one request may take with all its retries.
    """

    def __init__(
        self,
        *,
        client: Any,
        model_id: str,
        dimensions: int,
        timeout_s: float = 20.0,
        batch_size: int = COHERE_MAX_TEXTS,
        retry: Retry | None = None,
    ) -> None:
        self._client = client
        self._model_id = model_id
        self._dimensions = dimensions
        self._widths = _offered_widths(model_id)
        self._batch_size = min(batch_size, COHERE_MAX_TEXTS)
        self._retry = retry or Retry(deadline_s=timeout_s)
        if dimensions not in self._widths:
            offered = ", ".join(map(str, self._widths))
            raise EmbeddingWidthError(
                f"{model_id} makes vectors of {offered} dimensions, but {dimensions} are configured."
                f" Set {WIDTH_SETTING} to one of these and reindex, or KI_EMBEDDING__MODEL_ID to another model"
            )

    @property
    def model_id(self) -> str:
        """The Bedrock model id."""
        return self._model_id

    @property
    def dimensions(self) -> int:
        """The configured width; an answer of any other is refused."""
        return self._dimensions

    @property
    def signature(self) -> str:
        """Model and width; the region's prefix does not change the vectors but is kept, to be plain."""
        return signature_of(self._model_id, dimensions=self._dimensions)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what people search for."""
        return self._embed(texts, InputKind.QUERY)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what is searched."""
        return self._embed(texts, InputKind.PASSAGE)

    def _embed(self, texts: Sequence[str], kind: InputKind) -> list[Vector]:
        ready = [sendable(text) for text in texts]
        if not ready:
            return []
        return self._titan(ready) if _TITAN_V2 in self._model_id else self._cohere(ready, kind)

    def _titan(self, texts: list[str]) -> list[Vector]:
        """Titan takes one text a request and makes no difference between queries and passages."""
        if len(texts) == 1:
            return [self._titan_one(texts[0])]
        with ThreadPoolExecutor(min(_TITAN_CONCURRENCY, len(texts)), thread_name_prefix="titan") as pool:
            return list(pool.map(self._titan_one, texts))

    def _titan_one(self, text: str) -> Vector:
        answer = self._invoke({"inputText": text, "dimensions": self._dimensions, "normalize": True})
        return self._checked([answer.get("embedding")], expected=1)[0]

    def _cohere(self, texts: list[str], kind: InputKind) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            request: dict[str, Any] = {
                "texts": batch,
                "input_type": _COHERE_INPUT_TYPES[kind],
                "embedding_types": ["float"],
                "truncate": "NONE",
            }
            if len(self._widths) > 1:
                request["output_dimension"] = self._dimensions
            embeddings = self._invoke(request).get("embeddings")
            rows = embeddings.get("float") if isinstance(embeddings, dict) else embeddings
            vectors += self._checked(rows, expected=len(batch))
        return vectors

    def _checked(self, rows: object, *, expected: int) -> list[Vector]:
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ProviderRefusedError(f"{self._model_id}: the answer holds no vectors")
        if len(rows) != expected:
            raise ProviderRefusedError(f"{self._model_id}: {len(rows)} vectors for {expected} texts")
        return [checked_unit(row, model_id=self._model_id, dimensions=self._dimensions) for row in rows]

    def _invoke(self, request: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(request)
        content = self._retry.run(f"embedding with {self._model_id}", lambda _left_s: self._attempt(body))
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise ProviderRefusedError(f"{self._model_id}: the answer is not JSON") from error
        if not isinstance(answer, dict):
            raise ProviderRefusedError(f"{self._model_id}: the answer is not an object")
        return answer

    def _attempt(self, body: str) -> bytes:
        from botocore import exceptions  # noqa: PLC0415 - whoever made the client has loaded it

        try:
            response = self._client.invoke_model(
                modelId=self._model_id, body=body, contentType="application/json", accept="application/json"
            )
            content: bytes = response["body"].read()
        except exceptions.ClientError as error:
            raise self._mapped(error) from error
        except (exceptions.HTTPClientError, exceptions.IncompleteReadError) as error:
            raise TryAgainError(f"no answer ({type(error).__name__})") from error
        except exceptions.BotoCoreError as error:
            raise ProviderRefusedError(f"{self._model_id}: {error}; check the role and KI_EMBEDDING__REGION") from error
        return content

    def _mapped(self, error: Any) -> Exception:
        detail = error.response.get("Error", {})
        metadata = error.response.get("ResponseMetadata", {})
        code, status = str(detail.get("Code", "")), int(metadata.get("HTTPStatusCode", 0))
        said = f"{code}: {detail.get('Message', '')}"
        if code in _PASSING_CODES or status == 429 or status >= _FIRST_SERVER_ERROR:  # noqa: PLR2004
            return TryAgainError(said, retry_after_s=retry_after_s(metadata.get("HTTPHeaders", {}).get("retry-after")))
        return ProviderRefusedError(f"{self._model_id}: {said}")


def _offered_widths(model_id: str) -> tuple[int, ...]:
    if _TITAN_V2 in model_id:
        return TITAN_WIDTHS
    if "cohere.embed-v4" in model_id:
        return COHERE_V4_WIDTHS
    if "cohere.embed-" in model_id:
        return COHERE_V3_WIDTHS
    raise MisconfiguredError(
        f"KI_EMBEDDING__MODEL_ID={model_id}: known on Bedrock are amazon.titan-embed-text-v2, cohere.embed-v4"
        " and cohere.embed-multilingual-v3"
    )
