"""`ki status`."""

from __future__ import annotations

from dataclasses import asdict

import click

from local import stack
from local.cli.output import ExitCode, emit, json_option, reporting


@click.command("status")
@json_option
@reporting
def command(*, as_json: bool) -> ExitCode:
    """Show what runs and where; exit code 1 if a part does not answer."""
    parts = stack.status()
    running = bool(parts) and all(part.healthy for part in parts)
    lines = [f"{part.part:<11} {_word(part):<12} {part.url}" for part in parts]
    text = "\n".join(lines) or "the local stack was never started; start it with: ki up"
    emit({"running": running, "parts": [asdict(part) for part in parts]}, as_json=as_json, text=text)
    return ExitCode.DONE if running else ExitCode.NO


def _word(part: stack.PartStatus) -> str:
    if part.pid is None:
        return "stopped"
    return "running" if part.healthy else "not healthy"
