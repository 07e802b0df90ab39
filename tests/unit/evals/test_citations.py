import json

import pytest
from click.testing import CliRunner

from evals.citations import FOLDER, Figures, Judged, Kind, compare, score
from evals.corpora import evaluation_folder
from local.cli.eval import command

FIGURES = ("overlap_precision", "overlap_recall", "exact_precision", "exact_recall")


def test_a_span_counts_when_it_overlaps_and_again_when_both_ends_are_right() -> None:
    text = "abcdefghij"
    gold = {Kind.LAW: frozenset({(0, 2), (4, 6), (8, 9)}), Kind.CASE: frozenset[tuple[int, int]]()}
    found = {Kind.LAW: frozenset({(0, 2), (5, 8), (9, 10), (3, 4)}), Kind.CASE: frozenset[tuple[int, int]]()}
    law, case, every = score(lambda _: found, [Judged("a", text, gold)])
    # Two of four found touch a gold span, two of three gold spans are touched; one is exact.
    assert law == Figures(Kind.LAW, 4, 3, 2 / 4, 2 / 3, 1 / 4, 1 / 3)
    assert (case.found, case.gold, case.overlap_precision) == (0, 0, 0.0)
    assert (every.found, every.gold, every.exact_precision) == (4, 3, 1 / 4)


THEIRS = "legal-reference-extraction"


@pytest.fixture(scope="module")
def figures() -> dict[tuple[str, str], Figures]:
    return {(name, one.kind): one for name, one in compare(evaluation_folder() / FOLDER)}


@pytest.mark.parametrize("kind", ["law", "all"])
@pytest.mark.parametrize("figure", FIGURES)
def test_citations_are_found_better_than_by_the_published_extractor(
    figures: dict[tuple[str, str], Figures], kind: str, figure: str
) -> None:
    assert getattr(figures["ours", kind], figure) > getattr(figures[THEIRS, kind], figure)


def test_cases_are_found_more_often_and_more_exactly(figures: dict[tuple[str, str], Figures]) -> None:
    ours, theirs = figures["ours", "case"], figures[THEIRS, "case"]
    assert ours.overlap_recall > theirs.overlap_recall + 0.1
    assert ours.exact_precision > theirs.exact_precision + 0.3
    assert ours.exact_recall > theirs.exact_recall + 0.3
    # Twelve finds have no gold span: docs/measurements.md says what they are.
    assert ours.overlap_precision > 0.91


def test_the_command_states_every_figure_without_any_engine() -> None:
    done = CliRunner().invoke(command, ["--citations", "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    assert [(row["run"], row["kind"]) for row in rows] == [
        (run, kind) for run in ("ours", THEIRS) for kind in ("law", "case", "all")
    ]
    table = CliRunner().invoke(command, ["--citations"]).stdout
    assert all(f"{row[figure]:.3f}" in table for row in rows for figure in FIGURES)
