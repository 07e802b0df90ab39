"""Ranked search and metadata listing, from a caller and a request to the answer.

Three statements at most: the scope (one or two), and one that verifies, cuts the page and audits. One request to the
index. Both are repeated, deeper, only when what came back cannot decide the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from shared.access.audit import ALLOWED, AuditEntry, AuditHasher
from shared.access.caller import Caller
from shared.access.scope import CompiledAccessScope
from shared.access.service import AccessService
from shared.db.engine import reading, recording
from shared.errors import MisconfiguredError
from shared.index.client import IndexClient
from shared.index.mapping import fitting_alias
from shared.ontology.tree import load_ontology
from shared.providers.embedding.protocol import EmbeddingProvider
from shared.search import hits
from shared.search.cursor import KEY_LABEL, CursorSeal
from shared.search.listing import Listing
from shared.search.marks import marks_for
from shared.search.paging import LARGE_POOL, Candidate, Candidates, pool_size
from shared.search.ranking import RankedSearch
from shared.search.request import MAX_WINDOW, FilterRequest, SearchRequest
from shared.search.rerank import RERANKED, Reranker, reranked
from shared.search.verification import Cut, Given, Verified, verified
from shared.search.words import runs
from shared.settings import Settings
from shared.types import ChunkKind, ProjectId

Answer = dict[str, Any]

# Beyond the window: one hit tells whether another page follows, the rest stand in for hits that no longer verify.
_SPARE_HITS: Final = 10
_EVERY_ROW: Final = 2**31 - 1


class SearchService:
    """Answers searches. One for each process; safe to share between threads."""

    def __init__(  # noqa: PLR0917  # the parts in the order in which a search meets them
        self,
        engine: sa.Engine,
        access: AccessService,
        index: IndexClient,
        embedding: EmbeddingProvider,
        settings: Settings,
        hasher: AuditHasher,
        *,
        reranker: Reranker | None = None,
    ) -> None:
        if settings.retrieval.rerank_enabled and reranker is None:
            raise MisconfiguredError("retrieval.rerank_enabled is on, but there is no reranker; switch it off")
        self._engine = engine
        self._access = access
        self._index = index
        # After a re-index with another model this process finds no index, instead of comparing vectors of two models.
        self._alias = fitting_alias(settings.retrieval, embedding_signature=embedding.signature)
        self._embedding = embedding
        self._retrieval = settings.retrieval
        self._ontology = load_ontology(settings.ontology.path)
        self._hasher = hasher
        self._seal = CursorSeal(hasher.derived_key(KEY_LABEL))
        self._reranker = reranker if settings.retrieval.rerank_enabled else None

    def search(self, caller: Caller, request: SearchRequest, *, correlation_id: str | None = None) -> Answer:
        """Return results, page and scope, best first.

        Raises `EngineUnavailableError` when an engine is away or answers in part: never a shorter list instead.
        """
        scope = self._scope(caller, request)
        entry = self._entry("search", caller, scope, request, correlation_id, query=request.query)
        cut = self._cut(request)
        ordered, found = self._ranked(scope, request, cut, entry)
        asked = hits.Asked(marks_for(request.query), runs(request.query))
        results = []
        for row in found.rows:
            one = ordered[row.nr - 1]
            results.append(
                hits.result(row, score=one.score, asked=asked, by_identifier=one.by_identifier, ontology=self._ontology)
            )
        if self._is_reranked(request) and self._reranker is not None:
            results = reranked(request.query, results, self._reranker)
        shown = results[request.offset - cut.first :][: request.limit]
        page = _page(request, returned=len(shown), has_more=found.hits > request.window)
        return _answer(scope, shown, page, found)

    def filter(self, caller: Caller, request: FilterRequest, *, correlation_id: str | None = None) -> Answer:
        """Return what fulfils the filters, newest day first, with a cursor to go on or, on the last page, the total."""
        listing = Listing(
            self._index, request, self._seal, alias=self._alias, ontology=self._ontology, subject=caller.subject
        )
        scope = self._scope(caller, request)
        entry = self._entry("search.filter", caller, scope, request, correlation_id)
        cut = Cut(first=request.offset, count=request.limit, per_document=_EVERY_ROW, collapsed=False)
        while True:
            is_all = scope.is_empty or not listing.fetch(scope)
            found = self._verified(scope, listing.given(), cut, entry, is_all=is_all)
            if found.is_certain:
                break
        results = [
            hits.result(row, score=0.0, asked=None, by_identifier=False, ontology=self._ontology) for row in found.rows
        ]
        has_more = found.hits > request.window
        page = _page(request, returned=len(results), has_more=has_more)
        if has_more:
            page["next_cursor"] = listing.cursor(found.rows[-1].nr, seen=request.offset + len(results))
        else:
            # Every row up to the end was verified, so this counts nothing that the caller may not see.
            page["total"] = listing.seen_before + found.hits
        return _answer(scope, results, page, found)

    def _scope(self, caller: Caller, request: SearchRequest | FilterRequest) -> CompiledAccessScope:
        narrowing = request.narrowed_to
        project_ids = None if narrowing is None else [ProjectId(one) for one in narrowing]
        with reading(self._engine) as connection:
            return self._access.compile_scope(connection, caller, project_ids=project_ids)

    def _ranked(
        self, scope: CompiledAccessScope, request: SearchRequest, cut: Cut, entry: AuditEntry
    ) -> tuple[list[Candidate], Verified]:
        """Return the candidates that were verified, in order, and the page of them."""
        if scope.is_empty:
            return [], self._verified(scope, [], cut, entry, is_all=True)
        ranking = RankedSearch(
            self._index,
            self._embedding,
            self._retrieval,
            scope,
            request,
            alias=self._alias,
            ontology=self._ontology,
        )
        pool = pool_size(request.window, factor=self._retrieval.candidate_pool_factor)
        while True:
            found = ranking.candidates(pool)
            given, page = self._decided(scope, found, cut, entry, is_last=pool >= LARGE_POOL)
            if page.is_certain:
                return given, page
            # A few long documents filled the small pool.
            pool = LARGE_POOL

    def _decided(
        self, scope: CompiledAccessScope, found: Candidates, cut: Cut, entry: AuditEntry, *, is_last: bool
    ) -> tuple[list[Candidate], Verified]:
        """Verify as many candidates as the page most likely needs, all of them if that was too few."""
        wanted = cut.first + cut.count + 1 + _SPARE_HITS
        rows = None if cut.collapsed else cut.per_document
        first = found.prefix(hits=wanted, rows_per_document=rows)
        if found.holds_more_than(len(first)):
            page = self._verified(scope, _given(first, found, cut), cut, entry, is_all=False)
            if page.is_certain:
                return first, page
        ordered = found.ordered
        # With a row of every visible version already, looking deeper cannot bring another document.
        is_all = is_last or not found.is_cut or (cut.collapsed and found.holds_versions(scope.size))
        return ordered, self._verified(scope, _given(ordered, found, cut), cut, entry, is_all=is_all)

    def _verified(
        self, scope: CompiledAccessScope, given: Sequence[Given], cut: Cut, entry: AuditEntry, *, is_all: bool
    ) -> Verified:
        with recording(self._engine) as connection:
            return verified(connection, scope, given, cut, entry, is_all=is_all)

    def _cut(self, request: SearchRequest) -> Cut:
        collapsed = self._retrieval.collapse_per_document
        per_document = 1 if collapsed else self._retrieval.max_chunks_per_document
        if self._is_reranked(request):
            count = max(request.window, RERANKED)
            return Cut(first=0, count=count, per_document=per_document, collapsed=collapsed)
        return Cut(first=request.offset, count=request.limit, per_document=per_document, collapsed=collapsed)

    def _is_reranked(self, request: SearchRequest) -> bool:
        return self._reranker is not None and request.offset < RERANKED

    def _entry(
        self,
        action: str,
        caller: Caller,
        scope: CompiledAccessScope,
        request: SearchRequest | FilterRequest,
        correlation_id: str | None,
        *,
        query: str | None = None,
    ) -> AuditEntry:
        return AuditEntry(
            action=action,
            subject=caller.subject,
            principals=caller.principals,
            outcome=ALLOWED,
            scope_fingerprint=scope.shown_fingerprint,
            query_hash=None if query is None else self._hasher.hash(query),
            query_chars=None if query is None else len(query),
            detail={"offset": request.offset, "limit": request.limit},
            correlation_id=correlation_id,
        )


def _given(shown: Sequence[Candidate], found: Candidates, cut: Cut) -> list[Given]:
    """Return candidates for SQL.

    A profile shows its version's best passage if that is a candidate as well, however far down.
    """
    profiles = {one.ref.version_seq for one in shown if one.ref.kind is ChunkKind.PROFILE} if cut.collapsed else ()
    best = found.best_passages(profiles) if profiles else {}
    return [
        Given(
            one.place,
            one.ref.version_seq,
            one.ref.chunk_id,
            best.get(one.ref.version_seq, one.ref.chunk_id) if one.ref.kind is ChunkKind.PROFILE else one.ref.chunk_id,
        )
        for one in shown
    ]


def _page(request: SearchRequest | FilterRequest, *, returned: int, has_more: bool) -> Answer:
    is_reachable = has_more and request.window < MAX_WINDOW and getattr(request, "cursor", None) is None
    return {
        "offset": request.offset,
        "limit": request.limit,
        "returned": returned,
        "has_more": has_more,
        "next_offset": request.window if is_reachable else None,
    }


def _answer(scope: CompiledAccessScope, results: list[hits.Result], page: Answer, found: Verified) -> Answer:
    shown = {
        "fingerprint": scope.shown_fingerprint,
        "mode": str(scope.mode),
        "administrator": scope.administrator,
        "versions": {"total": scope.size},
    }
    completeness = {"index_pending": found.is_pending, "as_of": found.as_of.isoformat()}
    return {"results": results, "page": page, "scope": shown, "completeness": completeness}
