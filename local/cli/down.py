"""`ki down`."""

from __future__ import annotations

import click

from local import stack
from local.cli.output import ExitCode, emit, json_option, reporting


@click.command("down")
@json_option
@reporting
def command(*, as_json: bool) -> ExitCode:
    """Stop the local stack; the data stay."""
    stopped = [part.value for part in stack.down()]
    emit({"stopped": stopped}, as_json=as_json, text=f"stopped: {', '.join(stopped) or 'nothing ran'}")
    return ExitCode.DONE
