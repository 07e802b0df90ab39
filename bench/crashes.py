"""Workers killed with SIGKILL in the midst of an ingest: what is there in the end is what an undisturbed run leaves.

    python -m bench.crashes 10000

Starts engines of its own, takes the same generated files in twice, once undisturbed and once with a worker that is
killed again and again, and compares what the two left in PostgreSQL and OpenSearch.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psutil
import sqlalchemy as sa

from bench.crash_files import MATTERS, generate
from local import opensearch, postgres
from local.java import find_jdk
from local.opensearch import OpenSearchNode
from local.paths import CHECKOUT, distributions_folder
from local.ports import choose_port
from local.postgres import PostgresCluster
from shared.db.engine import make_engine
from shared.db.migrate import upgrade
from shared.index import fields
from shared.index.ensure import ensure_index
from shared.index.reconcile import reconcile
from shared.ingest.completeness import SourceCompleteness, completeness
from shared.providers.embedding.protocol import Vector, signature_of
from shared.runtime.bootstrap import Services, build
from shared.settings import load_settings
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.sources.local_fs import LocalFolder

_DIMENSIONS = 8
_PAGE = 5_000
_SOURCE = "ablage"
_CONFIG = SourceConfig(
    project=ProjectRef(key="bench", title="Bench"),
    places=tuple(
        PlaceRule(prefix=f"matter{number}", matter=MatterRef(key=f"B-{number}", title=f"Akte {number}"))
        for number in range(MATTERS)
    ),
)


class Vectors:
    """An embedding provider that costs and keeps nothing: vectors made of a text's hash."""

    model_id = "hashed"
    dimensions = _DIMENSIONS

    @property
    def signature(self) -> str:
        """What an index that was filled with these vectors is marked with."""
        return signature_of(self.model_id, dimensions=_DIMENSIONS)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages."""
        digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts)
        return [[byte / 255 + 0.001 for byte in digest[:_DIMENSIONS]] for digest in digests]

    embed_queries = embed_passages


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one ingest: seconds, how often its worker was killed, resident memory in bytes along the way.

    `memory` belongs to the last worker, the one that came to the end.
    """

    seconds: float
    kills: int
    memory: tuple[int, ...]
    peak_bytes: int


def environment(database_url: str, opensearch_url: str, store: Path) -> dict[str, str]:
    """Return the settings of one arm."""
    return {
        "KI_DATABASE__URL": database_url,
        "KI_OPENSEARCH__URL": opensearch_url,
        "KI_RETRIEVAL__INDEX_NAME": f"crashes-{database_url.rpartition('/')[2].replace('_', '-')}",
        "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(_DIMENSIONS),
        "KI_EMBEDDING__MODEL_ID": Vectors.model_id,
        "KI_STORAGE__KIND": "file",
        "KI_STORAGE__ROOT": str(store),
    }


def services(env: Mapping[str, str]) -> Services:
    """Return the product on the engines of one arm."""
    return build(load_settings(env), embedding=Vectors())


def prepared(env: Mapping[str, str]) -> None:
    """Make the index of one arm."""
    parts = services(env)
    ensure_index(parts.index, parts.settings.retrieval, embedding_signature=parts.embedding.signature)
    parts.close()


def ingest(env: Mapping[str, str], folder: Path, *, kills: int, files: int, seed: int = 0) -> Run:
    """Ingest in processes of their own, the first `kills` of which are killed at random moments; return what it took.

    A worker is killed after a random number of files that are new to it, and a random time more.
    """
    chance = random.Random(seed)
    started, killed = time.perf_counter(), 0
    while True:
        doomed = killed < kills
        after = chance.randint(1, max(1, 2 * files // (kills + 1))) if doomed else None
        with _worker(env, folder) as worker:
            lines = _followed(worker, after)
            if doomed:
                time.sleep(chance.random() * 0.02)
                _kill(worker)
            code = worker.wait()
        if code == -signal.SIGKILL:
            killed += 1
        elif code != 0:
            raise AssertionError(f"the worker ended with {code}")
        elif lines:
            report = json.loads(lines[-1])
            return Run(time.perf_counter() - started, killed, tuple(report["memory"]), report["peak"])
        else:
            # It came to its end between the last line that was read and the kill.
            kills = killed


def _kill(worker: subprocess.Popen[str]) -> None:
    """Kill the worker, and see that what it had started ends by itself."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(worker.pid).children(recursive=True)
        worker.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=30)
        if alive:
            raise AssertionError(f"processes outlived their worker: {[one.cmdline() for one in alive]}")


@contextlib.contextmanager
def _worker(env: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.crashes", "--work", str(folder)]
    with subprocess.Popen(  # noqa: S603 - this very module
        command, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    ) as worker:
        yield worker


def _followed(worker: subprocess.Popen[str], after: int | None) -> list[str]:
    """Return the lines that the worker printed, up to the `after`-th file that was new to it, or all."""
    assert worker.stdout is not None
    lines, new = [], 0
    for line in worker.stdout:
        if line.startswith("{"):
            lines.append(line)
        new += line == "new\n"
        if after is not None and new >= after:
            break
    return lines


def work(folder: Path) -> None:
    """Be the worker: ingest, print a line for each file, and in the end what memory it took."""
    parts = services(os.environ)
    process, memory = psutil.Process(), list[int]()

    def moved(progress: Any) -> None:
        if progress.done % 100 == 1:
            memory.append(process.memory_info().rss)
        print("old" if progress.last.outcome in {"unchanged", "quarantined"} else "new", flush=True)

    parts.ingest_service().ingest(LocalFolder(_SOURCE, folder, _CONFIG), progress=moved)
    _drain(parts)
    parts.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"memory": memory, "peak": peak}), flush=True)


def _drain(parts: Services) -> None:
    """Wait for entries that a killed worker has leased."""
    with parts.engine.begin() as connection:
        connection.execute(sa.text("update index_outbox set next_try_at = now() where done_at is null"))
    while parts.writer.drain(500).versions_indexed:
        pass


def end_state(env: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return what an ingest left, without ids and times: sorted lists that two equal runs have in common."""
    parts = services(env)
    with parts.engine.connect() as connection:
        state = {name: sorted(map(list, connection.execute(sa.text(sql)))) for name, sql in _LEFT.items()}
        versions = {str(row.id): (row.key, row.sha256) for row in connection.execute(sa.text(_VERSIONS))}
        differences = reconcile(connection, parts.index, parts.settings.retrieval.index_name)
        state["differences"] = [[len(differences.missing), len(differences.surplus)]]
    state["index"] = sorted(_rows(parts, versions))
    parts.close()
    return state


_VERSIONS = """
select v.id, coalesce(m.key, '') as key, v.sha256
from document_versions v join documents d on d.id = v.document_id left join matters m on m.id = d.matter_id
"""
_LEFT = {
    "objects": "select external_id, coalesce(sha256, ''), coalesce(mime, ''), deleted_at is null from source_objects",
    "versions": """
select o.external_id, v.sha256, v.status, v.title, v.indexed_at is not null
from document_versions v join version_sources s on s.version_id = v.id
join source_objects o on o.id = s.source_object_id""",
    "chunks": """
select coalesce(m.key, ''), v.sha256, c.kind, c.ordinal, md5(c.text)
from chunks c join document_versions v on v.id = c.version_id
join documents d on d.id = v.document_id left join matters m on m.id = d.matter_id""",
    "states": """
select o.external_id, s.stage, s.status from ingest_state s
join source_objects o on o.id = s.source_object_id""",
    "quarantine": """
select o.external_id, q.stage, q.error, q.reason from quarantine q
join source_objects o on o.id = q.source_object_id""",
    "queue": "select count(*) from index_outbox where done_at is null",
}


def _rows(parts: Services, versions: Mapping[str, tuple[str, str]]) -> Iterator[list[Any]]:
    """Yield the live rows of the index by what they are rows of."""
    alias = parts.settings.retrieval.index_name
    wanted = [fields.CHUNK_ID, fields.DOCUMENT_VERSION_ID, fields.CHUNK_KIND, fields.ORDINAL, fields.TITLE]
    last: str | None = None
    while True:
        body: dict[str, Any] = {
            "size": _PAGE,
            "query": {"term": {fields.DELETED: False}},
            "sort": [{fields.CHUNK_ID: "asc"}],
            "_source": wanted,
        }
        if last is not None:
            body["search_after"] = [last]
        answer = parts.index.request("POST", f"/{alias}/_search", body)
        found = [hit["_source"] for hit in answer["hits"]["hits"]]
        for row in found:
            key, sha256 = versions[row[fields.DOCUMENT_VERSION_ID]]
            yield [key, sha256, row[fields.CHUNK_KIND], row[fields.ORDINAL], row.get(fields.TITLE, "")]
        if len(found) < _PAGE:
            return
        last = found[-1][fields.CHUNK_ID]


def accounted(env: Mapping[str, str]) -> SourceCompleteness:
    """Return what the completeness statement says of the source."""
    parts = services(env)
    with parts.engine.connect() as connection:
        [source] = completeness(connection)
    parts.close()
    return source


@contextlib.contextmanager
def _engines(folder: Path) -> Iterator[tuple[PostgresCluster, str]]:
    folder.chmod(0o755)
    data = folder / "postgres"
    data.mkdir(mode=0o755)
    cluster = PostgresCluster(data / "data", folder / "postgres.log", choose_port(), throwaway=True)
    http = choose_port()
    node = OpenSearchNode(
        folder / "opensearch", folder / "opensearch.log", http, choose_port(taken=(http,)), heap="512m", quick=True
    )
    try:
        postgres.start(cluster)
        opensearch.start(node, distributions=distributions_folder(CHECKOUT), jdk=find_jdk())
        yield cluster, node.url
    finally:
        opensearch.shut_down(node)
        postgres.shut_down(cluster)


def _arm(cluster: PostgresCluster, opensearch_url: str, folder: Path, name: str) -> dict[str, str]:
    postgres.execute(cluster, f"CREATE DATABASE {name}")
    upgrade(cluster.url(name))
    # Before the first worker, so that no worker is asked for the statistics of an empty table.
    make_engine(load_settings({"KI_DATABASE__URL": cluster.url(name)}).database).dispose()
    env = environment(cluster.url(name), opensearch_url, folder / f"store-{name}")
    prepared(env)
    return env


def _compared(files: int, kills: int, seed: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="ki-crashes-") as name, _engines(Path(name)) as (cluster, url):
        folder = Path(name)
        generate(folder / "files", files)
        calm, rough = (_arm(cluster, url, folder, arm) for arm in ("calm", "rough"))
        undisturbed = ingest(calm, folder / "files", kills=0, files=files)
        print(f"undisturbed: {_shown(undisturbed, files)}", flush=True)
        disturbed = ingest(rough, folder / "files", kills=kills, files=files, seed=seed)
        print(f"{disturbed.kills} times killed: {_shown(disturbed, files)}", flush=True)
        wanted, found = end_state(calm), end_state(rough)
        for part, rows in wanted.items():
            print(f"{part}: {len(rows)} {'the same' if rows == found[part] else 'DIFFERENT'}")
        print(f"accounted for: {accounted(rough)}")
        return wanted == found


def _shown(run: Run, files: int) -> str:
    early, late = run.memory[len(run.memory) // 5], run.memory[-1]
    return (
        f"{run.seconds:.0f} s, {files / run.seconds:.0f} files/s; memory of the last worker {early / 2**20:.0f} MB "
        f"after a fifth, {late / 2**20:.0f} MB at the end, at most {run.peak_bytes / 2**20:.0f} MB"
    )


@click.command()
@click.argument("files", type=click.IntRange(min=12), required=False, default=10_000)
@click.option("--kills", default=20, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--work", "folder", type=click.Path(path_type=Path), hidden=True, help="Be the worker on this folder.")
def main(*, files: int, kills: int, seed: int, folder: Path | None) -> None:
    """Compare an ingest of so many files whose worker is killed again and again with an undisturbed one."""
    if folder is not None:
        work(folder)
        return
    sys.exit(0 if _compared(files, kills, seed) else 1)


if __name__ == "__main__":
    main()
