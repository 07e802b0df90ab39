"""Detached processes: started so that they outlive the caller, known again, and stopped.

A process is known by its id and its start time, so an id that the system has given to another process is never
taken for ours, let alone killed. It is also known by one argument of its command line that names its data
folder, so a part is found again when the record of it is lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from local.waiting import wait_until

# The launcher starts the program in a session of its own and leaves at once, so the program is nobody's child:
# no terminal signal reaches it, and no zombie of it stays with the caller.
_LAUNCHER = """
import json, subprocess, sys
job = json.load(sys.stdin)
with open(job["log"], "ab") as log:
    child = subprocess.Popen(job["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=job["cwd"],
                             env=job["env"], start_new_session=True, user=job["uid"], group=job["gid"],
                             extra_groups=job["groups"])
print(child.pid)
child.returncode = 0
"""

_LOG_BYTES = 5_000_000  # a longer log makes room for a new one when its part starts

# The start is counted from the boot time, which the system corrects by a second now and then.
_START_TOLERANCE_S = 2.0


class StartError(RuntimeError):
    """A part of the local stack could not be started."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process for as long as the machine runs: its id, and its start in seconds since the epoch."""

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class RunAs:
    """The system user a program runs as; the command prefix gives it what it needs on top."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    working_folder: Path,
    run_as: RunAs | None = None,
) -> ProcessMark:
    """Start a program detached, its output appended to `log`, and return its mark.

    Raises `StartError` when the program does not start or has ended before it could be looked at.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
    # A prefix (setpriv) changes the user itself, because it must still be root when it starts.
    user = None if run_as is None or run_as.prefix else run_as
    job = {
        "argv": [*(run_as.prefix if run_as else ()), *argv],
        "log": str(log),
        "cwd": str(working_folder),
        "env": dict(environment),
        "uid": user.uid if user else None,
        "gid": user.gid if user else None,
        "groups": [] if user else None,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise StartError(f"cannot start {argv[0]}: {reason}")
    mark = mark_of(int(done.stdout))
    if mark is None:
        raise StartError(f"{argv[0]} ended at once; see {log}\n{tail(log)}")
    return mark


def mark_of(pid: int) -> ProcessMark | None:
    """Return the mark of a running process, None if there is none (a zombie is none)."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessMark(pid, process.create_time())
    except psutil.Error:
        return None


def is_alive(mark: ProcessMark | None) -> bool:
    """Tell whether this very process still runs."""
    if mark is None:
        return False
    now = mark_of(mark.pid)
    return now is not None and abs(now.started - mark.started) <= _START_TOLERANCE_S


def find_by_argument(argument: str, *, program: str) -> list[ProcessMark]:
    """Return the running processes that carry exactly this argument and whose program name has `program` in it.

    Only the heads: a process whose parent matches as well is a worker of it and is left out.
    """
    found: dict[int, tuple[int, float]] = {}
    for process in psutil.process_iter(["pid", "ppid", "cmdline", "create_time", "status"]):
        info = process.info
        command = info["cmdline"] or []
        if info["status"] == psutil.STATUS_ZOMBIE or argument not in command[1:]:
            continue
        if program in Path(command[0]).name.lower():
            found[info["pid"]] = (info["ppid"], info["create_time"])
    return [ProcessMark(pid, started) for pid, (parent, started) in found.items() if parent not in found]


def stop(mark: ProcessMark, *, grace_s: float, polite: int) -> None:
    """End one process and all it started: first with the signal `polite`, after `grace_s` with SIGKILL.

    Returns when every one of them is gone. Does nothing for a mark whose process has ended.
    """
    if not is_alive(mark):
        return
    try:
        head = psutil.Process(mark.pid)
        family = head.children(recursive=True)
        head.send_signal(polite)
    except psutil.NoSuchProcess:
        return
    members = [head, *family]
    if wait_until(lambda: not any(_runs(member) for member in members), timeout_s=grace_s):
        return
    for member in members:
        _kill(member)
    if not wait_until(lambda: not any(_runs(member) for member in members), timeout_s=10):
        raise StartError(f"process {mark.pid} does not end")


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def tail(log: Path, *, lines: int = 15) -> str:
    """Return the last lines of a log, for a message that says why a part did not start."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:])
