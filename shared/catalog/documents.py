"""Reads of one document: its text by pages or characters, and its original bytes.

Absent, not yours and misspelt are one answer, found by the same statements. What is read is audited before it is
fetched from the object store, so a read that cannot be audited fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from shared.access.audit import ALLOWED, NOT_VISIBLE, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.expansion import expand
from shared.access.predicate import Viewer
from shared.catalog.document_answer import document_answer, passage
from shared.catalog.requests import DocumentRead, DownloadRead, identifier
from shared.catalog.visible import SourceObject, VisibleVersion, preferred, visible_of
from shared.db.engine import reading, recording
from shared.errors import NotVisibleError, StoredObjectMissingError, TooLargeError
from shared.providers.storage import ObjectStore, original_key
from shared.settings import Security
from shared.text.converted import ConvertedText

MAX_INLINE_BYTES: Final = 4_000_000
"""Lambda's answer holds 6 MB, of which base64 takes a quarter."""
LINK_LIFETIME_S: Final = 120


@dataclass(frozen=True, slots=True)
class Download:
    """The original bytes of a version, or a link that serves them for a while; one of the two is None."""

    name: str
    mime: str
    size_bytes: int
    sha256: str
    link: str | None
    content: bytes | None
    link_lifetime_s: int = LINK_LIFETIME_S


class DocumentCatalog:
    """Reads documents for a caller. Safe to share between threads."""

    def __init__(self, engine: sa.Engine, settings: Security, store: ObjectStore) -> None:
        self._engine = engine
        self._settings = settings
        self._store = store

    def read(
        self, caller: Caller, document_id: str, request: DocumentRead, *, correlation_id: str | None = None
    ) -> dict[str, Any]:
        """Return the document as api.md describes it: text, pages, sources, citation, versions that may be seen.

        Raises `NotVisibleError`; `InvalidRequestError` for a page that the version does not have.
        """
        versions, chosen = self._authorised("document.read", caller, document_id, request, correlation_id)
        if chosen.text_key is None:
            raise StoredObjectMissingError(f"version {chosen.id} has no converted text; ingest it again")
        text = ConvertedText.from_json(self._store.get(chosen.text_key))
        return document_answer(versions, chosen, passage(text, request))

    def download(
        self, caller: Caller, document_id: str, request: DownloadRead, *, correlation_id: str | None = None
    ) -> Download:
        """Return the bytes of a version under the name that a citable source object gives them.

        A link where the store can serve one, the bytes up to 4 MB elsewhere. Raises `NotVisibleError`,
        `TooLargeError`.
        """
        _, chosen = self._authorised("document.download", caller, document_id, request, correlation_id)
        name = _named_by(chosen, request).name
        key = original_key(chosen.sha256)
        link = self._store.presigned_url(key, file_name=name, expires_s=LINK_LIFETIME_S)
        if link is None and chosen.size_bytes > MAX_INLINE_BYTES:
            raise TooLargeError(f"the file is larger than {MAX_INLINE_BYTES} bytes, and this store serves no links")
        content = self._store.get(key) if link is None else None
        return Download(name, chosen.mime, chosen.size_bytes, chosen.sha256, link, content)

    def _authorised(
        self,
        action: str,
        caller: Caller,
        document_id: str,
        request: DocumentRead | DownloadRead,
        correlation_id: str | None,
    ) -> tuple[list[VisibleVersion], VisibleVersion]:
        """Return the visible versions and the one that was asked for, audited. Three statements whatever comes out."""
        asked = identifier(document_id)
        with reading(self._engine) as connection:
            principals = expand(connection, caller.principals)
            versions = visible_of(connection, Viewer(principals, self._settings.source_acl_mode), asked)
        chosen = _chosen(versions, request)
        detail = {"document_id": str(asked)}
        if chosen is not None:
            detail["version_id"] = str(chosen.id)
        entry = AuditEntry(
            action=action,
            subject=caller.subject,
            principals=principals,
            outcome=NOT_VISIBLE if chosen is None else ALLOWED,
            detail=detail,
            correlation_id=correlation_id,
        )
        with recording(self._engine) as connection:
            connection.execute(insertion(entry))
        if chosen is None:
            raise NotVisibleError
        return versions, chosen


def _chosen(versions: list[VisibleVersion], request: DocumentRead | DownloadRead) -> VisibleVersion | None:
    """Return the version that is asked for, None if the caller has none such."""
    fitting = [version for version in versions if request.version_id in {None, version.id}]
    if isinstance(request, DownloadRead) and request.source_object_id is not None:
        fitting = [
            version for version in fitting if any(place.id == request.source_object_id for place in version.sources)
        ]
    return preferred(fitting)


def _named_by(version: VisibleVersion, request: DownloadRead) -> SourceObject:
    for place in version.sources:
        if request.source_object_id in {None, place.id}:
            return place
    raise NotVisibleError
