"""`ki status`."""

from __future__ import annotations

from dataclasses import asdict

import click

from local import stack
from local.cli.completeness import as_text
from local.cli.output import ExitCode, emit, json_option, reporting
from local.product import running_services
from shared.ingest.completeness import SourceCompleteness, completeness


@click.command("status")
@json_option
@reporting
def command(*, as_json: bool) -> ExitCode:
    """Show what runs and where, and what of each source is in; exit code 1 if a part does not answer."""
    parts = stack.status()
    running = bool(parts) and all(part.healthy for part in parts)
    lines = [f"{part.part:<11} {_word(part):<12} {part.url}" for part in parts]
    sources = _completeness() if running else None
    if sources:
        lines += ["", as_text(sources)]
    text = "\n".join(lines) or "the local stack was never started; start it with: ki up"
    document = {
        "running": running,
        "parts": [asdict(part) for part in parts],
        "sources": None if sources is None else [source.to_json() for source in sources],
    }
    emit(document, as_json=as_json, text=text)
    return ExitCode.DONE if running else ExitCode.NO


def _completeness() -> list[SourceCompleteness]:
    with running_services().engine.connect() as connection:
        return completeness(connection)


def _word(part: stack.PartStatus) -> str:
    if part.pid is None:
        return "stopped"
    return "running" if part.healthy else "not healthy"
