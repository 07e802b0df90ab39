"""`ki ingest`."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa

from local.acl_file import AclFile, apply
from local.cli.ingest_report import as_document, as_text
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.cli.sources import placed_config, source_at
from local.product import running_services
from local.source_config import source_config
from shared.access.audit import ALLOWED, AuditEntry, insertion
from shared.types import SourceId


@click.command("ingest")
@click.argument("path")
@click.option("--source", "name", required=True, metavar="NAME", help="The source that the files belong to.")
@click.option("--project", metavar="KEY", help="The project of files that the configuration places nowhere else.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="Projects and matters by folder, include and exclude rules (JSON).",
)
@click.option(
    "--acl",
    "acl_file",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="What the source says about who may read its objects (JSON).",
)
@click.option("--changed-only", is_flag=True, help="Do not open files that look unchanged (size, times, file id).")
@click.option("--allow-deletes", is_flag=True, help="What is not there any more is gone, however much it is.")
@json_option
@reporting
def command(
    *,
    path: str,
    name: str,
    project: str | None,
    config_file: Path | None,
    acl_file: Path | None,
    changed_only: bool,
    allow_deletes: bool,
    as_json: bool,
) -> ExitCode:
    """Take a folder, a file or a bucket (s3://bucket/prefix) in; the closing table accounts for every file.

    What a folder no longer holds is gone for everybody. If that is more than half of 20 files or more, or all, it is
    believed after three scans in a row, or with --allow-deletes. A part of a source that was taken in before keeps its
    place in it and decides about itself only. A folder that is laid out as an evaluation set (corpus.jsonl or
    sections.jsonl) is taken in record by record.
    """
    services = running_services()
    config = placed_config(path, source_config(services.engine, name, project=project, file=config_file))
    snapshot = AclFile.read(acl_file) if acl_file else None
    mirrored: dict[str, Any] = {}

    def mirror(source_id: SourceId) -> None:
        if snapshot is not None:
            mirrored.update(apply(services.engine, source_id, snapshot, as_of=datetime.now(UTC)))

    source = source_at(path, name, config)
    if allow_deletes:
        _audit(services.engine, name)
    with ingest_progress(name, quiet=as_json) as progress:
        report = services.ingest_service().ingest(
            source,
            opens_all=not changed_only,
            allow_deletes=allow_deletes,
            progress=progress,
            after_scan=mirror,
        )
    services.index.refresh(services.settings.retrieval.index_name)
    for warning in mirrored.get("warnings", ()):
        note(f"Warning: {warning}")
    document = as_document(report, source=name, acl=mirrored or None)
    emit(document, as_json=as_json, text=as_text(report, source=name))
    return ExitCode.DONE if report.complete else ExitCode.NO


def _audit(engine: sa.Engine, source: str) -> None:
    """Write down who said that whatever is missing is gone, before it goes."""
    setter = f"local:{getpass.getuser()}"
    entry = AuditEntry(
        action="deletes_allowed", subject=setter, principals=(), outcome=ALLOWED, detail={"source": source}
    )
    with engine.begin() as connection:
        connection.execute(insertion(entry))
