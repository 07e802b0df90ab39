"""An ingest service over a real database and a folder, with a writer that only remembers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine
from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import index_outbox
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.report import IngestReport
from shared.ingest.service import IngestService
from shared.providers.storage import FileStore
from shared.settings import Settings, load_settings
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments

CONFIG = SourceConfig(
    project=ProjectRef(key="nord", title="Projekt Nord"),
    places=(
        PlaceRule(prefix="a", matter=MatterRef(key="A-1", title="Akte A")),
        PlaceRule(prefix="b", matter=MatterRef(key="B-1", title="Akte B")),
        PlaceRule(
            prefix="c",
            project=ProjectRef(key="sued", title="Projekt Süd"),
            matter=MatterRef(key="C-1", title="Akte C"),
        ),
    ),
)


@dataclass
class RememberingWriter:
    """Marks what is queued as written, and remembers it; stands for the index writer."""

    engine: sa.Engine
    written: list[Any] = field(default_factory=list)

    def drain(self, limit: int) -> None:
        with self.engine.begin() as connection:
            rows = connection.execute(
                sa.select(index_outbox).where(index_outbox.c.done_at.is_(None)).order_by(index_outbox.c.id).limit(limit)
            ).all()
            self.written.extend(rows)
            ids = [row.id for row in rows]
            connection.execute(sa.update(index_outbox).where(index_outbox.c.id.in_(ids)).values(done_at=sa.func.now()))
            versions = [row.version_id for row in rows]
            connection.execute(
                sa.update(document_versions)
                .where(document_versions.c.id.in_(versions))
                .values(indexed_at=sa.func.now())
            )


@dataclass
class Clock:
    """A clock that moves only when somebody waits."""

    time: datetime = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    waits: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.time

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += timedelta(seconds=seconds)


@dataclass
class World:
    """Everything a test of the pipeline touches."""

    engine: sa.Engine
    store: FileStore
    settings: Settings
    writer: RememberingWriter
    clock: Clock
    converter: Any

    def service(self, **changes: Any) -> IngestService:
        return IngestService(
            self.engine,
            self.store,
            changes.get("settings", self.settings),
            changes.get("writer", self.writer),
            converter=changes.get("converter", self.converter),
            model=changes.get("model"),
            now=self.clock.now,
            wait=self.clock.wait,
        )

    def ingest(
        self, files: dict[str, bytes | str], *, name: str = "ablage", config: SourceConfig = CONFIG, **changes: Any
    ) -> IngestReport:
        documents = [
            GivenDocument(path, path, body.encode() if isinstance(body, str) else body) for path, body in files.items()
        ]
        return self.service(**changes).ingest(GivenDocuments(name, documents, config))

    def rows(self, statement: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(statement))

    def scalar(self, statement: Any) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(statement).scalar_one()


@pytest.fixture(scope="session")
def converter() -> Iterator[ConversionProcess]:
    with ConversionProcess(memory_bytes=2**31, output_bytes=2**28) as process:
        yield process


@pytest.fixture
def settings(database_url: str) -> Settings:
    return load_settings({"KI_DATABASE__URL": database_url})


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    made = make_engine(settings.database)
    yield made
    made.dispose()


@pytest.fixture
def world(engine: sa.Engine, settings: Settings, tmp_path: Path, converter: ConversionProcess) -> World:
    return World(engine, FileStore(tmp_path / "store"), settings, RememberingWriter(engine), Clock(), converter)
