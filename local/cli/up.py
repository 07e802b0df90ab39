"""`ki up`."""

from __future__ import annotations

import click

from local import stack
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.environment import http_url, issuer_url, opensearch_url
from local.ports import LOOPBACK
from shared.errors import IndexMappingError


@click.command("up")
@click.option("--fresh", is_flag=True, help="Empty the data first.")
@json_option
@reporting
def command(*, fresh: bool, as_json: bool) -> ExitCode:
    """Start the local stack and print its addresses.

    Starts only what does not run, and keeps the data. The first start fetches OpenSearch. If the search index does
    not fit the settings, the engines stay up for `ki reindex`, nothing new is served, and the exit code is 1.
    """
    try:
        state = stack.up(fresh=fresh, report=note)
    except IndexMappingError:
        note("PostgreSQL and OpenSearch run; nothing is served with these settings before the index fits them.")
        raise
    addresses = {
        "api": http_url(state),
        "issuer": issuer_url(state),
        "opensearch": opensearch_url(state),
        "postgres": f"postgresql://{LOOPBACK}:{state.ports.postgres}",
    }
    emit(addresses, as_json=as_json, text="\n".join(f"{name:<11} {url}" for name, url in addresses.items()))
    return ExitCode.DONE
