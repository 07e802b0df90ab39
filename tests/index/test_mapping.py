"""The index body, as a file whose diff is the review; and the names of concrete indices."""

from __future__ import annotations

import json

import pytest

from shared.index.mapping import concrete_name, index_body, schema_hash
from shared.settings import load_settings
from tests.golden_files import assert_golden

RETRIEVAL = load_settings({}).retrieval


@pytest.mark.golden
def test_the_index_body_is_the_reviewed_one() -> None:
    body = index_body(RETRIEVAL, embedding_signature="model-1536")
    assert_golden("index.json", json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def test_another_schema_or_vector_space_has_another_name() -> None:
    name = concrete_name(RETRIEVAL, embedding_signature="model-1536")
    assert name == f"knowledge-index-chunks-v1-{schema_hash()}-model-1536"
    assert concrete_name(RETRIEVAL, embedding_signature="model-384") != name


def test_a_long_signature_still_gives_a_name_that_the_engine_takes() -> None:
    names = {concrete_name(RETRIEVAL, embedding_signature=f"{'long-' * 60}{number}") for number in range(2)}
    assert len(names) == 2
    assert all(len(name) <= 255 for name in names)


def test_the_width_changes_the_vector_field_alone() -> None:
    wide = index_body(RETRIEVAL.model_copy(update={"embedding_dimensions": 384}), embedding_signature="x")
    normal = index_body(RETRIEVAL, embedding_signature="x")
    wide["mappings"]["properties"]["embedding"]["dimension"] = 1536
    assert wide == normal
