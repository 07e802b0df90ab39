"""A path as a source: a folder or file, an evaluation set record by record, or a bucket."""

from __future__ import annotations

from pathlib import Path

from evals.corpora import corpus_in, read_corpus
from evals.stage import corpus_source
from local.known_folders import BUCKET, folder_of, remember
from shared.errors import InvalidRequestError
from shared.sources.base import Source
from shared.sources.config import SourceConfig
from shared.sources.local_fs import LocalFolder
from shared.sources.s3 import S3Source
from shared.types import SourceKind


def source_at(path: str, name: str, config: SourceConfig) -> Source:
    """Return what lies at `path` as the source `name`, and remember the place for reading a file again.

    A path within the folder that the source is known by is a part of it: its files have the ids that they have there.
    A path beside it is refused: all files of the one folder would be missing in the other.
    """
    if path.startswith(BUCKET):
        remember(name, path)
        bucket, _, prefix = path.removeprefix(BUCKET).partition("/")
        return S3Source(name, _client(), bucket, config, prefix=prefix)
    place = Path(path)
    if not place.exists():
        raise InvalidRequestError(f"there is nothing at {path}", field="path")
    root = folder_of(name)
    if root is None or not root.is_dir():
        remember(name, place)
        root = None
    elif not place.resolve().is_relative_to(root):
        raise InvalidRequestError(
            f"the source {name} lies at {root}; take {path} in under another name (--source)", field="path"
        )
    corpus = corpus_in(place) if place.is_dir() else None
    if corpus is not None:
        return corpus_source(name, read_corpus(corpus), config)
    return LocalFolder(name, place, config, root=root)


def placed_config(path: str, config: SourceConfig) -> SourceConfig:
    """Return the configuration with the kind that a bucket has."""
    return config.model_copy(update={"kind": SourceKind.S3}) if path.startswith(BUCKET) else config


def _client() -> object:
    from shared.runtime import aws  # noqa: PLC0415 - boto3 takes a fifth of a second

    return aws.client("s3")
