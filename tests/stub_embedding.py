"""A deterministic stand-in for an embedding model: texts that share words get similar vectors, in any width."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Sequence

from shared.providers.embedding.protocol import Vector, signature_of

_WORD = re.compile(r"\w+")


class StubEmbedding:
    """An `EmbeddingProvider` that adds up one pseudo-random direction for each word, and counts what it is asked.

    Each word's direction depends on nothing but its folded letters and the width, so that vectors agree between
    processes. Four-letter beginnings count too, at half weight: "Kündigung" is near "Kündigungsfrist".
    """

    def __init__(self, *, dimensions: int = 64, model_id: str = "stub") -> None:
        self.model_id = model_id
        self.dimensions = dimensions
        self.calls: list[list[str]] = []

    @property
    def signature(self) -> str:
        return signature_of(self.model_id, dimensions=self.dimensions)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return self._embed(texts)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        return [stub_vector(text, dimensions=self.dimensions) for text in texts]


def stub_vector(text: str, *, dimensions: int) -> Vector:
    """Return the unit vector of a text; a text without words has the direction of its own letters."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold()) or [text or " "]
    total = [0.0] * dimensions
    for word in words:
        for part, weight in ((word, 1.0), (word[:4], 0.5)):
            for place, value in enumerate(_direction(part, dimensions)):
                total[place] += weight * value
    length = math.hypot(*total)
    return [value / length for value in total]


def _direction(word: str, dimensions: int) -> list[float]:
    seed = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(4 * dimensions)
    return [int.from_bytes(seed[4 * i : 4 * i + 4], "big") / 2**31 - 1 + 2**-33 for i in range(dimensions)]
