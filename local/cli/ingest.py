"""`ki ingest`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from local.acl_file import AclFile, apply
from local.cli.ingest_report import as_document, as_text
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.cli.sources import source_at
from local.known_folders import remember
from local.product import running_services
from local.source_config import source_config
from shared.types import SourceId


@click.command("ingest")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
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
@json_option
@reporting
def command(
    *, path: Path, name: str, project: str | None, config_file: Path | None, acl_file: Path | None, as_json: bool
) -> ExitCode:
    """Take a folder or a file in; the closing table accounts for every file.

    A folder that is laid out as an evaluation set (corpus.jsonl or sections.jsonl) is taken in record by record.
    """
    services = running_services()
    config = source_config(services.engine, name, project=project, file=config_file)
    snapshot = AclFile.read(acl_file) if acl_file else None
    mirrored: dict[str, Any] = {}

    def mirror(source_id: SourceId) -> None:
        if snapshot is not None:
            mirrored.update(apply(services.engine, source_id, snapshot, as_of=datetime.now(UTC)))

    source = source_at(path, name, config)
    remember(name, path)
    with ingest_progress(name, quiet=as_json) as progress:
        report = services.ingest_service().ingest(source, progress=progress, after_scan=mirror)
    services.index.refresh(services.settings.retrieval.index_name)
    for warning in mirrored.get("warnings", ()):
        note(f"Warning: {warning}")
    document = as_document(report, source=name, acl=mirrored or None)
    emit(document, as_json=as_json, text=as_text(report, source=name))
    return ExitCode.DONE if report.complete else ExitCode.NO
