"""`ki reindex`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local import stack
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.product import services_on_engines
from local.state import Part
from shared.index.reindex import Progress as ReindexProgress
from shared.index.reindex import ReindexReport, drop_old, reindex
from shared.runtime.bootstrap import Services


@click.command("reindex")
@click.option("--drop-old", is_flag=True, help="Build nothing: delete the old indices that earlier runs kept.")
@json_option
@reporting
def command(*, drop_old: bool, as_json: bool) -> ExitCode:
    """Build the search index anew from the database, beside the live one, and swap it in.

    Needed when `ki up` says that the index does not fit the settings: another model, width or analyser. Searches go
    on meanwhile. The old index is kept until `ki reindex --drop-old`. A run that was stopped goes on where it was.
    """
    services = services_on_engines()
    try:
        return _dropped(services, as_json=as_json) if drop_old else _rebuilt(services, as_json=as_json)
    finally:
        services.close()


def _rebuilt(services: Services, *, as_json: bool) -> ExitCode:
    with _bar(quiet=as_json) as progress:
        report = reindex(services.engine, services.index, services.embedding, services.settings, progress=progress)
    if any(part.part is Part.SERVE and part.pid is not None for part in stack.status()):
        # A server that was started with other settings must not search the new index with them.
        stack.up(report=note)
    emit(asdict(report), as_json=as_json, text=_text(report))
    return ExitCode.DONE


def _dropped(services: Services, *, as_json: bool) -> ExitCode:
    dropped = drop_old(services.engine, services.index, services.settings)
    text = "\n".join(f"dropped {name}" for name in dropped) or "there is no old index"
    emit({"dropped": dropped}, as_json=as_json, text=text)
    return ExitCode.DONE


def _text(report: ReindexReport) -> str:
    lines = [
        f"live     {report.index}",
        f"written  {report.versions} versions{', completing an earlier run' if report.resumed else ''}",
        f"compared {report.rows_compared} rows, all as in the database",
        f"moved    {report.queued} versions meanwhile",
        *(f"kept     {name} (ki reindex --drop-old deletes it)" for name in report.previous),
    ]
    if report.waiting:
        lines.append(f"waiting  {report.waiting} entries of the outbox are open; the next ki ingest takes them")
    return "\n".join(lines)


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Callable[[ReindexProgress], None]]:
    """Give a callback that moves a bar; one that does nothing when `quiet`."""
    if quiet:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)

        def move(progress: ReindexProgress) -> None:
            bar.update(task, description=progress.phase.value, completed=progress.done, total=progress.total)

        yield move
