"""Embeddings from any server that speaks the OpenAI `POST /embeddings` protocol."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any

import urllib3
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import EmbeddingWidthError, ProviderRefusedError
from shared.providers.embedding.model_input import sendable
from shared.providers.embedding.protocol import Vector, signature_of
from shared.providers.embedding.retry import Retry, TryAgainError, retry_after_s
from shared.providers.embedding.vectors import checked_unit

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_REASON_CHARS = 300
_IGNORES_WIDTH = "It was asked for that width with `dimensions` and ignored it."


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore")
    index: Annotated[int, Field(ge=0)] | None = None
    embedding: list[Any]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")
    data: list[_Row]


class OpenAiCompatibleEmbedding:
    """A model behind `{base_url}/embeddings`.

    `send_dimensions` asks for the configured width in each request; leave it off for servers and models of one width.
    The prefixes go before every text, for models that tell queries and passages apart by them. `timeout_s` is the
    time one batch may take with all its retries.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model_id: str,
        dimensions: int,
        api_key: str | None = None,
        timeout_s: float = 20.0,
        batch_size: int = 32,
        query_prefix: str = "",
        passage_prefix: str = "",
        send_dimensions: bool = True,
        pool: urllib3.PoolManager | None = None,
        retry: Retry | None = None,
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model_id = model_id
        self._dimensions = dimensions
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._batch_size = batch_size
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._send_dimensions = send_dimensions
        self._pool = pool or urllib3.PoolManager()
        self._retry = retry or Retry(deadline_s=timeout_s)

    @property
    def model_id(self) -> str:
        """The model's name at the server."""
        return self._model_id

    @property
    def dimensions(self) -> int:
        """The configured width; an answer of any other is refused."""
        return self._dimensions

    @property
    def signature(self) -> str:
        """Model and width, and a digest of the prefixes if there are any."""
        prefixes = json.dumps([self._query_prefix, self._passage_prefix])
        plain = not (self._query_prefix or self._passage_prefix)
        digest = "" if plain else hashlib.sha256(prefixes.encode()).hexdigest()[:8]
        return signature_of(self._model_id, dimensions=self._dimensions, treatment=digest)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what people search for."""
        return self._embed([self._query_prefix + sendable(text) for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what is searched."""
        return self._embed([self._passage_prefix + sendable(text) for text in texts])

    def _embed(self, texts: list[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._batch_size):
            vectors += self._batch(texts[start : start + self._batch_size])
        return vectors

    def _batch(self, texts: list[str]) -> list[Vector]:
        request: dict[str, Any] = {"model": self._model_id, "input": texts, "encoding_format": "float"}
        if self._send_dimensions:
            request["dimensions"] = self._dimensions
        body = json.dumps(request).encode()
        content = self._retry.run(f"embedding with {self._model_id}", lambda left_s: self._post(body, left_s))
        rows = _ordered(content, expected=len(texts), model_id=self._model_id)
        advice = _IGNORES_WIDTH if self._send_dimensions else ""
        return [checked_unit(row, model_id=self._model_id, dimensions=self._dimensions, advice=advice) for row in rows]

    def _post(self, body: bytes, left_s: float) -> bytes:
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=body,
                headers=self._headers,
                timeout=urllib3.Timeout(total=left_s),
                retries=False,
                redirect=False,  # a redirect would carry the key elsewhere
            )
        except urllib3.exceptions.LocationValueError as error:
            raise ProviderRefusedError(f"KI_EMBEDDING__BASE_URL is not an address: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise TryAgainError(f"no answer ({type(error).__name__})") from error
        if response.status == 200:  # noqa: PLR2004
            return response.data
        reason = _reason(response.data)
        if response.status in _PASSING_STATUSES:
            raise TryAgainError(
                f"HTTP {response.status} {reason}", retry_after_s=retry_after_s(response.headers.get("Retry-After"))
            )
        raise self._refusal(response.status, reason)

    def _refusal(self, status: int, reason: str) -> ProviderRefusedError | EmbeddingWidthError:
        if status in {401, 403}:
            return ProviderRefusedError(
                f"{self._model_id}: the server refuses the key (HTTP {status}); check KI_EMBEDDING__API_KEY_FILE"
            )
        if self._send_dimensions and "dimension" in reason.lower():
            return EmbeddingWidthError(
                f"{self._model_id}: the server does not make vectors of the configured {self._dimensions} dimensions"
                f" (HTTP {status} {reason}). Set KI_RETRIEVAL__EMBEDDING_DIMENSIONS to a width it offers and reindex,"
                " or KI_EMBEDDING__SEND_DIMENSIONS=false if the model has only one width"
            )
        return ProviderRefusedError(f"{self._model_id}: HTTP {status} {reason}")


def _ordered(content: bytes, *, expected: int, model_id: str) -> list[list[Any]]:
    """Return one raw vector for each text, in the order of the texts. Anything less than all is refused."""
    try:
        answer = _Answer.model_validate_json(content)
    except ValidationError as error:
        raise ProviderRefusedError(f"{model_id}: the answer is not an embeddings response") from error
    if len(answer.data) != expected:
        raise ProviderRefusedError(f"{model_id}: {len(answer.data)} vectors for {expected} texts")
    if all(row.index is None for row in answer.data):
        return [row.embedding for row in answer.data]
    by_index = {row.index: row.embedding for row in answer.data}
    if set(by_index) != set(range(expected)):
        raise ProviderRefusedError(f"{model_id}: the answer's `index` values are not 0 to {expected - 1}")
    return [by_index[place] for place in range(expected)]


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
