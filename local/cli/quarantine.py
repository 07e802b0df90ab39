"""`ki quarantine`: what could not be taken in, why, and another try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import sqlalchemy as sa

from local.cli.ingest_report import as_document
from local.cli.ingest_report import as_text as report_text
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.cli.sources import source_at
from local.known_folders import place_of
from local.product import running_services
from local.source_config import source_config
from shared.db.tables.ingest import quarantine
from shared.db.tables.sources import source_objects, sources
from shared.errors import NotVisibleError
from shared.providers.storage import original_key
from shared.runtime.bootstrap import Services
from shared.types import SourceObjectId


@click.group("quarantine")
def command() -> None:
    """List, look at and retry what could not be taken in."""


@command.command("list")
@click.option("--source", "name", metavar="NAME", help="Only this source.")
@json_option
@reporting
def list_command(*, name: str | None, as_json: bool) -> ExitCode:
    """Show every quarantined object with the stage that stopped it and the reason."""
    rows = _quarantined(running_services().engine, name)
    lines = [f"{row['source']}/{row['path']}\n    {row['stage']}: {row['reason']} ({row['error']})" for row in rows]
    emit(rows, as_json=as_json, text="\n".join(lines) or "Nothing is quarantined.")
    return ExitCode.DONE


@command.command("show")
@click.argument("path")
@click.option("--source", "name", metavar="NAME", help="Only in this source.")
@json_option
@reporting
def show_command(*, path: str, name: str | None, as_json: bool) -> ExitCode:
    """Show all that is known of one quarantined object: PATH as `ki quarantine list` shows it, or its id."""
    services = running_services()
    rows = [
        {**row, "original": _original(services, row["sha256"])}
        for row in _quarantined(services.engine, name)
        if path in {row["path"], f"{row['source']}/{row['path']}", str(row["source_object_id"])}
    ]
    if not rows:
        raise NotVisibleError(f"nothing at {path!r} is quarantined; ki quarantine list shows what is")
    emit(rows, as_json=as_json, text="\n\n".join(map(_shown, rows)))
    return ExitCode.DONE


@command.command("retry")
@click.option("--source", "name", metavar="NAME", help="Only this source.")
@json_option
@reporting
def retry_command(*, name: str | None, as_json: bool) -> ExitCode:
    """Try what is quarantined again, from the stage that stopped it."""
    services = running_services()
    by_source: dict[str, list[SourceObjectId]] = {}
    for row in _quarantined(services.engine, name):
        by_source.setdefault(row["source"], []).append(SourceObjectId(row["source_object_id"]))
    documents, texts, complete = [], [], True
    for source_name, objects in sorted(by_source.items()):
        place = place_of(source_name)
        if place is None:
            note(f"Where {source_name} lies is not known here; run ki ingest PATH --source {source_name} once.")
            complete = False
            continue
        config = source_config(services.engine, source_name, project=None, file=None)
        with ingest_progress(source_name, quiet=as_json) as progress:
            service = services.ingest_service()
            report = service.retry(source_at(place, source_name, config), objects, progress=progress)
        documents.append(as_document(report, source=source_name, acl=None))
        texts.append(report_text(report, source=source_name))
        complete = complete and report.complete
    emit(documents, as_json=as_json, text="\n".join(texts) or "Nothing to retry.")
    return ExitCode.DONE if complete else ExitCode.NO


def _shown(row: Mapping[str, Any]) -> str:
    lines = (
        ("stage", row["stage"]),
        ("reason", row["reason"]),
        ("error", row["error"]),
        ("tries", row["attempts"]),
        ("since", row["created_at"].isoformat(sep=" ", timespec="seconds")),
        ("kind", row["mime"] or "not known"),
        ("bytes", "not known" if row["size_bytes"] is None else row["size_bytes"]),
        ("sha256", row["sha256"] or "never read"),
        ("original", row["original"] or "not stored; it lies at its source only"),
    )
    return "\n".join([f"{row['source']}/{row['path']}", *(f"  {label:<9} {value}" for label, value in lines)])


def _original(services: Services, sha256: str | None) -> str | None:
    """Return where the original bytes are kept, None if they were never stored."""
    if sha256 is None or not services.store.exists(original_key(sha256)):
        return None
    storage = services.settings.storage
    where = storage.root if storage.kind == "file" else f"s3://{storage.bucket}"
    return f"{where}/{original_key(sha256)}"


def _quarantined(engine: sa.Engine, name: str | None) -> list[Mapping[str, Any]]:
    statement = (
        sa.select(
            sources.c.name.label("source"),
            source_objects.c.path,
            source_objects.c.mime,
            source_objects.c.size_bytes,
            quarantine.c.sha256,
            quarantine.c.stage,
            quarantine.c.error,
            quarantine.c.reason,
            quarantine.c.attempts,
            quarantine.c.created_at,
            quarantine.c.source_object_id,
        )
        .join(source_objects, source_objects.c.id == quarantine.c.source_object_id)
        .join(sources, sources.c.id == source_objects.c.source_id)
        # What is gone at its source is no longer waited for.
        .where(source_objects.c.deleted_at.is_(None))
        .order_by(sources.c.name, source_objects.c.path)
    )
    if name is not None:
        statement = statement.where(sources.c.name == name)
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(statement).mappings()]
