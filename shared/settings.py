"""Every tunable of the product: defaults in `config.json`, overridden by `KI_<SECTION>__<FIELD>`.

`load_settings` is the only reader of either. Maps and lists are JSON in the environment. An unknown section or
field is refused, so that a misspelt wall setting never passes for a default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.errors import MisconfiguredError
from shared.types import AclMode

CONFIG_PATH = Path(__file__).resolve().parent.parent / "config.json"
CONFIG_PATH_VARIABLE = "KI_CONFIG"
PREFIX = "KI_"
_NOT_SETTINGS = ("KI_TEST_",)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Retrieval(_Section):
    """The retrieval contract's settings, with its names and defaults, and what search.md adds."""

    index_name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,150}$")
    embedding_dimensions: int = Field(ge=1, le=16000)
    vector_engine: Literal["lucene", "faiss"]
    vector_space_type: Literal["cosinesimil", "l2", "innerproduct"]
    hnsw_m: int = Field(ge=2, le=512)
    hnsw_ef_construction: int = Field(ge=2, le=4096)
    chunk_chars: int = Field(ge=100, le=20000)
    chunk_overlap_chars: int = Field(ge=0)
    chunk_contextualize: bool
    profile_embeddings: bool
    clause_embeddings: bool
    fusion_rrf_k: int = Field(ge=1)
    weight_lexical: float = Field(ge=0)
    weight_semantic: float = Field(ge=0)
    weight_identifier: float = Field(ge=0)
    weight_decisions: float = Field(ge=0)
    version_status_boost: Mapping[str, float]
    collapse_per_document: bool
    max_chunks_per_document: int = Field(ge=1)
    rerank_enabled: bool
    rerank_model: str | None
    graph_rag_enabled: bool
    candidate_pool_factor: int = Field(ge=1)
    lexical_minimum_should_match: str | None
    max_query_chars: int = Field(ge=1)

    @model_validator(mode="after")
    def _overlap_is_smaller_than_the_window(self) -> Self:
        if self.chunk_overlap_chars >= self.chunk_chars:
            msg = "chunk_overlap_chars must be smaller than chunk_chars"
            raise ValueError(msg)
        return self


class Security(_Section):
    """How access is decided and how compiled scopes are kept."""

    source_acl_mode: AclMode
    scope_bitmap_threshold: int = Field(ge=0, le=65536)
    keep_scopes_in_process: int = Field(ge=0)
    keep_scopes_in_database: bool
    scope_delta_limit: int = Field(ge=0)


class Identity(_Section):
    """Which tokens are accepted. Issuer and key set are required before a request is served."""

    issuer: str | None
    audience: str
    jwks_url: str | None
    algorithms: tuple[Literal["RS256", "RS384", "RS512", "ES256", "ES384"], ...] = Field(min_length=1)
    groups_claim: str
    admin_groups: tuple[str, ...]
    # Whose tokens may bring snapshots of ACLs and memberships.
    sync_groups: tuple[str, ...]
    leeway_s: float = Field(ge=0, le=300)


class Database(_Section):
    """PostgreSQL, the authority."""

    url: str | None
    pool_size: int = Field(ge=1)
    statement_timeout_ms: int = Field(ge=1)
    # A transaction pooler (RDS Proxy) takes no start-up parameters: the role must carry the time limit then, and
    # reads run in transactions.
    pooler: Literal["none", "transaction"]
    iam_auth: bool


class OpenSearch(_Section):
    """The ranking engine."""

    url: str | None
    auth: Literal["none", "sigv4"]
    region: str | None
    timeout_s: float = Field(gt=0)
    deadline_s: float = Field(gt=0)
    refresh: Literal["false", "wait_for"]


class Embedding(_Section):
    """The embedding model; its width is `retrieval.embedding_dimensions`."""

    provider: Literal["bedrock", "openai_compatible", "local_e5"]
    model_id: str
    base_url: str | None
    api_key_file: str | None
    region: str | None
    timeout_s: float = Field(gt=0)
    batch_size: int = Field(ge=1)
    cache_path: str | None
    query_prefix: str
    passage_prefix: str
    send_dimensions: bool


class Ontology(_Section):
    """The tree of document and clause types: `path` names a firm's own file, null is the built-in tree."""

    path: str | None


class Llm(_Section):
    """The language model that refines what rules read of a document; `rules` asks none."""

    provider: Literal["rules", "bedrock", "openai_compatible"]
    model_id: str | None
    base_url: str | None
    api_key_file: str | None
    region: str | None
    # For one question, with all that is tried again.
    timeout_s: float = Field(gt=0)
    temperature: float | None = Field(ge=0, le=2)
    max_answer_tokens: int = Field(ge=1)
    max_text_chars: int = Field(ge=200)


class Storage(_Section):
    """Where original bytes and converted texts lie."""

    kind: Literal["file", "s3"]
    root: str | None
    bucket: str | None
    # Where sources of kind s3 keep their files, each below its id; never the bucket above.
    upload_bucket: str | None


class Ingest(_Section):
    """Limits and retries of the pipeline."""

    max_file_bytes: int = Field(ge=1)
    # Files in one file, and in the files in it. A data room of 5,000 is real; each costs a conversion, so an archive of
    # archives must end somewhere.
    max_members: int = Field(ge=1)
    # How many files of one file the state machine takes in at a time.
    members_at_once: int = Field(ge=1, le=1000)
    state_machine_arn: str | None
    max_tries: int = Field(ge=1)
    backoff_base_s: float = Field(ge=0)
    claim_timeout_s: float = Field(gt=0)
    convert_timeout_s: float = Field(gt=0)
    convert_memory_bytes: int = Field(ge=1)
    # Text recognition: languages as the engine names them, joined by "+"; `ocr_timeout_s` is for a file in one try and
    # comes on top of `convert_timeout_s`.
    ocr_languages: str = Field(pattern=r"^[a-z_]+(\+[a-z_]+)*$")
    ocr_dpi: int = Field(ge=70, le=600)
    ocr_max_pages: int = Field(ge=0)
    ocr_page_timeout_s: float = Field(gt=0)
    ocr_timeout_s: float = Field(gt=0)
    ocr_memory_bytes: int = Field(ge=1)
    ocr_min_confidence: float = Field(ge=0, le=100)
    max_identifier_chars: int = Field(ge=1, le=8000)


class Audit(_Section):
    """The audit trail; the key file holds the secret for keyed hashes of query texts."""

    hmac_key_file: str | None


class Settings(_Section):
    """All settings, validated."""

    retrieval: Retrieval
    security: Security
    identity: Identity
    database: Database
    opensearch: OpenSearch
    embedding: Embedding
    llm: Llm
    ontology: Ontology
    storage: Storage
    ingest: Ingest
    audit: Audit


def load_settings(environment: Mapping[str, str] | None = None, *, config_path: Path | None = None) -> Settings:
    """Return the settings of this process.

    `environment` defaults to `os.environ`. Raises `MisconfiguredError` naming every wrong setting.
    """
    env = os.environ if environment is None else environment
    path = config_path or Path(env.get(CONFIG_PATH_VARIABLE) or CONFIG_PATH)
    try:
        merged = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MisconfiguredError(f"cannot read the configuration file: {error}") from error
    for name, value in env.items():
        _override(merged, name, value)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise MisconfiguredError(f"wrong settings: {wrong}") from error


def _override(merged: dict[str, Any], name: str, value: str) -> None:
    if not name.startswith(PREFIX) or name == CONFIG_PATH_VARIABLE or name.startswith(_NOT_SETTINGS):
        return
    section, separator, field = name.removeprefix(PREFIX).lower().partition("__")
    if not separator:
        return
    if section not in Settings.model_fields:
        raise MisconfiguredError(f"{name}: there is no settings section {section!r}")
    merged.setdefault(section, {})[field] = _parse(section, field, name, value)


def _parse(section: str, field: str, name: str, value: str) -> Any:
    model = Settings.model_fields[section].annotation
    known = getattr(model, "model_fields", {})
    if field not in known:
        raise MisconfiguredError(f"{name}: section {section!r} has no setting {field!r}")
    if value in {"", "null"}:
        return None if type(None) in _members(known[field].annotation) else value
    if value[:1] in "[{":
        try:
            return json.loads(value)
        except ValueError as error:
            raise MisconfiguredError(f"{name}: not valid JSON: {error}") from error
    return value


@cache
def _members(annotation: object) -> tuple[object, ...]:
    return getattr(annotation, "__args__", (annotation,))
