"""A stubbed embedding model: vectors made from a text's hash, the same on every run and in every arm."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence

from shared.providers.embedding.protocol import Vector, signature_of


class HashedVectors:
    """An embedding provider that remembers what it has made, so that no measured arm pays for making vectors."""

    model_id = "hashed"

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._known: dict[str, Vector] = {}

    @property
    def signature(self) -> str:
        """What an index that was filled with these vectors is marked with."""
        return signature_of(self.model_id, dimensions=self.dimensions)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages."""
        return [self._vector(text) for text in texts]

    embed_queries = embed_passages

    def _vector(self, text: str) -> Vector:
        if text not in self._known:
            chance = random.Random(hashlib.sha256(text.encode("utf-8", "replace")).digest())
            raw = [chance.gauss(0, 1) for _ in range(self.dimensions)]
            length = math.sqrt(sum(value * value for value in raw))
            self._known[text] = [round(value / length, 7) for value in raw]
        return self._known[text]
