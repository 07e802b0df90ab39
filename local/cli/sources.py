"""A path as a source: a folder or file, or an evaluation set record by record."""

from __future__ import annotations

from pathlib import Path

from evals.corpora import corpus_in, read_corpus
from evals.stage import corpus_source
from shared.sources.base import Source
from shared.sources.config import SourceConfig
from shared.sources.local_fs import LocalFolder


def source_at(path: Path, name: str, config: SourceConfig) -> Source:
    """Return what lies at `path` as the source `name`."""
    corpus = corpus_in(path) if path.is_dir() else None
    if corpus is not None:
        return corpus_source(name, read_corpus(corpus), config)
    return LocalFolder(name, path, config)
