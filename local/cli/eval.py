"""`ki eval`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from evals import citations
from evals.corpora import CORPORA, evaluation_folder, query_sets
from evals.run import RunScores, evaluate
from evals.stage import stage_set
from local import stack
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from shared.errors import InvalidRequestError
from shared.settings import load_settings


@click.command("eval")
@click.option("--set", "names", multiple=True, type=click.Choice(CORPORA), help="Only this set; repeatable.")
@click.option("--citations", "of_citations", is_flag=True, help="Measure instead how well citations are found.")
@json_option
@reporting
def command(*, names: tuple[str, ...], of_citations: bool, as_json: bool) -> ExitCode:
    """Measure retrieval quality: each leg alone and fused, on sets in databases and indices of their own.

    The first run takes the sets in, which embeds some 28,000 passages: half an hour on two cores. With --citations
    no engine is needed: statutes and cases in ten decisions, beside a published extractor, in seconds.
    """
    try:
        folder = evaluation_folder()
    except FileNotFoundError as error:
        raise InvalidRequestError(str(error), field="KI_TEST_SHARED") from error
    if of_citations:
        found = citations.compare(folder / citations.FOLDER)
        emit([{"run": name, **asdict(one)} for name, one in found], as_json=as_json, text=_citation_table(found))
        return ExitCode.DONE
    base = load_settings(stack.running_environment())
    rows: list[RunScores] = []
    for name in names or CORPORA:
        with ingest_progress(name, quiet=as_json) as progress:
            staged = stage_set(base, folder, name, progress=progress)
        if not staged.report.complete:
            note(f"{name}: not every record is in: {staged.report.counts()}")
        for questions in query_sets(folder, name):
            rows.extend(evaluate(staged, questions, progress=note))
    emit([_row(row) for row in rows], as_json=as_json, text=_table(rows))
    return ExitCode.DONE


def _row(row: RunScores) -> dict[str, Any]:
    return {"set": row.query_set, "run": row.run, "unit": row.unit, **asdict(row.scores)}


def _table(rows: list[RunScores]) -> str:
    table = Table("set", "unit", "run", "queries", "nDCG@10", "MRR@10", "R@100")
    for row in rows:
        scores = row.scores
        figures = (f"{value:.3f}" for value in (scores.ndcg_10, scores.mrr_10, scores.recall_100))
        table.add_row(row.query_set, row.unit, row.run, str(scores.queries), *figures)
    return _printed(table)


def _citation_table(rows: list[tuple[str, citations.Figures]]) -> str:
    table = Table("run", "kind", "found", "gold", "overlap P", "overlap R", "exact P", "exact R")
    for name, one in rows:
        figures = (one.overlap_precision, one.overlap_recall, one.exact_precision, one.exact_recall)
        table.add_row(name, one.kind, str(one.found), str(one.gold), *(f"{value:.3f}" for value in figures))
    return _printed(table)


def _printed(table: Table) -> str:
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()
