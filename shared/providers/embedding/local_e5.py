"""multilingual-e5-small on this machine's CPU, offline: the model behind the local stack.

The weights and the tokenizer come from installed packages (`e5_files`), the graph is built at first use
(`e5_graph`) and kept on disk if a folder is given. Nothing heavy is imported before the first text.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from shared.providers.embedding.e5_model import (
    DIMENSIONS,
    GRAPH_VERSION,
    MODEL_ID,
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    Precision,
)
from shared.providers.embedding.model_input import sendable
from shared.providers.embedding.protocol import Vector, signature_of

if TYPE_CHECKING:
    from shared.providers.embedding.e5_engine import E5Engine


class LocalE5Embedding:
    """multilingual-e5-small, 384 dimensions; safe to share between threads.

    `graph_dir` keeps the built graph for the next process. `threads` is how many texts are embedded side by side,
    by default one for each CPU this process may use.
    """

    model_id = MODEL_ID
    dimensions = DIMENSIONS

    def __init__(
        self, *, graph_dir: Path | None = None, threads: int | None = None, precision: Precision = Precision.INT8
    ) -> None:
        self._graph_dir = graph_dir
        self._threads = threads or _usable_cpus()
        self._precision = precision
        self._engine: E5Engine | None = None
        self._lock = threading.Lock()

    @property
    def signature(self) -> str:
        """Model, width, precision and version of the graph."""
        return signature_of(MODEL_ID, dimensions=DIMENSIONS, treatment=f"{self._precision}-{GRAPH_VERSION}")

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what people search for."""
        return self._embed([QUERY_PREFIX + sendable(text) for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of what is searched. Longer than 512 tokens: the mean of its windows."""
        return self._embed([PASSAGE_PREFIX + sendable(text) for text in texts])

    def _embed(self, texts: list[str]) -> list[Vector]:
        if not texts:
            return []
        engine = self._loaded()
        if len(texts) == 1 or self._threads == 1:
            return [engine.embed(text) for text in texts]
        longest_first = sorted(range(len(texts)), key=lambda place: len(texts[place]), reverse=True)
        vectors: list[Vector] = [[] for _ in texts]
        with ThreadPoolExecutor(self._threads, thread_name_prefix="embed") as pool:
            for place, vector in zip(
                longest_first, pool.map(engine.embed, [texts[place] for place in longest_first]), strict=True
            ):
                vectors[place] = vector
        return vectors

    def _loaded(self) -> E5Engine:
        with self._lock:
            if self._engine is None:
                # Here and not above: it brings numpy, onnxruntime and the tokenizer, half a second of imports.
                from shared.providers.embedding.e5_engine import E5Engine  # noqa: PLC0415

                self._engine = E5Engine.load(graph_dir=self._graph_dir, precision=self._precision)
            return self._engine


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
