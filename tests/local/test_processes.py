"""A process is known by its id and its start, found by its folder, and stopped with all it started."""

from __future__ import annotations

import os
import signal
import sys

import psutil
import pytest

from local.processes import ProcessMark, RunAs, StartError, find_by_argument, is_alive, mark_of, spawn, stop
from local.waiting import wait_until

SLEEPER = "import signal, sys; print('ready', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER
FAMILY = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n" + SLEEPER


@pytest.fixture
def run(tmp_path):
    marks = []

    def start(program, *arguments, run_as=None):
        log = tmp_path / f"{len(marks)}.log"
        argv = [sys.executable, "-c", program, *arguments]
        mark = spawn(argv, log=log, environment=dict(os.environ), working_folder=tmp_path, run_as=run_as)
        marks.append(mark)
        assert wait_until(lambda: "ready" in log.read_text(), timeout_s=10)
        return mark

    yield start
    for mark in marks:
        stop(mark, grace_s=0, polite=signal.SIGKILL)


def test_a_spawned_process_is_nobodys_child_and_has_its_own_session(run):
    mark = run(SLEEPER)
    process = psutil.Process(mark.pid)
    assert process.ppid() != os.getpid()
    assert os.getsid(mark.pid) == mark.pid


def test_the_same_id_with_another_start_is_another_process(run):
    mark = run(SLEEPER)
    reused = ProcessMark(mark.pid, mark.started - 60)
    stop(reused, grace_s=0, polite=signal.SIGKILL)
    assert (is_alive(mark), is_alive(reused)) == (True, False)


def test_a_process_is_found_by_exactly_its_argument(run):
    mark = run(SLEEPER, "--state=/somewhere/a")
    run(SLEEPER, "--state=/somewhere/ab")
    assert find_by_argument("--state=/somewhere/a", program="python") == [mark]
    assert find_by_argument("--state=/somewhere/a", program="postgres") == []


def test_one_that_ignores_the_polite_signal_is_killed(run):
    mark = run(STUBBORN)
    stop(mark, grace_s=0.2, polite=signal.SIGTERM)
    assert not is_alive(mark)


def test_what_it_started_ends_with_it(run):
    mark = run(FAMILY)
    (child,) = psutil.Process(mark.pid).children()
    stop(mark, grace_s=0.2, polite=signal.SIGTERM)
    assert mark_of(child.pid) is None


def test_a_program_that_is_not_there_says_so(tmp_path):
    with pytest.raises(StartError, match="/not/there"):
        spawn(["/not/there"], log=tmp_path / "log", environment={}, working_folder=tmp_path)


def test_a_program_that_ends_at_once_is_no_process(tmp_path):
    log = tmp_path / "log"
    argv = [sys.executable, "-c", "raise SystemExit('no such setting')"]
    try:
        mark = spawn(argv, log=log, environment={}, working_folder=tmp_path)
    except StartError as error:
        assert "ended at once" in str(error)  # noqa: PT017 - either is right, depending on who is quicker
    else:
        assert wait_until(lambda: not is_alive(mark), timeout_s=10)


def test_a_long_log_makes_room(tmp_path, run):
    log = tmp_path / "0.log"
    log.write_bytes(b"x" * 5_000_001)
    run(SLEEPER)
    assert log.stat().st_size < 100
    assert (tmp_path / "0.log.1").stat().st_size == 5_000_001


@pytest.mark.parametrize("user", [None, RunAs(os.geteuid(), os.getegid())])
def test_a_process_runs_as_the_user_it_is_given(run, user):
    if user is not None and os.geteuid() != 0:
        user = None  # only root may choose
    mark = run(SLEEPER, run_as=user)
    assert psutil.Process(mark.pid).uids().real == os.geteuid()
