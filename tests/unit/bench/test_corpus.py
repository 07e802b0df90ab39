from __future__ import annotations

import math

import pytest

from bench.corpus import queries, records, vocabulary
from bench.vectors import HashedVectors


def test_the_corpus_is_the_same_on_every_run() -> None:
    first, again = next(records()), next(records())
    assert first == again
    assert first.text.count("§") > 10


def test_queries_are_made_of_words_of_the_corpus() -> None:
    words, weights = vocabulary()
    assert len(words) == len(weights) == len(set(words))
    assert all(set(query.split()) <= set(words) for query in queries(20))


def test_a_text_has_one_vector_of_length_one_wherever_it_is_made() -> None:
    one, other = HashedVectors(48), HashedVectors(48)
    (vector,) = one.embed_passages(["Kündigung"])
    assert other.embed_queries(["Kündigung"]) == [vector]
    assert one.embed_queries(["Miete"]) != [vector]
    assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
    assert one.signature == other.signature != HashedVectors(32).signature
