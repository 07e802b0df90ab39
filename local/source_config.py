"""What `ki ingest` knows of a source: given on the command line, or kept from the last time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from shared.db.tables.sources import sources
from shared.errors import InvalidRequestError
from shared.sources.config import ProjectRef, SourceConfig


def source_config(engine: sa.Engine, name: str, *, project: str | None, file: Path | None) -> SourceConfig:
    """Return the configuration of source `name`: `file` before `project` before what the database holds.

    A source that is new and gets neither has no project: nobody but administrators and those whom an ACL names will
    see its documents.
    """
    if file is not None:
        return _read(file)
    if project is not None:
        return SourceConfig(project=ProjectRef(key=project, title=project))
    with engine.connect() as connection:
        held: Any = connection.execute(sa.select(sources.c.config).where(sources.c.name == name)).scalar_one_or_none()
    return SourceConfig.model_validate(held) if held is not None else SourceConfig()


def _read(file: Path) -> SourceConfig:
    try:
        return SourceConfig.model_validate_json(file.read_bytes())
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidRequestError(f"{file.name}: {wrong}", field="config") from error
