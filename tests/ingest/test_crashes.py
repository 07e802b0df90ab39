"""A worker killed at random moments leaves what an undisturbed one leaves; every file is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import crashes
from bench.crash_files import generate

FILES, KILLS = 150, 5


@pytest.mark.slow
def test_five_killed_workers_leave_what_an_undisturbed_one_leaves(
    make_database: Callable[[], str], opensearch_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    generate(folder, FILES)
    arms = [crashes.environment(make_database(), opensearch_url, tmp_path / f"store{number}") for number in (1, 2)]
    for arm in arms:
        crashes.prepared(arm)
    calm, rough = arms
    crashes.ingest(calm, folder, kills=0, files=FILES)
    run = crashes.ingest(rough, folder, kills=KILLS, files=FILES, seed=7)
    assert run.kills == KILLS
    wanted, found = crashes.end_state(calm), crashes.end_state(rough)
    for part, rows in wanted.items():
        assert found[part] == rows, part
    assert wanted["queue"] == [[0]]
    assert wanted["differences"] == [[0, 0]]
    assert len(wanted["index"]) == len(wanted["chunks"]) > FILES
    stated = crashes.accounted(rough)
    # Two files and a drawing in each mail, a mail in each mail that was passed on.
    assert stated.found == len(wanted["objects"]) == FILES + 3 * 13 + 12
    assert (stated.waiting, stated.tombstoned, stated.held) == (0, 0, 0)
    assert stated.found == stated.indexed + stated.empty + stated.quarantined
    assert stated.empty == FILES // 12
