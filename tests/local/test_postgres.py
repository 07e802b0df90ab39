"""The cluster is made whole, comes back after a kill, and needs neither root nor a public folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from local import postgres
from local.paths import CHECKOUT
from local.ports import choose_port
from local.postgres import PostgresCluster
from local.processes import StartError, mark_of
from local.waiting import wait_until


@pytest.fixture
def cluster(tmp_path):
    # pytest's folders are closed to others, as a checkout below root's home is.
    made = PostgresCluster(tmp_path / "pg" / "data", tmp_path / "pg.log", choose_port(), throwaway=True)
    yield made
    postgres.shut_down(made)


def test_it_never_runs_as_root_and_keeps_its_data_to_itself(cluster):
    mark = postgres.start(cluster)
    assert psutil.Process(mark.pid).uids().effective != 0
    assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
    assert stat.S_IMODE(cluster.password_file.stat().st_mode) == 0o600


def test_committed_rows_survive_kill_9(cluster):
    first = postgres.start(cluster)
    postgres.execute(cluster, "CREATE TABLE kept AS SELECT 7 AS n")
    postgres.execute(cluster, "CHECKPOINT")
    os.kill(first.pid, signal.SIGKILL)
    second = postgres.start(cluster)
    assert second != first
    assert postgres.execute(cluster, "SELECT n FROM kept") == [(7,)]


def test_a_stale_pid_file_that_names_a_living_stranger_does_no_harm(cluster):
    first = postgres.start(cluster)
    os.kill(first.pid, signal.SIGKILL)
    assert wait_until(lambda: mark_of(first.pid) is None, timeout_s=10)
    pid_file = cluster.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert postgres.start(cluster) is not None
    assert postgres.answers(cluster)


def test_a_folder_left_half_made_is_made_again(cluster):
    draft = cluster.data.parent / "data.draft"
    (draft / "base").mkdir(parents=True)
    cluster.data.mkdir()
    (cluster.data / "half").write_text("")
    postgres.start(cluster)
    assert postgres.answers(cluster)
    assert not draft.exists()


def test_a_stopped_cluster_leaves_no_process(cluster):
    mark = postgres.start(cluster)
    family = [mark.pid, *(child.pid for child in psutil.Process(mark.pid).children(recursive=True))]
    postgres.shut_down(cluster)
    assert [pid for pid in family if mark_of(pid) is not None] == []
    assert not (cluster.data / "postmaster.pid").exists()


def test_a_server_that_cannot_start_says_why(cluster):
    postgres.start(cluster)
    postgres.shut_down(cluster)
    (cluster.data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(StartError, match="no_such_setting"):
        postgres.start(cluster)


def test_an_ordinary_user_starts_it_too():
    with tempfile.TemporaryDirectory(prefix="ki-ordinary-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, 65534, 65534)
        program = f"""
from pathlib import Path
from local import postgres
from local.ports import choose_port
folder = Path({name!r})
cluster = postgres.PostgresCluster(folder / "data", folder / "log", choose_port(), throwaway=True)
postgres.start(cluster)
print(postgres.execute(cluster, "SELECT current_user"))
postgres.shut_down(cluster)
"""
        done = subprocess.run(
            [*_as_ordinary_user(), sys.executable, "-B", "-c", program],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.stdout.strip(), done.returncode) == ("[('ki',)]", 0), done.stderr


def _as_ordinary_user():
    """For root: the user nobody, who may still read this Python wherever it is installed."""
    if os.geteuid() != 0:
        return []
    capabilities = [f"--{kind}=-all,+dac_override" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *capabilities, "--"]
