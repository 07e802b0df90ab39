"""An evaluation set taken in by the product's own pipeline, in a database and an index of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from evals.corpora import Record, corpus_in, read_corpus
from shared.db.engine import make_engine
from shared.db.migrate import upgrade
from shared.index.ensure import ensure_index
from shared.index.mapping import schema_hash
from shared.ingest.report import IngestReport
from shared.ingest.service import Progress
from shared.runtime.bootstrap import Services, build
from shared.settings import Settings
from shared.sources.config import ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments

_MADE_WITH = {
    "embedding_dimensions",
    "chunk_chars",
    "chunk_overlap_chars",
    "chunk_contextualize",
    "profile_embeddings",
}


@dataclass(frozen=True, slots=True)
class StagedSet:
    """A corpus in the product: its services and what came of its records."""

    name: str
    services: Services
    report: IngestReport


def stage_set(
    base: Settings, folder: Path, name: str, *, progress: Callable[[Progress], None] | None = None
) -> StagedSet:
    """Return corpus `name` of the evaluation folder, ingested; what is there already costs no work."""
    corpus = corpus_in(folder / name)
    if corpus is None:
        raise FileNotFoundError(f"no corpus in {folder / name}")
    settings = own_settings(base, name)
    ensure_database(base, settings)
    services = build(settings)
    ensure_index(services.index, settings.retrieval, embedding_signature=services.embedding.signature)
    source = corpus_source(name, read_corpus(corpus))
    report = services.ingest_service().ingest(source, progress=progress)
    services.index.refresh(settings.retrieval.index_name)
    return StagedSet(name, services, report)


def own_settings(base: Settings, name: str) -> Settings:
    """Return the settings with a database and an index for this set alone.

    Both are named after what they were made with, so that another mapping, model or chunk size starts afresh.
    """
    made_with = (schema_hash(), base.embedding.model_id, base.retrieval.model_dump_json(include=_MADE_WITH))
    mark = hashlib.sha256(repr(made_with).encode()).hexdigest()[:8]
    url = sa.engine.make_url(base.database.url or "").set(database=f"ki_eval_{name}_{mark}")
    return base.model_copy(
        update={
            "database": base.database.model_copy(update={"url": url.render_as_string(hide_password=False)}),
            "retrieval": base.retrieval.model_copy(update={"index_name": f"ki-eval-{name}-{mark}"}),
        }
    )


def corpus_source(name: str, records: Iterable[Record], config: SourceConfig | None = None) -> GivenDocuments:
    """Return the corpus as a source; each record lies in a folder of its own, so that none is a draft of another."""
    placed = config or SourceConfig(project=ProjectRef(key=name, title=name))
    return GivenDocuments(name, _documents(records), placed)


def record_id(path: str) -> str:
    """Return the record that a citation's path stands for."""
    return path.partition("/")[0]


def _documents(records: Iterable[Record]) -> Iterator[GivenDocument]:
    for record in records:
        if record.title:
            yield GivenDocument(record.id, f"{record.id}/{record.id}.md", f"# {record.title}\n\n{record.text}".encode())
        else:
            yield GivenDocument(record.id, f"{record.id}/{record.id}.txt", record.text.encode())


def ensure_database(base: Settings, own: Settings) -> None:
    """Make the database of `own`, if need be, and bring its schema up to date."""
    wanted = sa.engine.make_url(own.database.url or "").database
    engine = make_engine(base.database)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            known = connection.execute(sa.text("select 1 from pg_database where datname = :name"), {"name": wanted})
            if known.first() is None:
                connection.execute(sa.text(f'create database "{wanted}"'))
    finally:
        engine.dispose()
    upgrade(own.database.url or "")
