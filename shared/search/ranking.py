"""The ranked legs of one search within one scope: at most one request for a pool, at most one embedding."""

from __future__ import annotations

from collections.abc import Sequence

from shared.access.scope import CompiledAccessScope
from shared.index.client import IndexClient
from shared.ontology.tree import Ontology
from shared.providers.embedding.protocol import EmbeddingProvider, Vector
from shared.search import bodies
from shared.search.filters import filter_clauses
from shared.search.paging import Asked, Candidates, Leg, legs_for
from shared.search.request import SearchRequest
from shared.settings import Retrieval


class RankedSearch:
    """Asks the index on behalf of one request. Not for an empty scope: nothing may be sent for that."""

    def __init__(
        self,
        index: IndexClient,
        embedding: EmbeddingProvider,
        retrieval: Retrieval,
        scope: CompiledAccessScope,
        request: SearchRequest,
        *,
        alias: str,
        ontology: Ontology,
    ) -> None:
        self._index = index
        self._alias = alias
        self._embedding = embedding
        self._retrieval = retrieval
        self._query = request.query
        self._strict = bodies.strict_filter(scope.opensearch_filter(), filter_clauses(request.filters, ontology))
        self._preference = scope.shown_fingerprint
        self._vector: Vector | None = None

    def candidates(self, pool: int) -> Candidates:
        """Return the candidates of a pool, from one request."""
        asked = legs_for(pool, self._retrieval)
        sent = [self._body(one) for one in asked]
        answers = self._index.multi_search_packed(self._alias, sent, preference=self._preference)
        return Candidates(dict(zip(asked, answers, strict=True)), self._retrieval)

    def _body(self, asked: Asked) -> bodies.Body:
        if asked.leg is Leg.SEMANTIC:
            return bodies.semantic_body(self._embedded(), self._strict, size=asked.size)
        if asked.leg is Leg.IDENTIFIER:
            return bodies.identifier_body(self._query, self._strict, size=asked.size)
        minimum = self._retrieval.lexical_minimum_should_match
        return bodies.lexical_body(self._query, self._strict, size=asked.size, minimum_should_match=minimum)

    def _embedded(self) -> Sequence[float]:
        if self._vector is None:
            (self._vector,) = self._embedding.embed_queries([self._query])
        return self._vector
