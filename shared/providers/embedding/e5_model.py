"""What multilingual-e5-small is: its name, width, prefixes, and how it is computed here."""

from __future__ import annotations

from enum import StrEnum

MODEL_ID = "multilingual-e5-small"
DIMENSIONS = 384
QUERY_PREFIX = "query: "
PASSAGE_PREFIX = "passage: "
"""The two prefixes the model was trained with (Wang et al. 2024, arXiv 2402.05672)."""

GRAPH_VERSION = "2"
"""Changes whenever the built graph gives other vectors; part of the signature and of the kept file's name."""

INPUT = "embedded"
OUTPUT = "mean"
"""Names of the graph's input (token vectors) and output (mean of the last layer)."""

MAX_WINDOWS = 16
"""Of a longer text (about 30,000 characters) this many windows, spread evenly, make the mean."""


class Precision(StrEnum):
    """How the matrix products are computed."""

    INT8 = "int8"
    FLOAT32 = "float32"
