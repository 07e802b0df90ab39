"""The local model as an ONNX graph: embedded tokens in, one mean vector for each sequence out.

One sequence runs at a time. There is then no padding, no mask, and a text's vector never depends on its neighbours
in a batch (the activations are quantised with one range for the whole tensor). Residual sums and normalisation are
left as two operators: the fused contrib operator took seven times as long on the CPU (docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from shared.providers.embedding.e5_model import INPUT, MODEL_ID, OUTPUT
from shared.providers.embedding.e5_weights import E5Weights, Floats

SMOOTHING = 0.7
"""How far outlying activations are moved into the weights (SmoothQuant, Xiao et al. 2022). Of 0.5 to 1.0 the best."""

GELU_DEPTH = 0.17
"""GELU is nowhere smaller than the negative of this."""

_CONTRIB = "com.microsoft"
_OPSET = 20
_IR = 10


def projection_names(layers: int) -> list[str]:
    """Return the names of all matrix products, which are also the keys of calibrated ranges."""
    return [f"{layer}.{part}" for layer in range(layers) for part in ("qkv", "out", "up", "down")]


def build_graph(weights: E5Weights, *, ranges: Mapping[str, Floats] | None) -> bytes:
    """Return a serialised model that computes in int8 with calibrated input `ranges`, or else in float32.

    The float32 model also gives the input of each projection as an output of that name with `.in`; unless asked for,
    it costs nothing.
    """
    return _Builder(weights, ranges).build()


class _Builder:
    def __init__(self, weights: E5Weights, ranges: Mapping[str, Floats] | None) -> None:
        self._weights = weights
        self._ranges = ranges
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._taps: list[str] = []

    def build(self) -> bytes:

        weights = self._weights
        hidden = self._normalised(INPUT, name="embedding", gain="emb.ln.w", bias="emb.ln.b")
        for layer in range(weights.layers):
            hidden = self._layer(hidden, layer)
        axes = self._constant("pool.axes", np.array([1], dtype=np.int64))
        self._node("ReduceMean", [hidden, axes], OUTPUT, keepdims=0)
        width = weights.width
        taps = [] if self._ranges is not None else self._taps
        graph = helper.make_graph(
            self._nodes,
            MODEL_ID,
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["batch", "tokens", width])],
            [
                helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", width]),
                *(helper.make_tensor_value_info(tap, TensorProto.FLOAT, None) for tap in taps),
            ],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=_IR).SerializeToString()
        return model

    def _layer(self, hidden: str, layer: int) -> str:

        weights, width, inner = self._weights, self._weights.width, self._weights.inner_width
        prefix = f"l{layer}."
        qkv = self._projection(
            hidden,
            f"{layer}.qkv",
            np.concatenate([weights.matrix(f"{prefix}{x}.w", outputs=width, inputs=width) for x in "qkv"], axis=1),
            np.concatenate([weights.vector(f"{prefix}{x}.b", size=width) for x in "qkv"]),
        )
        heads = [f"{layer}.{x}" for x in "qkv"]
        self._node("Split", [qkv], *heads, axis=-1, num_outputs=3)
        context = self._node("MultiHeadAttention", heads, f"{layer}.context", contrib=True, num_heads=weights.heads)
        attended = self._projection(
            context,
            f"{layer}.out",
            weights.matrix(f"{prefix}ao.w", outputs=width, inputs=width),
            weights.vector(f"{prefix}ao.b", size=width),
        )
        hidden = self._residual(attended, hidden, f"{layer}.attention", f"{prefix}aln")
        up = self._projection(
            hidden,
            f"{layer}.up",
            weights.matrix(f"{prefix}fi.w", outputs=inner, inputs=width),
            weights.vector(f"{prefix}fi.b", size=inner),
        )
        down = self._projection_of_gelu(
            self._node("Gelu", [up], f"{layer}.gelu", contrib=True),
            f"{layer}.down",
            weights.matrix(f"{prefix}fo.w", outputs=width, inputs=inner),
            weights.vector(f"{prefix}fo.b", size=width),
        )
        return self._residual(down, hidden, f"{layer}.feed", f"{prefix}oln")

    def _residual(self, update: str, hidden: str, name: str, norm: str) -> str:
        total = self._node("Add", [update, hidden], f"{name}.sum")
        return self._normalised(total, name=name, gain=f"{norm}.w", bias=f"{norm}.b")

    def _normalised(self, source: str, *, name: str, gain: str, bias: str) -> str:
        width = self._weights.width
        gain_name = self._constant(f"{name}.gain", self._weights.vector(gain, size=width))
        bias_name = self._constant(f"{name}.bias", self._weights.vector(bias, size=width))
        return self._node(
            "LayerNormalization",
            [source, gain_name, bias_name],
            f"{name}.norm",
            axis=-1,
            epsilon=self._weights.epsilon,
        )

    def _projection(self, source: str, name: str, matrix: Floats, bias: Floats) -> str:
        bias_name = self._constant(f"{name}.bias", bias)
        if self._ranges is None:
            tap = self._node("Identity", [source], f"{name}.in")
            self._taps.append(tap)
            product = self._node("MatMul", [source, self._constant(f"{name}.weight", matrix)], f"{name}.product")
            return self._node("Add", [product, bias_name], name)
        smoothing = smoothing_factors(self._ranges[name], matrix)
        codes, scales = quantised(matrix * smoothing[:, None])
        divisor = self._constant(f"{name}.smoothing", (1 / smoothing).astype(np.float32))
        operands = [
            self._node("Mul", [source, divisor], f"{name}.smooth"),
            self._constant(f"{name}.weight", codes),
            self._constant(f"{name}.scale", scales),
            self._constant(f"{name}.zero", np.zeros(len(scales), dtype=np.int8)),
            bias_name,
        ]
        return self._node("DynamicQuantizeMatMul", operands, name, contrib=True)

    def _projection_of_gelu(self, source: str, name: str, matrix: Floats, bias: Floats) -> str:
        """Multiply what GELU gave, with a range for each token.

        A few tokens carry values thirty times larger than all others, so one range for the tensor would leave two or
        three bits to the rest. GELU never falls below -0.17: that end is fixed, and its share of the product is a
        constant of each output, which goes into the bias.
        """
        if self._ranges is None:
            return self._projection(source, name, matrix, bias)
        codes, scales = quantised(matrix)
        shift = self._constant(f"{name}.shift", np.float32(GELU_DEPTH))
        shifted_bias = bias - np.float32(GELU_DEPTH) * (codes.astype(np.float32) * scales).sum(axis=0)
        axes = self._constant(f"{name}.axes", np.array([-1], dtype=np.int64))
        largest = self._node("ReduceMax", [source, axes], f"{name}.largest", keepdims=1)
        span = self._node("Add", [largest, shift], f"{name}.span")
        step = self._node("Mul", [span, self._constant(f"{name}.levels", np.float32(1 / 255))], f"{name}.step")
        per_unit = self._node("Reciprocal", [step], f"{name}.per_unit")
        lifted = self._node("Mul", [per_unit, shift], f"{name}.lifted")
        half = self._node("Add", [lifted, self._constant(f"{name}.half", np.float32(0.5))], f"{name}.rounding")
        scaled = self._node("Mul", [source, per_unit], f"{name}.scaled")
        levels = self._node("Add", [scaled, half], f"{name}.levelled")
        operands = [
            self._node("Cast", [levels], f"{name}.levels8", to=TensorProto.UINT8),
            self._constant(f"{name}.weight", codes),
            self._constant(f"{name}.one", np.float32(1)),
            self._constant(f"{name}.scale", scales),
        ]
        product = self._node("MatMulIntegerToFloat", operands, f"{name}.product", contrib=True)
        in_units = self._node("Mul", [product, step], f"{name}.units")
        return self._node("Add", [in_units, self._constant(f"{name}.bias", shifted_bias.astype(np.float32))], name)

    def _constant(self, name: str, values: NDArray[Any] | np.float32) -> str:

        self._constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _node(self, operator: str, inputs: list[str], *outputs: str, contrib: bool = False, **attributes: Any) -> str:

        domain = _CONTRIB if contrib else ""
        self._nodes.append(
            helper.make_node(operator, inputs, list(outputs), name=f"{outputs[0]}.node", domain=domain, **attributes)
        )
        return outputs[0]


def smoothing_factors(activation_range: Floats, matrix: Floats) -> Floats:
    """Return what each input channel is divided by (and its weights multiplied by), geometric mean 1."""
    floor = 1e-5
    weight_range = np.maximum(np.abs(matrix).max(axis=1), floor)
    factors = np.maximum(activation_range, floor) ** SMOOTHING / weight_range ** (1 - SMOOTHING)
    smoothing: Floats = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    return smoothing


def quantised(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return symmetric 8-bit codes of a matrix (inputs, outputs) and the scale of each output."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / 127, 1e-12).astype(np.float32)
    return np.clip(np.round(matrix / scales), -127, 127).astype(np.int8), scales
