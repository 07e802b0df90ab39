"""The command group `ki`.

A command's module is imported when the command runs, so that `ki --help` stays quick. Each module defines
`command`, a click command that ends through `local.cli.output.reporting` and takes `--json`.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click


class _Entry(NamedTuple):
    name: str
    module: str
    summary: str


COMMANDS = (
    _Entry("up", "local.cli.up", "Start the local stack; starts only what does not run, keeps the data."),
    _Entry("down", "local.cli.down", "Stop the local stack; the data stay."),
    _Entry("status", "local.cli.status", "Show what runs and where, and what of each source is in."),
    _Entry("token", "local.cli.token", "Print a token of the local issuer."),
    _Entry("ingest", "local.cli.ingest", "Take a folder or a file in."),
    _Entry("acl", "local.cli.acl", "Mirror what a source says about who may read its objects."),
    _Entry("grant", "local.cli.grant", "Allow or deny somebody on a project or a document."),
    _Entry("grants", "local.cli.grants", "List the grants and walls of a project or a document."),
    _Entry("alias", "local.cli.alias", "Let two principals stand for each other; list and remove that."),
    _Entry("quarantine", "local.cli.quarantine", "List, look at and retry what could not be taken in."),
    _Entry("reindex", "local.cli.reindex", "Build the search index anew and swap it in; drop old ones."),
    _Entry("search", "local.cli.search", "Find passages, as one person sees them."),
    _Entry("filter", "local.cli.filter", "List documents by their facts."),
    _Entry("explain", "local.cli.explain", "Say why a person sees a document, or why not."),
    _Entry("who", "local.cli.who", "Say who sees a document."),
    _Entry("leakcheck", "local.cli.leakcheck", "Look for what leaves from behind walls of a running instance."),
    _Entry("audit", "local.cli.audit", "Seal, verify and export the audit trail."),
    _Entry("get", "local.cli.get", "Print a document's text."),
    _Entry("eval", "local.cli.eval", "Measure retrieval quality."),
    _Entry("bench", "local.cli.bench", "Measure speed against the bare engines."),
    _Entry("demo", "local.cli.demo", "The whole product in one go, on an invented firm."),
)


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        for entry in COMMANDS:
            if entry.name == cmd_name:
                command: click.Command = importlib.import_module(entry.module).command
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.summary) for entry in COMMANDS])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Knowledge Index on one machine.

    Exit codes: 0 done, 1 the answer is "no" or some inputs failed, 2 wrong use, 3 an engine is away.
    """


if __name__ == "__main__":
    main()
