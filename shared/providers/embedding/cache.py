"""A model whose answers for documents are kept, so that no passage is embedded twice.

Queries are never kept. A query that comes back faster because somebody asked it before would tell one person what
another has searched for, and a file of hashed queries could be guessed from.
"""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from shared.errors import MisconfiguredError
from shared.providers.embedding.protocol import EmbeddingProvider, InputKind, Vector

T = TypeVar("T")

_log = logging.getLogger(__name__)

SAVE_EVERY = 256
"""New vectors are written in groups of this size, so that an interrupted run keeps what it has done."""

_READ_AT_ONCE = 500
_BUSY_TIMEOUT_S = 30.0
_UNIT_TOLERANCE = 1e-3
_SCHEMA = "CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"


def cached(inner: EmbeddingProvider, path: Path | None) -> EmbeddingProvider:
    """Return `inner` with its vectors kept in the SQLite file at `path`, or `inner` itself without a path."""
    return inner if path is None else CachedEmbedding(inner, path)


class CachedEmbedding:
    """An `EmbeddingProvider` that asks `inner` only for passages it has not seen, each once.

    The key is the SHA-256 of signature, kind of input and text: the text cannot be read back from the file. Several
    processes may share it. A row that is broken or of another width counts as absent and is replaced; a file that is
    busy or full costs speed, never an answer.
    """

    def __init__(self, inner: EmbeddingProvider, path: Path) -> None:
        self._inner = inner
        self._path = path
        self._ready = False

    @property
    def model_id(self) -> str:
        """The model's name."""
        return self._inner.model_id

    @property
    def dimensions(self) -> int:
        """The width of every vector."""
        return self._inner.dimensions

    @property
    def signature(self) -> str:
        """The signature of the model behind the cache."""
        return self._inner.signature

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what people search for."""
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what is searched."""
        keys = [cache_key(self.signature, InputKind.PASSAGE, text) for text in texts]
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for group in _groups(list(missing.items()), size=SAVE_EVERY):
            vectors = self._inner.embed_passages([text for _, text in group])
            fresh = {key: _single(vector) for (key, _), vector in zip(group, vectors, strict=True)}
            self._write(fresh.items())
            known.update(fresh)
        return [list(known[key]) for key in keys]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        known: dict[bytes, Vector] = {}
        try:
            with closing(self._connection()) as connection:
                for group in _groups(list(dict.fromkeys(keys)), size=_READ_AT_ONCE):
                    marks = ",".join("?" * len(group))
                    select = f"SELECT key, vector FROM embedding WHERE key IN ({marks})"  # noqa: S608 - only question marks
                    for key, blob in connection.execute(select, group):
                        vector = _unpacked(blob, dimensions=self.dimensions)
                        if vector is not None:
                            known[key] = vector
        except sqlite3.OperationalError as error:
            self._ready = False
            _log.warning("embedding_cache_unreadable", extra={"reason": str(error)})
        return known

    def _write(self, rows: Iterable[tuple[bytes, Vector]]) -> None:
        try:
            with closing(self._connection()) as connection, connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO embedding (key, vector) VALUES (?, ?)",
                    [(key, _packed(vector)) for key, vector in rows],
                )
        except sqlite3.OperationalError as error:
            self._ready = False
            _log.warning("embedding_cache_not_written", extra={"reason": str(error)})

    def _connection(self) -> sqlite3.Connection:
        """Return a connection of this call's own: none is shared between threads, none outlives a fork."""
        if not self._ready:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self._ready:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(_SCHEMA)
                self._ready = True
        except sqlite3.OperationalError:
            connection.close()
            raise
        except sqlite3.DatabaseError as error:
            connection.close()
            raise MisconfiguredError(
                f"{self._path.name} is not an embedding cache ({error}); delete it or set KI_EMBEDDING__CACHE_PATH"
            ) from error
        return connection


def cache_key(signature: str, kind: InputKind, text: str) -> bytes:
    """Return the key of a text; the parts are kept apart, and lone surrogates count as what they are."""
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"\0".join([signature.encode(), kind.encode(), content])).digest()


def _groups(items: Sequence[T], *, size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _single(vector: Vector) -> Vector:
    """Return the vector as the cache will give it back, so that a first answer equals every later one."""
    return array("f", vector).tolist()


def _packed(vector: Vector) -> bytes:
    """Return little-endian 32-bit floats."""
    values = array("f", vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _unpacked(blob: object, *, dimensions: int) -> Vector | None:
    if not isinstance(blob, bytes) or len(blob) != 4 * dimensions:
        return None
    values = array("f")
    values.frombytes(blob)
    if sys.byteorder == "big":
        values.byteswap()
    vector = values.tolist()
    return vector if abs(math.hypot(*vector) - 1) < _UNIT_TOLERANCE else None
