"""Real engines for tests: one PostgreSQL cluster and one OpenSearch node per test session, started when first asked for.

They live in one temporary folder that names the session's process, so a session that was killed is cleaned up
by the next one. An engine that does not start fails the tests that need it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local import opensearch, postgres
from local.java import find_jdk
from local.opensearch import OpenSearchNode
from local.paths import CHECKOUT, distributions_folder
from local.ports import choose_port
from local.postgres import PostgresCluster
from local.processes import ProcessMark, is_alive, mark_of

_PREFIX = "ki-test-"


@contextmanager
def by_hand() -> Iterator[tuple[str, str]]:
    """Both engines outside pytest, as (PostgreSQL address of an empty database, OpenSearch address)."""
    with temporary_folder() as folder, running_postgres(folder) as cluster, running_opensearch(folder) as node:
        yield cluster.url(), node.url


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process that an unprivileged server may enter; gone at the end."""
    _sweep()
    mark = mark_of(os.getpid())
    assert mark is not None
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{mark.pid}-{mark.started:.0f}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        _clear(folder)


@contextmanager
def running_postgres(folder: Path) -> Iterator[PostgresCluster]:
    """A running throwaway cluster: fsync off, one role, no migrated database yet."""
    cluster = _cluster(folder, choose_port())
    cluster.data.parent.mkdir()
    cluster.data.parent.chmod(0o755)
    postgres.start(cluster)
    try:
        yield cluster
    finally:
        postgres.shut_down(cluster)


@contextmanager
def running_opensearch(folder: Path) -> Iterator[OpenSearchNode]:
    """A running node with k-NN and a heap of 512 MB."""
    http_port = choose_port()
    node = _node(folder, http_port, choose_port(taken=(http_port,)))
    opensearch.start(node, distributions=distributions_folder(CHECKOUT), jdk=find_jdk())
    try:
        yield node
    finally:
        opensearch.shut_down(node)


@pytest.fixture(scope="session")
def engines_folder() -> Iterator[Path]:
    """The session's folder for its engines."""
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres_cluster(engines_folder: Path) -> Iterator[PostgresCluster]:
    """The session's cluster."""
    with running_postgres(engines_folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def opensearch_node(engines_folder: Path) -> Iterator[OpenSearchNode]:
    """The session's node; it is shared, so name your indices uniquely."""
    with running_opensearch(engines_folder) as node:
        yield node


@pytest.fixture(scope="session")
def opensearch_url(opensearch_node: OpenSearchNode) -> str:
    """The HTTP address of the session's node."""
    return opensearch_node.url


@pytest.fixture(scope="session")
def postgres_url(postgres_cluster: PostgresCluster) -> str:
    """The SQLAlchemy address of an empty database, shared by the session. Most tests want `database_url`."""
    return postgres_cluster.url()


@pytest.fixture(scope="session")
def empty_database(postgres_cluster: PostgresCluster) -> Callable[[], str]:
    """Makes a new database without any table and returns its address (for tests of migrations)."""
    made = 0

    def make() -> str:
        nonlocal made
        made += 1
        name = f"empty_{made}"
        postgres.execute(postgres_cluster, f"CREATE DATABASE {name}")
        return postgres_cluster.url(name)

    return make


@pytest.fixture(scope="session")
def make_database(postgres_cluster: PostgresCluster) -> Callable[[], str]:
    """Makes a new migrated database, copied from a template (about 30 ms), and returns its address."""
    from shared.db.migrate import upgrade

    template = "migrated_template"
    postgres.execute(postgres_cluster, f"CREATE DATABASE {template}")
    upgrade(postgres_cluster.url(template))
    made = 0

    def make() -> str:
        nonlocal made
        made += 1
        name = f"test_{made}"
        postgres.execute(postgres_cluster, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return postgres_cluster.url(name)

    return make


@pytest.fixture
def database_url(make_database: Callable[[], str], postgres_cluster: PostgresCluster) -> Iterator[str]:
    """The address of a migrated database of this test's own; dropped afterwards, open connections and all."""
    url = make_database()
    yield url
    postgres.execute(postgres_cluster, f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


def _cluster(folder: Path, port: int) -> PostgresCluster:
    return PostgresCluster(folder / "postgres" / "data", folder / "postgres.log", port, throwaway=True)


def _node(folder: Path, http_port: int, transport_port: int) -> OpenSearchNode:
    home, log = folder / "opensearch", folder / "opensearch.log"
    return OpenSearchNode(home, log, http_port, transport_port, heap="512m", quick=True)


def _sweep() -> None:
    """Remove what sessions that were killed have left: their engines and folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid, started, _ = folder.name.removeprefix(_PREFIX).split("-", 2)
        if folder.owner() == _me() and not is_alive(ProcessMark(int(pid), float(started))):
            _clear(folder)


def _clear(folder: Path) -> None:
    postgres.shut_down(_cluster(folder, 0))
    opensearch.shut_down(_node(folder, 0, 0))
    shutil.rmtree(folder, ignore_errors=True)


def _me() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
