"""The stages in their order, each with its rules: the one list that every runner follows."""

from __future__ import annotations

from collections.abc import Callable

from shared.ingest.contract import Payload, Retry, Stage
from shared.ingest.stages.classify_matter import classify_matter
from shared.ingest.stages.convert import convert
from shared.ingest.stages.convert import producer as converter_of
from shared.ingest.stages.extract_decisions import extract_decisions
from shared.ingest.stages.extract_metadata import extract_metadata
from shared.ingest.stages.fetch import fetch
from shared.ingest.stages.index import index
from shared.ingest.stages.relate import relate
from shared.ontology.tree import load_ontology
from shared.providers.llm.factory import signature_of
from shared.settings import Settings

_FETCH, _METADATA, _MATTER, _RELATE, _DECISIONS, _INDEX = "1", "4", "1", "3", "1", "3"
_STAGE_TIMEOUT_S = 60.0


def stages(settings: Settings) -> tuple[Stage, ...]:
    """Return the pipeline. A producer version that changes runs its stage again, and what depends on its result.

    Time-outs bind where a stage can be ended: a conversion is killed, statements are cut off by the database.
    """
    limits = settings.ingest
    # Reading and drawing pages, recognising text, and the page at which the time for that is over.
    convert_s = limits.convert_timeout_s + limits.ocr_timeout_s + limits.ocr_page_timeout_s
    retry = Retry(max_tries=settings.ingest.max_tries, backoff_base_s=settings.ingest.backoff_base_s)
    retrieval = settings.retrieval
    cut = f"{retrieval.chunk_chars}.{retrieval.chunk_overlap_chars}.{'c' if retrieval.clause_embeddings else 'n'}"
    profiles = "p" if settings.retrieval.profile_embeddings else "n"
    return (
        Stage("fetch", fetch, _always(_FETCH), (), _STAGE_TIMEOUT_S, retry, always=True),
        Stage("convert", convert, converter_of, ("sha256", "mime"), convert_s, retry),
        Stage(
            "extract_metadata",
            extract_metadata,
            _always(f"{_METADATA}/{load_ontology(settings.ontology.path).fingerprint}/{signature_of(settings.llm)}"),
            ("text_key", "mime", "place"),
            _STAGE_TIMEOUT_S,
            retry,
        ),
        Stage(
            "classify_matter",
            classify_matter,
            _always(_MATTER),
            ("facts_key", "place", "assigned"),
            _STAGE_TIMEOUT_S,
            retry,
        ),
        Stage(
            "relate",
            relate,
            _always(f"{_RELATE}/{profiles}"),
            ("sha256", "text_key", "members_key", "facts_key", "place", "matter"),
            _STAGE_TIMEOUT_S,
            retry,
        ),
        Stage(
            "extract_decisions",
            extract_decisions,
            _always(_DECISIONS),
            ("text_key", "facts_key", "mime", "version_id"),
            _STAGE_TIMEOUT_S,
            retry,
        ),
        Stage(
            "index",
            index,
            _always(f"{_INDEX}/{cut}"),
            ("text_key", "clauses_key", "version_id"),
            _STAGE_TIMEOUT_S,
            retry,
        ),
    )


def _always(version: str) -> Callable[[Payload], str]:
    return lambda _: version
