"""The composition root: every engine, client and service of one process, made once, when first needed.

Nothing is created at import, and heavy modules are imported where a part is made: a health check needs no driver, a
download no embedding model.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from shared.errors import MisconfiguredError
from shared.settings import Settings, load_settings

if TYPE_CHECKING:
    import sqlalchemy as sa

    from shared.access.administration import AccessAdministration
    from shared.access.audit import AuditHasher
    from shared.access.inquiries import AccessInquiries
    from shared.access.service import AccessService
    from shared.access.sync import AccessSync
    from shared.catalog.documents import DocumentCatalog
    from shared.catalog.scope_preview import ScopePreviews
    from shared.index.client import IndexClient
    from shared.index.repair import IndexRepair
    from shared.index.writer import IndexWriter
    from shared.ingest.acl_uploads import AclUploads
    from shared.ingest.convert.process import ConversionProcess
    from shared.ingest.events import EventIntake
    from shared.ingest.execution import StageWorker
    from shared.ingest.service import IngestService
    from shared.providers.embedding.protocol import EmbeddingProvider
    from shared.providers.llm.protocol import LanguageModel
    from shared.providers.storage import ObjectStore
    from shared.providers.storage.uploads import UploadBucket
    from shared.runtime.identity import TokenVerifier
    from shared.runtime.state_machine import StateMachine
    from shared.search.service import SearchService
    from shared.sources.base import Source
    from shared.types import SourceId

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """The parts that one set of settings describes. Safe to share between threads.

    A part that could not be made is tried again at the next use; one that was made is kept.
    """

    settings: Settings
    _made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    # One lock a part: an engine that is away must not hold up who does not need it. Parts need each other in one
    # direction only, so the locks cannot wait for each other in a circle.
    _locks: dict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock), repr=False, compare=False
    )
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def engine(self) -> sa.Engine:
        """PostgreSQL, the authority."""
        return self._once("engine", lambda: _engine(self.settings))

    @property
    def access(self) -> AccessService:
        """Who may see what."""
        return self._once("access", lambda: _access(self))

    @property
    def index(self) -> IndexClient:
        """The ranking engine."""
        return self._once("index", lambda: _index(self.settings))

    @property
    def embedding(self) -> EmbeddingProvider:
        """The embedding model."""
        return self._once("embedding", lambda: _embedding(self.settings))

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model, None where rules do the work."""
        return self._once("language_model", lambda: _language_model(self))

    @property
    def store(self) -> ObjectStore:
        """Original bytes and converted texts."""
        return self._once("store", lambda: _store(self.settings))

    @property
    def checked_index(self) -> IndexClient:
        """The ranking engine once its index has been found to fit the settings; asked once a process.

        Raises `IndexMappingError` naming what differs, `EngineUnavailableError` if there is no index yet.
        """
        return self._once("checked_index", lambda: _checked_index(self))

    @property
    def writer(self) -> IndexWriter:
        """What brings the index up to date with SQL."""
        return self._once("writer", lambda: _writer(self))

    @property
    def index_repair(self) -> IndexRepair:
        """What finds out how the index differs from SQL."""
        return self._once("index_repair", lambda: _index_repair(self))

    @property
    def uploads(self) -> UploadBucket:
        """The bucket that sources of kind s3 keep their files in."""
        return self._once("uploads", lambda: _uploads(self.settings))

    @property
    def source_of(self) -> Callable[[SourceId], Source]:
        """What opens a source by its id."""
        return self._once("source_of", lambda: _source_of(self))

    @property
    def converter(self) -> ConversionProcess:
        """The process that reads files of others."""
        return self._once("converter", lambda: _converter(self))

    @property
    def stage_worker(self) -> StageWorker:
        """Single stages of single objects, for the state machine."""
        return self._once("stage_worker", lambda: _stage_worker(self))

    @property
    def intake(self) -> EventIntake:
        """What takes the events of the bucket of uploads."""
        return self._once("intake", lambda: _intake(self))

    @property
    def state_machine(self) -> StateMachine:
        """The state machine that takes objects in."""
        return self._once("state_machine", lambda: _state_machine(self.settings))

    @property
    def hasher(self) -> AuditHasher:
        """Keyed hashes of query texts for the audit trail."""
        return self._once("hasher", lambda: _hasher(self.settings))

    @property
    def search(self) -> SearchService:
        """Search and filter."""
        return self._once("search", lambda: _search(self))

    @property
    def catalog(self) -> DocumentCatalog:
        """Authorised reads of documents."""
        return self._once("catalog", lambda: _catalog(self))

    @property
    def access_sync(self) -> AccessSync:
        """What applies the rights that sources report."""
        return self._once("access_sync", lambda: _access_sync(self))

    @property
    def acl_uploads(self) -> AclUploads:
        """What applies the files of ACLs in the bucket of uploads."""
        return self._once("acl_uploads", lambda: _acl_uploads(self))

    @property
    def access_administration(self) -> AccessAdministration:
        """Grants and aliases, for administrators."""
        return self._once("access_administration", lambda: _access_administration(self))

    @property
    def access_inquiries(self) -> AccessInquiries:
        """Why somebody sees a document or not, and who does, for administrators."""
        return self._once("access_inquiries", lambda: _access_inquiries(self))

    @property
    def scope_previews(self) -> ScopePreviews:
        """What a caller searches in."""
        return self._once("scope_previews", lambda: _scope_previews(self))

    @property
    def verifier(self) -> TokenVerifier:
        """Who asks: verifies bearer tokens."""
        return self._once("verifier", lambda: _verifier(self.settings))

    def ingest_service(self, *, index: bool = True) -> IngestService:
        """Return a service that ingests sources; with `index` off everything stays queued for another process."""
        from shared.ingest.service import IngestService  # noqa: PLC0415

        writer = self.writer if index else None
        return IngestService(self.engine, self.store, self.settings, writer, model=self.language_model)

    def close(self) -> None:
        """Close what holds connections; a part used afterwards is made anew."""
        with self._guard:
            made = dict(self._made)
            self._made.clear()
        if "engine" in made:
            made["engine"].dispose()
        if "index" in made:
            made["index"].close()
        if "converter" in made:
            made["converter"].close()

    def _once(self, name: str, make: Callable[[], T]) -> T:
        try:
            return cast("T", self._made[name])
        except KeyError:
            pass
        with self._guard:
            lock = self._locks[name]
        with lock:
            if name not in self._made:
                self._made[name] = make()
            return cast("T", self._made[name])


_current: Services | None = None
_current_lock = threading.Lock()


def services() -> Services:
    """Return the services of this process, from its environment. Raises `MisconfiguredError`."""
    global _current  # noqa: PLW0603  # one set a process
    with _current_lock:
        if _current is None:
            _current = build(load_settings())
        return _current


def build(settings: Settings, **parts: Any) -> Services:
    """Return another set of services, such as one for an evaluation.

    `parts` replaces members by name (`embedding=...`, `store=...`): what a test or a tool has made itself.
    """
    unknown = [name for name in parts if not isinstance(getattr(Services, name, None), property)]
    if unknown:
        raise MisconfiguredError(f"there is no part called {unknown[0]!r}")
    return Services(settings, dict(parts))


def install(installed: Services) -> None:
    """Make `installed` the services of this process."""
    global _current  # noqa: PLW0603
    with _current_lock:
        _current = installed


def forget() -> Services | None:
    """Return the services of this process, which are no longer its services; the next use makes them anew."""
    global _current
    with _current_lock:
        before, _current = _current, None
    return before


def reset() -> None:
    """Close and forget the services of this process."""
    before = forget()
    if before is not None:
        before.close()


def _engine(settings: Settings) -> sa.Engine:
    from shared.db.engine import make_engine  # noqa: PLC0415

    if not settings.database.iam_auth:
        return make_engine(settings.database)
    import ssl  # noqa: PLC0415

    from shared.runtime import aws  # noqa: PLC0415

    if settings.database.url is None:
        raise MisconfiguredError("database.url is not set; set KI_DATABASE__URL")
    # A token is a password: never over a connection that somebody could read or impersonate.
    tls = ssl.create_default_context()
    return make_engine(settings.database, password=aws.database_password(settings.database.url), tls=tls)


def _index(settings: Settings) -> IndexClient:
    from shared.index.client import connect  # noqa: PLC0415

    if settings.opensearch.auth == "none":
        return connect(settings.opensearch)
    from shared.runtime import aws  # noqa: PLC0415

    return connect(settings.opensearch, credentials=aws.credentials())


def _checked_index(parts: Services) -> IndexClient:
    from shared.index.ensure import check_index  # noqa: PLC0415

    check_index(parts.index, parts.settings.retrieval, embedding_signature=parts.embedding.signature)
    return parts.index


def _embedding(settings: Settings) -> EmbeddingProvider:
    from shared.providers.embedding.factory import make_embedding_provider  # noqa: PLC0415

    return make_embedding_provider(settings)


def _language_model(parts: Services) -> LanguageModel | None:
    from shared.providers.llm.factory import make_language_model  # noqa: PLC0415
    from shared.providers.llm.kept import KeptAnswers  # noqa: PLC0415

    model = make_language_model(parts.settings.llm)
    return None if model is None else KeptAnswers(model, parts.store)


def _store(settings: Settings) -> ObjectStore:
    from shared.providers.storage import FileStore, S3Store  # noqa: PLC0415

    storage = settings.storage
    if storage.kind == "file":
        if not storage.root:
            raise MisconfiguredError("storage.kind is file: set KI_STORAGE__ROOT to a folder")
        return FileStore(Path(storage.root))
    if not storage.bucket:
        raise MisconfiguredError("storage.kind is s3: set KI_STORAGE__BUCKET")
    from shared.runtime import aws  # noqa: PLC0415

    return S3Store(aws.client("s3"), storage.bucket)


def _access(parts: Services) -> AccessService:
    from shared.access.service import AccessService  # noqa: PLC0415

    return AccessService(parts.engine, parts.settings.security)


def _writer(parts: Services) -> IndexWriter:
    from shared.index.writer import IndexWriter  # noqa: PLC0415

    return IndexWriter(parts.engine, parts.checked_index, parts.embedding, parts.settings)


def _index_repair(parts: Services) -> IndexRepair:
    from shared.index.repair import IndexRepair  # noqa: PLC0415

    signature = parts.embedding.signature
    return IndexRepair(parts.engine, parts.checked_index, parts.settings, embedding_signature=signature)


def _uploads(settings: Settings) -> UploadBucket:
    from shared.providers.storage.uploads import UploadBucket  # noqa: PLC0415
    from shared.runtime import aws  # noqa: PLC0415

    name = settings.storage.upload_bucket
    if not name:
        raise MisconfiguredError("storage.upload_bucket is not set; set KI_STORAGE__UPLOAD_BUCKET")
    if name == settings.storage.bucket:
        raise MisconfiguredError("storage.upload_bucket and storage.bucket must be two buckets: one feeds the other")
    return UploadBucket(aws.client("s3"), name)


def _source_of(parts: Services) -> Callable[[SourceId], Source]:
    import sqlalchemy as sa  # noqa: PLC0415

    from shared.db.tables.sources import sources  # noqa: PLC0415
    from shared.sources.config import SourceConfig  # noqa: PLC0415
    from shared.sources.s3 import S3Source  # noqa: PLC0415
    from shared.types import SourceKind  # noqa: PLC0415

    def opened(source_id: SourceId) -> Source:
        with parts.engine.connect() as connection:
            row = connection.execute(sa.select(sources).where(sources.c.id == source_id)).one_or_none()
        if row is None or row.kind != SourceKind.S3:
            raise MisconfiguredError(f"the source {source_id} does not keep its files in the bucket of uploads")
        config = SourceConfig.model_validate(row.config)
        return S3Source(row.name, parts.uploads.client, parts.uploads.name, config, root=f"{source_id}/")

    return opened


def _converter(parts: Services) -> ConversionProcess:
    from shared.ingest.convert.process import conversion_process  # noqa: PLC0415

    return conversion_process(parts.settings.ingest, parts.store)


def _stage_worker(parts: Services) -> StageWorker:
    from shared.ingest.contract import Services as StageServices  # noqa: PLC0415
    from shared.ingest.execution import StageWorker  # noqa: PLC0415
    from shared.ingest.pipeline import stages  # noqa: PLC0415
    from shared.ingest.runner import utc_now  # noqa: PLC0415

    def services_of(source_id: SourceId) -> StageServices:
        source = parts.source_of(source_id)
        return StageServices(
            parts.engine, parts.store, parts.settings, source, parts.converter, model=parts.language_model
        )

    return StageWorker(parts.engine, services_of, stages(parts.settings), now=utc_now)


def _intake(parts: Services) -> EventIntake:
    from shared.ingest.events import EventIntake  # noqa: PLC0415

    return EventIntake(parts.engine, parts.uploads)


def _state_machine(settings: Settings) -> StateMachine:
    from shared.runtime import aws  # noqa: PLC0415
    from shared.runtime.state_machine import StateMachine  # noqa: PLC0415

    if not settings.ingest.state_machine_arn:
        raise MisconfiguredError("ingest.state_machine_arn is not set; set KI_INGEST__STATE_MACHINE_ARN")
    return StateMachine(aws.client("stepfunctions"), settings.ingest.state_machine_arn)


def _acl_uploads(parts: Services) -> AclUploads:
    from shared.ingest.acl_uploads import AclUploads  # noqa: PLC0415

    return AclUploads(parts.access_sync, parts.uploads)


def _access_sync(parts: Services) -> AccessSync:
    from shared.access.sync import AccessSync  # noqa: PLC0415

    return AccessSync(parts.engine)


def _access_administration(parts: Services) -> AccessAdministration:
    from shared.access.administration import AccessAdministration  # noqa: PLC0415

    return AccessAdministration(parts.engine)


def _access_inquiries(parts: Services) -> AccessInquiries:
    from shared.access.inquiries import AccessInquiries  # noqa: PLC0415

    return AccessInquiries(parts.engine, parts.settings.security, parts.settings.identity)


def _hasher(settings: Settings) -> AuditHasher:
    from shared.access.audit import AuditHasher  # noqa: PLC0415

    return AuditHasher.from_key_file(settings.audit.hmac_key_file)


def _search(parts: Services) -> SearchService:
    from shared.search.service import SearchService  # noqa: PLC0415

    return SearchService(parts.engine, parts.access, parts.checked_index, parts.embedding, parts.settings, parts.hasher)


def _catalog(parts: Services) -> DocumentCatalog:
    from shared.catalog.documents import DocumentCatalog  # noqa: PLC0415

    return DocumentCatalog(parts.engine, parts.settings.security, parts.store)


def _scope_previews(parts: Services) -> ScopePreviews:
    from shared.catalog.scope_preview import ScopePreviews  # noqa: PLC0415

    return ScopePreviews(parts.engine, parts.access)


def _verifier(settings: Settings) -> TokenVerifier:
    from shared.runtime.identity import TokenVerifier  # noqa: PLC0415

    return TokenVerifier.of(settings.identity)
