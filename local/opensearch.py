"""One OpenSearch node with k-NN, in a JVM of its own on loopback ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from local.java import Jdk, find_jdk
from local.opensearch_dist import MAIN_CLASS, Distribution, ensure_distribution
from local.ports import LOOPBACK, choose_port
from local.processes import ProcessMark, StartError, find_by_argument, is_alive, spawn, stop, tail
from local.waiting import wait_until

_START_TIMEOUT_S = 120.0
_STOP_GRACE_S = 30.0
_ARCHIVE_TIMEOUT_S = 120.0
_PROGRAM = "java"
_PROBE_INDEX = ".ki-knn-probe"


@dataclass(frozen=True, slots=True)
class OpenSearchNode:
    """Where one node lives and how large it may grow.

    `http_max_content_length` (such as "10mb") imitates the request limit of a small Amazon domain. `quick`
    compiles less: half the work of a start, slower when it has run for a while (for tests, not for measuring).
    """

    home: Path
    log: Path
    http_port: int
    transport_port: int
    heap: str = "1g"
    http_max_content_length: str | None = None
    quick: bool = False

    @property
    def url(self) -> str:
        """The HTTP address."""
        return f"http://{LOOPBACK}:{self.http_port}"


def start(node: OpenSearchNode, *, distributions: Path, jdk: Jdk | None = None) -> ProcessMark:
    """Start the node and return when its cluster is healthy and k-NN has answered a filtered query.

    A running node of the same folder that answers is taken as it is. Fetches OpenSearch into `distributions`
    the first time. Raises `StartError` with the end of the log.
    """
    running = find(node)
    if running is not None:
        if wait_until(lambda: is_healthy(node), timeout_s=10):
            return running
        shut_down(node)
    kit = jdk or find_jdk()
    distribution = ensure_distribution(distributions, kit)
    _ensure_class_archive(distribution, kit)
    archive = distribution.class_archive(kit)
    return _launch(node, distribution, kit, (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"))


def find(node: OpenSearchNode) -> ProcessMark | None:
    """Return the running node of this folder, whoever started it."""
    return next(iter(find_by_argument(_home_setting(node), program=_PROGRAM)), None)


def shut_down(node: OpenSearchNode) -> None:
    """Stop the node of this folder, if one runs; its data stay."""
    for mark in find_by_argument(_home_setting(node), program=_PROGRAM):
        stop(mark, grace_s=_STOP_GRACE_S, polite=signal.SIGTERM)


def remove(node: OpenSearchNode) -> None:
    """Delete the stopped node with all its data."""
    shutil.rmtree(node.home, ignore_errors=True)


def is_healthy(node: OpenSearchNode, *, timeout_s: float = 2.0) -> bool:
    """Tell whether the node answers with a yellow or green cluster."""
    try:
        status, health = call(node, "GET", "/_cluster/health", timeout_s=timeout_s)
    except StartError:
        return False
    return status == 200 and health.get("status") in {"yellow", "green"}  # noqa: PLR2004


def call(
    node: OpenSearchNode, method: str, path: str, body: object = None, *, timeout_s: float = 30.0
) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON object of one request. Raises `StartError` if the node does not answer."""
    connection = HTTPConnection(LOOPBACK, node.http_port, timeout=timeout_s)
    try:
        payload = None if body is None else json.dumps(body).encode()
        connection.request(method, path, payload, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    except (OSError, HTTPException, ValueError) as error:
        raise StartError(f"OpenSearch at {node.url} does not answer: {error}") from error
    finally:
        connection.close()


def command(node: OpenSearchNode, distribution: Distribution, jdk: Jdk, flags: Sequence[str] = ()) -> list[str]:
    """Return the command line of the node's process."""
    settings = {
        "cluster.name": "knowledge-index-local",
        "node.name": "local",
        "path.home": str(node.home),
        "path.data": str(node.home / "data"),
        "path.logs": str(node.home / "logs"),
        "discovery.type": "single-node",
        "network.host": LOOPBACK,
        "http.port": str(node.http_port),
        "transport.port": str(node.transport_port),
        # A laptop's disk is often fuller than the engine's limits for servers allow.
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        # As in production: an index exists because we made it, with our mapping. k-NN keeps its own.
        "action.auto_create_index": "false",
        "node.store.allow_mmap": "true",
    }
    if node.http_max_content_length is not None:
        settings["http.max_content_length"] = node.http_max_content_length
    arguments = [f"{name}={value}" for name, value in settings.items()]
    return [str(jdk.java), *_jvm_flags(node), *flags, "-cp", distribution.class_path, MAIN_CLASS, *arguments]


def _launch(node: OpenSearchNode, distribution: Distribution, jdk: Jdk, flags: Sequence[str]) -> ProcessMark:
    """Start the node's process and return it when it is healthy and its k-NN has answered."""
    node.home.mkdir(parents=True, exist_ok=True)
    mark = spawn(
        command(node, distribution, jdk, flags),
        log=node.log,
        environment=_environment(jdk),
        working_folder=node.home,
    )
    wait_until(lambda: is_healthy(node) or not is_alive(mark), timeout_s=_START_TIMEOUT_S, interval_s=0.1)
    if not is_alive(mark) or not is_healthy(node):
        stop(mark, grace_s=_STOP_GRACE_S, polite=signal.SIGTERM)
        raise StartError(f"OpenSearch did not start; see {node.log}\n{tail(node.log)}")
    try:
        _probe_knn(node)
    except StartError:
        stop(mark, grace_s=_STOP_GRACE_S, polite=signal.SIGTERM)
        raise
    return mark


def _ensure_class_archive(distribution: Distribution, jdk: Jdk) -> None:
    """Let a node that is thrown away load its classes once and keep them for all later starts.

    Java ignores an archive that does not fit (another build of the JDK), so a start never depends on it. One that
    could not be written is kept as an empty file, so that it is not tried at each start.
    """
    archive = distribution.class_archive(jdk)
    if archive.exists():
        return
    with distribution.locked(), tempfile.TemporaryDirectory(prefix="ki-archive-") as folder:
        if archive.exists():
            return
        http_port = choose_port()
        node = OpenSearchNode(
            Path(folder) / "home", Path(folder) / "log", http_port, choose_port(taken=(http_port,)), heap="512m"
        )
        draft = archive.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        mark = _launch(node, distribution, jdk, (f"-XX:ArchiveClassesAtExit={draft}",))
        stop(mark, grace_s=_ARCHIVE_TIMEOUT_S, polite=signal.SIGTERM)
        draft.touch()
        draft.rename(archive)


def _jvm_flags(node: OpenSearchNode) -> list[str]:
    temporary = node.home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return [
        f"-Xms{node.heap}",
        f"-Xmx{node.heap}",
        "-Xss1m",
        "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={node.home / 'jvm-error.log'}",
        "-XX:-UsePerfData",
        "-Xlog:cds=off,aot=off",
        *(["-XX:TieredStopAtLevel=1"] if node.quick else []),
        f"-Djava.io.tmpdir={temporary}",
        f"-Djna.tmpdir={temporary}",
        "-Dfile.encoding=UTF-8",
        "-Djava.awt.headless=true",
        "-Djava.locale.providers=SPI,CLDR",
        "-Dio.netty.noUnsafe=true",
        "-Dio.netty.noKeySetOptimization=true",
        "-Dio.netty.recycler.maxCapacityPerThread=0",
        "-Dlog4j.shutdownHookEnabled=false",
        "-Dlog4j2.disable.jmx=true",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--enable-native-access=ALL-UNNAMED",
    ]


def _home_setting(node: OpenSearchNode) -> str:
    return f"path.home={node.home}"


def _environment(jdk: Jdk) -> dict[str, str]:
    # JAVA_TOOL_OPTIONS of the caller would change the flags measured and tested here.
    return {"PATH": os.environ.get("PATH", os.defpath), "JAVA_HOME": str(jdk.home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _probe_knn(node: OpenSearchNode) -> None:
    """Prove that k-NN works: an index of two vectors, the nearer of which the filter excludes."""
    mapping = {
        "settings": {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0, "index.hidden": True},
        "mappings": {
            "properties": {
                "vector": {
                    "type": "knn_vector",
                    "dimension": 2,
                    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
                },
                "number": {"type": "integer"},
            }
        },
    }
    call(node, "DELETE", f"/{_PROBE_INDEX}")
    made, answer = call(node, "PUT", f"/{_PROBE_INDEX}", mapping)
    if made != 200:  # noqa: PLR2004
        raise StartError(f"OpenSearch has no working k-NN: {answer.get('error')}")
    try:
        for number, vector in ((1, [1.0, 0.0]), (2, [0.0, 1.0])):
            document = {"number": number, "vector": vector}
            call(node, "PUT", f"/{_PROBE_INDEX}/_doc/{number}?refresh=true", document)
        near = {"vector": [1.0, 0.1], "k": 1, "filter": {"term": {"number": 2}}}
        query = {"size": 2, "query": {"knn": {"vector": near}}}
        _, answer = call(node, "POST", f"/{_PROBE_INDEX}/_search", query)
        found = [hit["_id"] for hit in answer.get("hits", {}).get("hits", [])]
        if found != ["2"]:
            raise StartError(f"OpenSearch's k-NN did not answer a filtered query: {answer}")
    finally:
        call(node, "DELETE", f"/{_PROBE_INDEX}")
