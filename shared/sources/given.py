"""Documents that a program already holds, as a source: evaluation sets, generated files, tests."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from shared.errors import UnreadableFileError
from shared.sources.base import FoundObject
from shared.sources.config import SourceConfig
from shared.text.normalise import stored


@dataclass(frozen=True, slots=True)
class GivenDocument:
    """One document: a stable id, a path (its name decides how it is read), and its bytes."""

    external_id: str
    path: str
    content: bytes


class GivenDocuments:
    """Documents handed in as values; all are held in memory.

    `is_whole` says that these are all the documents of the source: those that it had before and that are not among
    them are gone.
    """

    def __init__(
        self, name: str, documents: Iterable[GivenDocument], config: SourceConfig, *, is_whole: bool = False
    ) -> None:
        self._name = name
        self._config = config
        self._is_whole = is_whole
        # An id comes back as it was stored.
        self._documents = {stored(document.external_id): document for document in documents}

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    @property
    def config(self) -> SourceConfig:
        """The source's configuration."""
        return self._config

    @property
    def listed_below(self) -> str | None:
        """Everything, if these are all documents of the source."""
        return "" if self._is_whole else None

    def proves_gone(self, external_ids: Iterable[str]) -> bool:  # noqa: ARG002
        """Return False: that a document was not handed in is no more than that."""
        return False

    def scan(self) -> Iterator[FoundObject]:
        """Yield every document, in the order given."""
        for document in self._documents.values():
            if self._config.takes(document.path):
                name = document.path.rpartition("/")[2]
                yield FoundObject(document.external_id, document.path, name, len(document.content))

    def open(self, external_id: str) -> BinaryIO:
        """Return the document's bytes."""
        document = self._documents.get(external_id)
        if document is None:
            raise UnreadableFileError("the document is gone")
        return io.BytesIO(document.content)
