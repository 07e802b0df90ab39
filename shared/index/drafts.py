"""From a claim to the writes that settle it: rows with their vectors, and tombstones for what is gone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.engine import run_retrying
from shared.db.tables.content import chunks
from shared.errors import EmbeddingWidthError, ProviderRefusedError
from shared.index import fields
from shared.index.claims import Claim
from shared.index.client import Write
from shared.index.ids import head_id
from shared.index.rows import tombstone, version_rows
from shared.index.version_facts import VersionFacts
from shared.providers.embedding.protocol import EmbeddingProvider, Vector
from shared.settings import Settings
from shared.types import ChunkId, OutboxOperation


@dataclass(frozen=True, slots=True)
class Draft:
    """One row to write, still without its vector; `embedded` is the string to embed, None if there is none."""

    claim: Claim
    chunk_id: ChunkId
    body: dict[str, Any]
    embedded: str | None

    @property
    def is_live(self) -> bool:
        """Whether this is a row to be found, not a tombstone."""
        return not self.body[fields.DELETED]


@dataclass(frozen=True, slots=True)
class EmbeddedDraft:
    """A draft with its vector, or with the reason why the model refused its text."""

    draft: Draft
    vector: Vector | None
    refusal: str | None = None

    def write(self) -> Write:
        """Return the write that brings the row to the index."""
        vector = {} if self.vector is None else {fields.EMBEDDING: self.vector}
        version = self.draft.claim.write_version
        return Write(str(self.draft.chunk_id), version, self.draft.body | vector)


def drafts(claim: Claim, facts: VersionFacts | None, settings: Settings) -> list[Draft]:
    """Return all that the index must learn about the claimed version; `facts` are what SQL holds now, None if gone.

    Whether the version still lies at a source is asked of SQL, not of the entry: entries of two transactions, one that
    buries and one that restores, may come in either order.
    """
    rows = []
    known = {chunk.id for chunk in facts.chunks} if facts else set()
    if facts is not None and facts.is_observed and claim.operation is OutboxOperation.INDEX:
        contextualize, max_bytes = settings.retrieval.chunk_contextualize, settings.ingest.max_identifier_chars
        rows = version_rows(facts, contextualize=contextualize, max_identifier_bytes=max_bytes)
    # The head of a version that had no text yet is in the index only if the version was written before.
    old_head = {head_id(claim.version_id)} if claim.is_rewrite or not rows else set()
    gone = (claim.stale_chunk_ids | known | old_head) - {row.chunk_id for row in rows}
    origin = {fields.WRITE_VERSION: claim.write_version, fields.ACCESS_VERSION: claim.write_version}
    return [
        *(Draft(claim, row.chunk_id, row.body | origin, row.embedded) for row in rows),
        *(
            Draft(claim, chunk_id, tombstone(chunk_id, claim.version_id, write_version=claim.write_version), None)
            for chunk_id in sorted(gone)
        ),
    ]


def embed(work: Sequence[Draft], provider: EmbeddingProvider) -> list[EmbeddedDraft]:
    """Return the drafts with their vectors, in order. A text that the model refuses costs no other text its vector."""
    texts = [draft.embedded for draft in work if draft.embedded is not None]
    answers = iter(_vectors(texts, provider))
    embedded = []
    for draft in work:
        if draft.embedded is None:
            embedded.append(EmbeddedDraft(draft, None))
            continue
        answer = next(answers)
        if isinstance(answer, ProviderRefusedError):
            embedded.append(EmbeddedDraft(draft, None, answer.message))
        else:
            embedded.append(EmbeddedDraft(draft, answer))
    return embedded


def record_embedded(engine: sa.Engine, written: Sequence[EmbeddedDraft]) -> None:
    """Store, for each written row with a vector, the hash of the string that was embedded."""
    hashes = {
        str(one.draft.chunk_id): hashlib.sha256(one.draft.embedded.encode("utf-8", "replace")).hexdigest()
        for one in written
        if one.draft.embedded is not None
    }
    if not hashes:
        return
    given = (
        sa.func.unnest(
            sa.cast(sa.literal(list(hashes), pg.ARRAY(sa.Text)), pg.ARRAY(pg.UUID)),
            sa.literal(list(hashes.values()), pg.ARRAY(sa.Text)),
        )
        .table_valued(sa.column("id", pg.UUID), sa.column("hash", sa.Text), name="given")
        .render_derived()
    )
    # Locked in the order of ids, like every writer of chunks, so that two never wait for each other.
    locked = (
        sa.select(chunks.c.id, given.c.hash)
        .join(given, given.c.id == chunks.c.id)
        .where(chunks.c.embedded_sha256.is_distinct_from(given.c.hash))
        .order_by(chunks.c.id)
        .with_for_update(of=chunks)
        .cte("locked")
    )
    update = sa.update(chunks).where(chunks.c.id == locked.c.id).values(embedded_sha256=locked.c.hash)
    run_retrying(engine, lambda connection: connection.execute(update))


def _vectors(texts: Sequence[str], provider: EmbeddingProvider) -> list[Vector | ProviderRefusedError]:
    if not texts:
        return []
    try:
        vectors = provider.embed_passages(texts)
    except ProviderRefusedError as error:
        if len(texts) == 1:
            return [error]
        middle = len(texts) // 2
        return [*_vectors(texts[:middle], provider), *_vectors(texts[middle:], provider)]
    if any(len(vector) != provider.dimensions for vector in vectors) or len(vectors) != len(texts):
        raise EmbeddingWidthError(f"{provider.model_id} gave vectors of another width than {provider.dimensions}")
    return list(vectors)
