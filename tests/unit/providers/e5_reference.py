"""multilingual-e5-small in plain numpy and full precision, written down from the BERT paper, to compare with."""

import math

import numpy as np

from shared.providers.embedding.e5_weights import E5Weights, dequantised


def reference_mean(weights: E5Weights, tokens: list[int]) -> np.ndarray:
    """Return the unit mean of the last layer over `tokens` (with begin and end)."""
    width, heads = weights.width, weights.heads
    hidden = dequantised(weights.embedding_rows()[tokens]) + weights.position_rows()[: len(tokens)]
    hidden = _norm(weights, hidden, "emb.ln")
    for layer in range(weights.layers):
        name = f"l{layer}."
        query, key, value = (
            _linear(weights, hidden, f"{name}{part}", width, width).reshape(len(tokens), heads, -1).transpose(1, 0, 2)
            for part in "qkv"
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(width // heads)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        context = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        context = context.transpose(1, 0, 2).reshape(len(tokens), width)
        hidden = _norm(weights, hidden + _linear(weights, context, f"{name}ao", width, width), f"{name}aln")
        inner = _linear(weights, hidden, f"{name}fi", width, weights.inner_width)
        inner *= 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        hidden = _norm(weights, hidden + _linear(weights, inner, f"{name}fo", weights.inner_width, width), f"{name}oln")
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _linear(weights: E5Weights, hidden: np.ndarray, name: str, inputs: int, outputs: int) -> np.ndarray:
    matrix = weights.matrix(f"{name}.w", outputs=outputs, inputs=inputs)
    return hidden @ matrix + weights.vector(f"{name}.b", size=outputs)


def _norm(weights: E5Weights, hidden: np.ndarray, name: str) -> np.ndarray:
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + weights.epsilon)
    return scaled * weights.vector(f"{name}.w", size=weights.width) + weights.vector(f"{name}.b", size=weights.width)
