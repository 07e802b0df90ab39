"""The list by metadata, one batch of index rows after the other, one candidate a version."""

from __future__ import annotations

from typing import Final

from shared.access.scope import CompiledAccessScope
from shared.index.answers import RankedRow
from shared.index.client import IndexClient
from shared.ontology.tree import Ontology
from shared.search import bodies
from shared.search.cursor import CursorSeal, Position
from shared.search.filters import filter_clauses
from shared.search.request import FilterRequest
from shared.search.verification import Given

_SPARE_ROWS: Final = 20
_LARGEST_BATCH: Final = 5000


class Listing:
    """What one request has read of the list so far. Raises `InvalidRequestError` on a wrong cursor."""

    def __init__(
        self,
        index: IndexClient,
        request: FilterRequest,
        seal: CursorSeal,
        *,
        alias: str,
        ontology: Ontology,
        subject: str,
    ) -> None:
        self._index = index
        self._alias = alias
        self._request = request
        self._seal = seal
        self._subject = subject
        self._ontology = ontology
        position = seal.opened(request, subject=subject)
        self._after = None if position is None else position.after
        self._batch = request.window + 1 + _SPARE_ROWS
        self._rows: list[RankedRow] = []
        self.seen_before = 0 if position is None else position.seen
        """How many results the pages before this one showed."""

    def fetch(self, scope: CompiledAccessScope) -> bool:
        """Read one batch more; return whether there may be others."""
        filters = self._request.filters
        strict = bodies.strict_filter(scope.opensearch_filter(), filter_clauses(filters, self._ontology))
        # Kinds and clause types lie on single rows; everything else is on the one head row of each version.
        heads_only = filters.clause_type is None and filters.chunk_kind is None
        body = bodies.listing_body(strict, size=self._batch, heads_only=heads_only, after=self._after)
        (rows,) = self._index.multi_search(self._alias, [body], preference=scope.shown_fingerprint)
        for row in rows:
            if not self._rows or row.ref.version_seq != self._rows[-1].ref.version_seq:
                self._rows.append(row)
        may_go_on = len(rows) >= self._batch
        if may_go_on:
            self._after = list(rows[-1].sort)
            self._batch = min(2 * self._batch, _LARGEST_BATCH)
        return may_go_on

    def given(self) -> list[Given]:
        """Return one candidate a version, in order."""
        refs = [row.ref for row in self._rows]
        return [Given(place, ref.version_seq, ref.chunk_id, ref.chunk_id) for place, ref in enumerate(refs)]

    def cursor(self, number: int, *, seen: int) -> str:
        """Return the cursor that goes on behind candidate `number` (from 1), `seen` results into this request."""
        day, version_seq, _ = self._rows[number - 1].sort
        position = Position(day=day, version_seq=version_seq, seen=self.seen_before + seen)
        return self._seal.sealed(position, self._request, subject=self._subject)
