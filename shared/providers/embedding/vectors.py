"""Vectors as they come from a provider, checked and brought to length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shared.errors import EmbeddingWidthError, ProviderRefusedError
from shared.providers.embedding.protocol import Vector

WIDTH_SETTING = "KI_RETRIEVAL__EMBEDDING_DIMENSIONS"


def checked_unit(values: Sequence[object], *, model_id: str, dimensions: int, advice: str = "") -> Vector:
    """Return `values` scaled to length 1.

    Raises `EmbeddingWidthError` for another width than `dimensions`, naming both, and `ProviderRefusedError`
    for a vector that has no direction (zero, NaN, infinite): in an index it would match everything or nothing.
    """
    if len(values) != dimensions:
        raise width_error(model_id=model_id, configured=dimensions, actual=len(values), advice=advice)
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != dimensions:
        raise ProviderRefusedError(f"{model_id} answered with a vector that holds something other than numbers")
    length = math.hypot(*numbers)
    if not math.isfinite(length) or length == 0.0:
        raise ProviderRefusedError(f"{model_id} answered with a zero, infinite or NaN vector")
    return [number / length for number in numbers]


def width_error(*, model_id: str, configured: int, actual: int, advice: str = "") -> EmbeddingWidthError:
    """Return the error that names both widths, the model and the setting to change."""
    return EmbeddingWidthError(
        f"{model_id} makes vectors of {actual} dimensions, but {configured} are configured."
        f"{f' {advice}' if advice else ''}"
        f" Set {WIDTH_SETTING}={actual} and reindex, or configure a model of {configured} dimensions."
    )
