"""The list of cases: each has its row in docs/cases.md, and each real file its test."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from tests.ingest.test_realfiles import HOLDS, REASONS

ROOT = Path(__file__).parents[1]
GIVEN = Path(os.environ.get("KI_TEST_SHARED") or ROOT.parent / "shared")
_CASE = re.compile(r"^- \*\*(M\d|RC\d+)", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)`")


def rows() -> dict[str, list[str]]:
    """Return the cells of each row of the table by its case."""
    lines = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row for row in cells[2:]}


def test_every_case_has_its_row_and_no_other_is_there() -> None:
    cases = _CASE.findall((GIVEN / "spec" / "cases.md").read_text(encoding="utf-8"))
    assert len(cases) > 50
    assert sorted(rows()) == sorted(cases)


@pytest.mark.parametrize("case", sorted(rows()))
def test_a_row_says_what_happens_and_names_tests_that_are_there(case: str) -> None:
    _, about, here, tests = rows()[case]
    assert about
    assert here
    named = _TEST.findall(tests)
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_real_file_has_its_test() -> None:
    with (GIVEN / "realfiles" / "index.tsv").open(encoding="utf-8", newline="") as table:
        files = [row["id"] for row in csv.DictReader(table, delimiter="\t")]
    assert len(files) > 40
    assert sorted(files) == sorted([*HOLDS, *REASONS])
