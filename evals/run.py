"""Runs of the product's search over an evaluation set: each leg alone, and fused as configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evals.corpora import QuerySet, Span
from evals.metrics import Qrels, Scores, mean_scores
from evals.stage import StagedSet, record_id
from shared.access.caller import Caller
from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects, version_sources
from shared.runtime.bootstrap import Services, build
from shared.search.request import parse_search
from shared.types import ChunkKind, Principal

DEPTH = 100
"""Results looked at for a question; the deepest cut of a metric."""

_POOL_PAGES = 5

LEGS: Mapping[str, Mapping[str, float]] = {
    "fused": {},
    "lexical": {"weight_semantic": 0.0, "weight_identifier": 0.0},
    "semantic": {"weight_lexical": 0.0, "weight_identifier": 0.0},
}

_EVALUATOR = Caller("evaluation", frozenset({Principal("role:admin")}))


@dataclass(frozen=True, slots=True)
class RunScores:
    """One run's scores: `unit` says whether documents or chunks were ranked."""

    query_set: str
    run: str
    unit: str
    scores: Scores


def evaluate(staged: StagedSet, questions: QuerySet, *, progress: Callable[[str], None]) -> list[RunScores]:
    """Return the scores of every leg and of the fused run on one question set."""
    rows: list[RunScores] = []
    for run, weights in LEGS.items():
        progress(f"{questions.name}: {run}")
        documents = _ranked(_variant(staged.services, weights), questions, _documents_of)
        rows.append(RunScores(questions.name, run, "document", mean_scores(documents, questions.qrels)))
        if questions.spans:
            free = {**weights, "collapse_per_document": False, "max_chunks_per_document": DEPTH}
            passages = _ranked(_variant(staged.services, free), questions, _chunks_of)
            judged = chunk_qrels(staged.services, questions.spans)
            rows.append(RunScores(questions.name, run, "chunk", mean_scores(passages, judged)))
    return rows


def chunk_qrels(services: Services, spans: Mapping[str, Span]) -> dict[str, Qrels]:
    """Return the relevant chunks of each question: those that hold the whole answer, else all that hold a part."""
    held = _body_chunks(services, {span.document_id for span in spans.values()})
    judged: dict[str, Qrels] = {}
    for question, span in spans.items():
        touching = [(c, a, b) for c, a, b in held[span.document_id] if a < span.end and b > span.start]
        whole = [(c, a, b) for c, a, b in touching if a <= span.start and b >= span.end]
        judged[question] = {chunk: 1 for chunk, _, _ in whole or touching}
    return judged


def _variant(services: Services, changes: Mapping[str, Any]) -> Services:
    if not changes:
        return services
    retrieval = services.settings.retrieval.model_copy(update=dict(changes))
    return build(services.settings.model_copy(update={"retrieval": retrieval}))


def _ranked(
    services: Services, questions: QuerySet, ids_of: Callable[[Mapping[str, Any]], Sequence[str]]
) -> dict[str, list[str]]:
    runs: dict[str, list[str]] = {}
    for question, text in questions.queries.items():
        ranked = _results(services, text, pages=_POOL_PAGES if questions.judged_pool else 1)
        ids = [identity for result in ranked for identity in ids_of(result)]
        judged = questions.qrels[question]
        runs[question] = [one for one in ids if one in judged][:DEPTH] if questions.judged_pool else ids
    return runs


def _results(services: Services, query: str, *, pages: int) -> list[Mapping[str, Any]]:
    results: list[Mapping[str, Any]] = []
    for page in range(pages):
        body = {"query": query, "limit": DEPTH, "offset": page * DEPTH}
        answer = services.search.search(_EVALUATOR, parse_search(body, services.settings.retrieval))
        results.extend(answer["results"])
        if not answer["page"]["has_more"]:
            break
    return results


def _documents_of(result: Mapping[str, Any]) -> list[str]:
    return [record_id(source["path"]) for source in result["citation"]["sources"]]


def _chunks_of(result: Mapping[str, Any]) -> list[str]:
    return [str(chunk["id"]) for chunk in result["citation"]["chunks"]]


def _body_chunks(services: Services, records: set[str]) -> dict[str, list[tuple[str, int, int]]]:
    statement = (
        sa.select(source_objects.c.path, chunks.c.id, chunks.c.char_start, chunks.c.char_end)
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .join(chunks, chunks.c.version_id == document_versions.c.id)
        .where(chunks.c.kind == ChunkKind.CHUNK)
        .order_by(chunks.c.ordinal)
    )
    held: dict[str, list[tuple[str, int, int]]] = {record: [] for record in records}
    with services.engine.connect() as connection:
        for path, chunk, start, end in connection.execute(statement):
            if record_id(path) in held:
                held[record_id(path)].append((str(chunk), start, end))
    return held
