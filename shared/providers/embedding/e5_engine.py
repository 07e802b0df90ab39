"""Runs multilingual-e5-small: text to tokens, tokens to windows, windows to one unit vector."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import GraphOptimizationLevel, SessionOptions
from tokenizers import Tokenizer

from shared.providers.embedding.e5_calibration import CALIBRATION_TEXTS
from shared.providers.embedding.e5_files import TOKENIZER, WEIGHTS, located
from shared.providers.embedding.e5_model import (
    DIMENSIONS,
    GRAPH_VERSION,
    INPUT,
    MAX_WINDOWS,
    MODEL_ID,
    OUTPUT,
    Precision,
)
from shared.providers.embedding.e5_weights import Bytes, E5Weights, Floats, dequantised, read_weights
from shared.providers.embedding.protocol import Vector

_log = logging.getLogger(__name__)

MIN_AGREEMENT = 0.99
"""The least cosine between int8 and float vectors of any calibration text; where it works it is above 0.998."""


@dataclass(frozen=True, slots=True)
class E5Engine:
    """The loaded model: tokenizer, word table and session."""

    tokenizer: Any
    session: Any
    words: Bytes
    positions: Floats
    begin_id: int
    end_id: int

    @classmethod
    def load(cls, *, graph_dir: Path | None, precision: Precision) -> Self:
        """Return the model, its graph read from `graph_dir` or else built (and kept there)."""
        weights = read_weights(located(WEIGHTS))
        tokenizer = Tokenizer.from_file(str(located(TOKENIZER)))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        engine = cls(
            tokenizer=tokenizer,
            session=None,
            words=weights.embedding_rows(),
            positions=weights.position_rows(),
            begin_id=weights.begin_id,
            end_id=weights.end_id,
        )

        if graph_dir is None:
            return engine.with_graph(engine.built(weights, precision))
        path = graph_dir / f"{MODEL_ID}-{precision}-{GRAPH_VERSION}-{WEIGHTS.sha256[:12]}.graph"
        graph = _read_graph(path)
        if graph is None:
            graph = engine.built(weights, precision)
            _write_graph(path, graph)
        return engine.with_graph(graph)

    def built(self, weights: E5Weights, precision: Precision) -> bytes:
        """Return the graph for this machine.

        On x86 CPUs without VNNI the 8-bit products can overflow and give wrong vectors; so the int8 graph is compared
        with the float one on the calibration texts, and where they disagree the float graph is what is returned.
        """
        # Only here: `onnx` is needed once, to write the graph, and takes long to import.
        from shared.providers.embedding.e5_graph import build_graph, projection_names  # noqa: PLC0415

        plain = build_graph(weights, ranges=None)
        if precision is Precision.FLOAT32:
            return plain
        exact = self.with_graph(plain)
        quantised = build_graph(weights, ranges=exact.ranges(projection_names(weights.layers)))
        fast = self.with_graph(quantised)
        agreement = min(float(np.dot(exact.embed(text), fast.embed(text))) for text in CALIBRATION_TEXTS)
        if agreement >= MIN_AGREEMENT:
            return quantised
        _log.warning("embedding_int8_unfit_for_this_cpu", extra={"cosine": round(agreement, 4)})
        return plain

    def with_graph(self, graph: bytes) -> Self:
        """Return this engine running `graph`, one thread for each call."""
        options = SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # The higher levels fuse residual sum and normalisation into the slower operator.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        return type(self)(self.tokenizer, session, self.words, self.positions, self.begin_id, self.end_id)

    def embed(self, text: str) -> Vector:
        """Return the unit vector of a text that carries its prefix."""
        total = np.zeros(DIMENSIONS)
        for window in self._windows(text):
            mean = self.session.run([OUTPUT], {INPUT: self._embedded(window)})[0][0]
            total += mean.astype(np.float64) * max(len(window) - 2, 1)
        unit: list[float] = (total / np.linalg.norm(total)).astype(np.float32).tolist()
        return unit

    def ranges(self, names: list[str]) -> dict[str, Floats]:
        """Return the largest magnitude each input channel of each projection takes on the calibration texts."""
        largest: dict[str, Floats] = {}
        for text in CALIBRATION_TEXTS:
            for window in self._windows(text):
                taps = self.session.run([f"{name}.in" for name in names], {INPUT: self._embedded(window)})
                for name, tap in zip(names, taps, strict=True):
                    seen = np.abs(tap).max(axis=(0, 1))
                    largest[name] = np.maximum(largest[name], seen) if name in largest else seen
        return largest

    def _windows(self, text: str) -> list[list[int]]:
        pieces: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        size = len(self.positions) - 2
        starts = range(0, max(len(pieces), 1), size)
        if len(starts) > MAX_WINDOWS:
            starts_kept = [starts[i * len(starts) // MAX_WINDOWS] for i in range(MAX_WINDOWS)]
        else:
            starts_kept = list(starts)
        return [[self.begin_id, *pieces[start : start + size], self.end_id] for start in starts_kept]

    def _embedded(self, window: list[int]) -> Floats:
        embedded: Floats = (dequantised(self.words[window]) + self.positions[: len(window)])[None]
        return embedded


def _read_graph(path: Path) -> bytes | None:
    """Return the graph kept at `path`, or None if there is none or its digest (the first 32 bytes) does not fit."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, graph = content[:32], content[32:]
    return graph if hashlib.sha256(graph).digest() == digest else None


def _write_graph(path: Path, graph: bytes) -> None:
    """Keep `graph` at `path`; a reader sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(hashlib.sha256(graph).digest())
            stream.write(graph)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
