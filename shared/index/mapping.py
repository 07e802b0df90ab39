"""The index body, the one place that knows its shape; and the names of concrete indices.

Rows are strict: an unknown field is a fault of the writer and is refused. A concrete index is named after its schema
and its vector space and lies behind the alias `retrieval.index_name`, so that a new shape is built beside the old one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from shared.index import fields
from shared.index.analysis import (
    ENGLISH,
    EXACT,
    GERMAN,
    IDENTIFIER_JOINED,
    IDENTIFIER_JOINED_SEARCH,
    IDENTIFIER_PARTS,
    NAMES,
    analysis_settings,
)
from shared.settings import Retrieval

SHARDS: Final = 1
"""One shard keeps IDF global and the scope filter evaluated once; enough up to 3 or 4 million chunks."""
# Lucene's own limit for a term; a longer keyword would reject the whole row.
_MAX_KEYWORD_CHARS: Final = 8000
_MAX_INDEX_NAME_BYTES: Final = 255

_KEYWORD: Final = {"type": "keyword", "ignore_above": _MAX_KEYWORD_CHARS}
# The scope's bitmap works on `integer` only, and needs both the index and doc values (their defaults).
_INTEGER: Final = {"type": "integer"}
_STORED_NUMBER: Final = {"type": "integer", "index": False}


def index_body(retrieval: Retrieval, *, embedding_signature: str) -> dict[str, Any]:
    """Return the body that creates an index: settings and mappings, without aliases."""
    return {
        "settings": {
            "index": {
                "knn": True,
                "number_of_shards": SHARDS,
                "auto_expand_replicas": "0-1",
                # Set, so that an idle index is not refreshed by the first search after a pause.
                "refresh_interval": "1s",
                "max_shingle_diff": 9,
                "analysis": analysis_settings(),
            }
        },
        "mappings": {
            "dynamic": "strict",
            "_meta": {"schema": schema_hash(), "embedding_signature": embedding_signature},
            "properties": _properties(retrieval),
        },
    }


def concrete_name(retrieval: Retrieval, *, embedding_signature: str) -> str:
    """Return the name of the index for this schema and vector space: `<alias>-<schema>-<signature>`."""
    name = f"{retrieval.index_name}-{schema_hash()}-{embedding_signature}"
    if len(name.encode()) <= _MAX_INDEX_NAME_BYTES:
        return name
    return f"{retrieval.index_name}-{schema_hash()}-{_digest(embedding_signature)}"


def fitting_alias(retrieval: Retrieval, *, embedding_signature: str) -> str:
    """Return the alias that the live index bears for those alone who know its schema and its vector space.

    Rows are written through it. The swap of a re-index moves it in the same step as the alias of searches, so that a
    process with the old settings can never write a vector of the old model, or a row of the old shape, into the new
    index: it finds no index any more.
    """
    return f"{retrieval.index_name}-for-{_digest({'schema': schema_hash(), 'vectors': embedding_signature})}"


def schema_hash() -> str:
    """Return eight hex digits of everything but the vector: fields, their analysers, the shard count."""
    return _digest({"fields": _fields(), "analysis": analysis_settings(), "shards": SHARDS})


def vector_field(retrieval: Retrieval) -> dict[str, Any]:
    """Return the mapping of the embedding. The engine is always named: its own default needs native libraries."""
    return {
        "type": "knn_vector",
        "dimension": retrieval.embedding_dimensions,
        "method": {
            "name": "hnsw",
            "engine": retrieval.vector_engine,
            "space_type": retrieval.vector_space_type,
            "parameters": {"m": retrieval.hnsw_m, "ef_construction": retrieval.hnsw_ef_construction},
        },
    }


def _properties(retrieval: Retrieval) -> dict[str, Any]:
    return {**_fields(), fields.EMBEDDING: vector_field(retrieval)}


def _fields() -> dict[str, Any]:
    return {**_searched_fields(), **_filtered_fields(), **_carried_fields()}


def _searched_fields() -> dict[str, Any]:
    return {
        fields.TEXT: {"type": "text", "analyzer": GERMAN, "copy_to": [fields.TEXT_EXACT]},
        fields.TEXT_EN: {"type": "text", "analyzer": ENGLISH, "copy_to": [fields.TEXT_EXACT]},
        fields.TEXT_EXACT: {"type": "text", "analyzer": EXACT},
        # No positions: parts of compounds stand in no order.
        fields.TEXT_PARTS: {"type": "text", "analyzer": GERMAN, "index_options": "freqs"},
        fields.TITLE: {
            "type": "text",
            "analyzer": GERMAN,
            "fields": {
                _subfield(fields.TITLE_EN): {"type": "text", "analyzer": ENGLISH},
                _subfield(fields.TITLE_EXACT): {"type": "text", "analyzer": EXACT},
            },
        },
        fields.PARTIES: {"type": "text", "analyzer": NAMES},
        fields.IDENTIFIERS: _KEYWORD,
        fields.IDENTIFIERS_PARTS: {
            "type": "text",
            "analyzer": IDENTIFIER_PARTS,
            "fields": {
                _subfield(fields.IDENTIFIERS_JOINED): {
                    "type": "text",
                    "analyzer": IDENTIFIER_JOINED,
                    "search_analyzer": IDENTIFIER_JOINED_SEARCH,
                    # A document with many identifiers is no worse a match for one of them.
                    "norms": False,
                    "index_options": "docs",
                }
            },
        },
    }


def _filtered_fields() -> dict[str, Any]:
    keywords = (
        fields.CHUNK_ID,
        fields.PROJECT_ID,
        fields.MATTER_ID,
        fields.DOCUMENT_ID,
        fields.DOCUMENT_VERSION_ID,
        fields.DOC_TYPE,
        fields.DOC_TYPE_ANCESTORS,
        fields.VERSION_STATUS,
        fields.LANGUAGE,
        fields.CHUNK_KIND,
        fields.CLAUSE_TYPE,
    )
    return {
        fields.VERSION_SEQ: _INTEGER,
        **dict.fromkeys(keywords, _KEYWORD),
        fields.DOC_DATE: {"type": "date", "format": "strict_date"},
        fields.ORDINAL: _INTEGER,
        fields.IS_HEAD: {"type": "boolean"},
        fields.DELETED: {"type": "boolean"},
    }


def _carried_fields() -> dict[str, Any]:
    return {
        fields.ROW: {"type": "keyword", "index": False},
        fields.WRITE_VERSION: {"type": "long"},
        fields.PAGE_FROM: _STORED_NUMBER,
        fields.PAGE_TO: _STORED_NUMBER,
        fields.ALLOWED_PRINCIPALS: _KEYWORD,
        fields.DENIED_PRINCIPALS: _KEYWORD,
        fields.ACCESS_VERSION: {"type": "long", "index": False},
        fields.META: {"type": "object", "enabled": False},
    }


def _subfield(path: str) -> str:
    return path.rpartition(".")[2]


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
