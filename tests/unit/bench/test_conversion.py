from __future__ import annotations

import random

import pytest

from bench.conversion import _FORMATS
from shared.ingest.convert.formats import format_of
from shared.ingest.convert.kind import kind_of


@pytest.mark.parametrize(("what", "make", "_"), _FORMATS, ids=[what for what, _, _ in _FORMATS])
def test_every_file_of_the_bench_is_what_it_is_called(what: str, make, _) -> None:
    converters = {"PDF with text": "pdf", "PDF, scanned": "pdf", "TIFF": "image", "mail": "eml", "plain text": "plain"}
    assert format_of(kind_of(make(random.Random(1)), "bench")).name == converters.get(what, what.lower())
