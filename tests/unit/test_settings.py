import json
from pathlib import Path

import pytest

from shared.errors import MisconfiguredError
from shared.settings import CONFIG_PATH, load_settings

CONTRACT = {
    "index_name": "knowledge-index-chunks-v1",
    "embedding_dimensions": 1536,
    "vector_engine": "lucene",
    "vector_space_type": "cosinesimil",
    "hnsw_m": 16,
    "hnsw_ef_construction": 128,
    "chunk_chars": 1200,
    "chunk_overlap_chars": 120,
    "chunk_contextualize": True,
    "profile_embeddings": True,
    "clause_embeddings": True,
    "fusion_rrf_k": 60,
    "weight_lexical": 1.0,
    "weight_semantic": 1.0,
    "weight_identifier": 1.5,
    "weight_decisions": 0.8,
    "version_status_boost": {"executed": 1.2, "final": 1.0, "unknown": 0.8, "draft": 0.7},
    "collapse_per_document": True,
    "max_chunks_per_document": 3,
    "rerank_enabled": False,
    "graph_rag_enabled": False,
}


def test_the_defaults_are_those_of_the_contract() -> None:
    retrieval = load_settings({}).retrieval.model_dump()
    assert {name: retrieval[name] for name in CONTRACT} == CONTRACT


def test_the_environment_overrides_by_the_contracts_names() -> None:
    settings = load_settings(
        {
            "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": "384",
            "KI_RETRIEVAL__VERSION_STATUS_BOOST": '{"final": 2.0}',
            "KI_RETRIEVAL__COLLAPSE_PER_DOCUMENT": "false",
            "KI_RETRIEVAL__LEXICAL_MINIMUM_SHOULD_MATCH": "null",
            "KI_IDENTITY__ADMIN_GROUPS": '["it"]',
            "KI_TEST_SHARED": "/elsewhere",
            "PATH": "/bin",
        }
    )
    assert settings.retrieval.embedding_dimensions == 384
    assert settings.retrieval.version_status_boost == {"final": 2.0}
    assert settings.retrieval.collapse_per_document is False
    assert settings.retrieval.lexical_minimum_should_match is None
    assert settings.identity.admin_groups == ("it",)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("KI_SECURTY__SOURCE_ACL_MODE", "intersect", "securty"),
        ("KI_SECURITY__SOURCE_ACL_MOD", "intersect", "source_acl_mod"),
        ("KI_SECURITY__SOURCE_ACL_MODE", "lenient", "source_acl_mode"),
        ("KI_RETRIEVAL__EMBEDDING_DIMENSIONS", "0", "embedding_dimensions"),
        ("KI_RETRIEVAL__CHUNK_OVERLAP_CHARS", "1200", "chunk_overlap_chars"),
        ("KI_RETRIEVAL__VERSION_STATUS_BOOST", "{", "VERSION_STATUS_BOOST"),
        ("KI_RETRIEVAL__INDEX_NAME", "", "index_name"),
        ("KI_IDENTITY__ALGORITHMS", '["none"]', "algorithms"),
        ("KI_IDENTITY__ALGORITHMS", '["HS256"]', "algorithms"),
    ],
)
def test_a_wrong_setting_is_refused_and_named(name: str, value: str, told: str) -> None:
    with pytest.raises(MisconfiguredError, match=told):
        load_settings({name: value})


def test_another_configuration_file_can_be_named_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    body = json.loads(CONFIG_PATH.read_text(encoding="utf-8"))
    body["retrieval"]["fusion_rrf_k"] = 61
    own = tmp_path / "own.json"
    own.write_text(json.dumps(body), encoding="utf-8")
    assert load_settings({"KI_CONFIG": str(own)}).retrieval.fusion_rrf_k == 61
    own.write_text("{", encoding="utf-8")
    with pytest.raises(MisconfiguredError, match="configuration file"):
        load_settings({"KI_CONFIG": str(own)})


def test_the_configuration_file_names_every_setting_once() -> None:
    body = json.loads(CONFIG_PATH.read_text(encoding="utf-8"))
    settings = load_settings({})
    for section in type(settings).model_fields:
        assert set(body[section]) == set(type(getattr(settings, section)).model_fields)
