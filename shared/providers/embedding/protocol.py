"""What every embedding model looks like to search and ingest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

Vector = list[float]
"""Plain floats, so that a vector goes into a request body as it is."""


class InputKind(StrEnum):
    """Which side of the search a text stands on; asymmetric models embed the two differently."""

    QUERY = "query"
    PASSAGE = "passage"


class EmbeddingProvider(Protocol):
    """A model that turns texts into unit vectors of one width.

    Both methods answer in the order of the texts, one vector each, with Euclidean length 1. They raise
    `ProviderUnavailableError` if the same call may succeed later, `ProviderRefusedError` if it cannot, and
    `EmbeddingWidthError` if the model's width is not the configured one.
    """

    @property
    def model_id(self) -> str:
        """The model's name, as stored beside each chunk."""

    @property
    def dimensions(self) -> int:
        """The width of every vector."""

    @property
    def signature(self) -> str:
        """What tells two vector spaces apart, fit for an index name: model, width and treatment of input."""

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what people search for."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what is searched."""


def signature_of(model_id: str, *, dimensions: int, treatment: str = "") -> str:
    """Return the signature of a vector space in the letters an index name allows (a-z, 0-9, -).

    `treatment` is anything else that changes the vectors, such as a digest of prefixes.
    """
    parts = [model_id, str(dimensions), treatment]
    return "-".join(slug for part in parts if (slug := re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")))
