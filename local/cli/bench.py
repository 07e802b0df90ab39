"""`ki bench`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from uuid import uuid4

import click
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from bench import corpus, scope
from bench.conversion import bench_conversion
from bench.indexing import bench_indexing
from bench.report import Row, conversion_rows, handler_row, indexing_row, scope_rows, search_row
from bench.search import TEAM, bench_handler, bench_search
from local import stack
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.sign_in import sign_in
from shared.db.engine import make_engine
from shared.db.migrate import upgrade
from shared.runtime.bootstrap import Services
from shared.settings import Settings, load_settings

_PERSON = "bench@kanzlei.example"
_QUERIES = 40
_WIDE_LIMIT = 20


@click.command("bench")
@click.option("--search", "only_search", is_flag=True, help="Only searching.")
@click.option("--indexing", "only_indexing", is_flag=True, help="Only indexing.")
@click.option("--conversion", "only_conversion", is_flag=True, help="Only the conversion of files; needs no engine.")
@click.option("--scope", "versions", type=click.IntRange(min=1000), help="Only scopes, in a firm of so many versions.")
@click.option(
    "--documents",
    type=click.IntRange(min=20),
    default=corpus.DOCUMENTS,
    show_default=True,
    help="Size of the corpus; each document has some 37 chunks.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Times each item is run.")
@json_option
@reporting
def command(
    *,
    only_search: bool,
    only_indexing: bool,
    only_conversion: bool,
    versions: int | None,
    documents: int,
    rounds: int,
    as_json: bool,
) -> ExitCode:
    """Measure what the product adds: searching and indexing against the bare engine; conversion; how fast a scope is.

    Ratios come from runs in turns on one machine, so they hold on a busy one too; milliseconds do not. The corpus is
    an invented one, in a database and an index of its own, with a stubbed embedding. Exits 1 if a bound is missed.
    """
    rows: list[Row] = []
    details: dict[str, Any] = {}
    everything = not (only_search or only_indexing or only_conversion or versions)
    needs_engines = everything or only_search or only_indexing or versions
    base = load_settings({**(stack.running_environment() if needs_engines else {}), **stack.own_settings()})
    if everything or only_conversion:
        speeds = bench_conversion(base.ingest, rounds=rounds, progress=note)
        details["conversion"] = [asdict(speed) for speed in speeds]
        rows += conversion_rows(speeds)
    if everything or only_search or only_indexing:
        with ingest_progress(corpus.NAME, quiet=as_json) as progress:
            services = corpus.staged(base, documents=documents, progress=progress)
        try:
            if everything or only_search:
                rows += _searching(services, rounds, details)
            if everything or only_indexing:
                note("indexing against raw bulk")
                indexing = bench_indexing(services, rounds=rounds)
                details["indexing"] = asdict(indexing)
                rows.append(indexing_row(indexing))
        finally:
            services.close()
    if everything or versions:
        with _empty_database(base) as url:
            figures = scope.run(versions or scope.FEW_VERSIONS, url=url, progress=note)
        details["scope"] = figures
        rows += scope_rows(figures)
    document = {"rows": [{**asdict(row), "met": row.is_met} for row in rows], **details}
    emit(document, as_json=as_json, text=_table(rows))
    return ExitCode.DONE if all(row.is_met for row in rows) else ExitCode.NO


def _searching(services: Services, rounds: int, details: dict[str, Any]) -> Iterator[Row]:
    queries = corpus.queries(_QUERIES)
    person = sign_in(_PERSON, [TEAM], admin=False)
    caller = services.verifier.caller(f"Bearer {person.token}")
    for limit in (None, _WIDE_LIMIT):
        note(f"searching, limit {limit or 'as it comes'}")
        measured = bench_search(services, caller, queries, rounds=rounds, limit=limit)
        details[f"search_{measured.limit}"] = asdict(measured)
        yield search_row(measured, is_bound=limit is None)
    note("the handler against the service")
    handler = bench_handler(services, person.token, queries, rounds=rounds)
    details["handler"] = asdict(handler)
    yield handler_row(handler)


@contextmanager
def _empty_database(base: Settings) -> Iterator[str]:
    """Hand out the address of a migrated database of the running cluster; it is dropped afterwards."""
    name = f"ki_bench_{uuid4().hex[:8]}"
    own = sa.engine.make_url(base.database.url or "").set(database=name).render_as_string(hide_password=False)
    owner = make_engine(base.database)
    try:
        _outside_transactions(owner, f'create database "{name}"')
        try:
            upgrade(own)
            yield own
        finally:
            _outside_transactions(owner, f'drop database if exists "{name}" with (force)')
    finally:
        owner.dispose()


def _outside_transactions(engine: sa.Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(statement)


def _table(rows: list[Row]) -> str:
    table = Table("what", "ours", "bare", "measured", "bound", "")
    for row in rows:
        bound = "" if row.bound is None else f"{row.bound:g}{row.unit}"
        measured = f"{row.measured:.2f}{row.unit}{row.spread}"
        table.add_row(row.what, row.ours, row.bare, measured, bound, "" if row.is_met else "missed")
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()
