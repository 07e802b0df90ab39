"""The whole product on one machine: started, stopped, looked at.

`up` brings every part to the running state from whatever it finds: nothing, everything, a part that was killed,
a state file that is lost or half written. It changes only what is not right, and keeps the data.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from local import opensearch, postgres
from local.environment import cluster_of, environment, http_url, issuer_url, opensearch_url
from local.issuer import CONFIGURATION_PATH, LocalIssuer, ensure_signing_key
from local.opensearch import OpenSearchNode
from local.paths import CHECKOUT, Layout
from local.ports import LOOPBACK, answers
from local.prepare import prepare
from local.processes import ProcessMark, StartError, find_by_argument, is_alive, spawn, stop, tail
from local.state import Part, Ports, Process, StackState, read_state, write_state
from local.waiting import wait_until

_LOCK_TIMEOUT_S = 300.0
_SERVE_TIMEOUT_S = 30.0
_SERVE_GRACE_S = 10.0

Report = Callable[[str], None]
Prepare = Callable[[Mapping[str, str]], None]


class NotRunningError(StartError):
    """The local stack does not run; start it with: ki up."""


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part as it is now. `healthy` means that it answers, not only that its process is there."""

    part: Part
    url: str
    pid: int | None
    healthy: bool


def up(
    layout: Layout | None = None,
    *,
    fresh: bool = False,
    report: Report = lambda _: None,
    prepare_engines: Prepare = prepare,
) -> StackState:
    """Return the state of the running stack, having started what was not running.

    `fresh` stops everything and deletes the data first; keys, the embedding cache and OpenSearch itself stay.
    Two calls at once follow each other. Raises `StartError` naming the part and its log, and what `prepare_engines`
    raises: the engines run on then, and a server with earlier settings, so that `ki reindex` can do its work.
    """
    place = layout or Layout.of()
    with _locked(place):
        if fresh:
            _stop_all(place)
            _delete_data(place)
        state = _claim_ports(place)
        write_state(place.state_file, state)
        with ThreadPoolExecutor(max_workers=2) as pool:
            engines = {
                Part.POSTGRES: pool.submit(postgres.start, cluster_of(place, state)),
                Part.OPENSEARCH: pool.submit(opensearch.start, _node(place, state), distributions=place.distributions),
            }
            report("starting PostgreSQL and OpenSearch")
        marks = {part: future.result() for part, future in engines.items()}
        state = _remember(place, state, {part: Process.of(mark) for part, mark in marks.items()})
        env = environment(place, state) | own_settings()
        report("preparing schema and index")
        prepare_engines(env)
        report("starting the HTTP API and the token issuer")
        return _remember(place, state, {Part.SERVE: _ensure_serving(place, state, env)})


def down(layout: Layout | None = None) -> list[Part]:
    """Stop every part and return those that ran; the data and the ports stay for the next `up`."""
    place = layout or Layout.of()
    with _locked(place):
        return _stop_all(place)


def status(layout: Layout | None = None) -> list[PartStatus]:
    """Return every part as it is now; nothing is changed. Empty if the stack was never started."""
    place = layout or Layout.of()
    state = read_state(place.state_file)
    if state is None:
        return []
    cluster, node = cluster_of(place, state), _node(place, state)
    rows = (
        (Part.POSTGRES, f"postgresql://{LOOPBACK}:{state.ports.postgres}", postgres.answers(cluster)),
        (Part.OPENSEARCH, opensearch_url(state), opensearch.is_healthy(node)),
        (Part.SERVE, http_url(state), _serves(state)),
    )
    return [_part_status(place, part, url, answering=answering) for part, url, answering in rows]


def running_environment(layout: Layout | None = None) -> dict[str, str]:
    """Return the environment variables of the running stack. Raises `NotRunningError`."""
    place = layout or Layout.of()
    state = running_state(place)
    return environment(place, state)


def own_settings() -> dict[str, str]:
    """Return the caller's own `KI_` variables; they come before the stack's, for commands and for the server alike."""
    return {name: value for name, value in os.environ.items() if name.startswith("KI_")}


def engines_environment(layout: Layout | None = None) -> dict[str, str]:
    """Return the environment variables of the stack if its engines run, whether or not anything is served.

    Raises `NotRunningError`.
    """
    place = layout or Layout.of()
    return environment(place, _state_with(place, (Part.POSTGRES, Part.OPENSEARCH)))


def running_state(layout: Layout | None = None) -> StackState:
    """Return the state of the running stack. Raises `NotRunningError` naming the parts that are away."""
    return _state_with(layout or Layout.of(), tuple(Part))


def _state_with(place: Layout, parts: tuple[Part, ...]) -> StackState:
    state = read_state(place.state_file)
    if state is None:
        raise NotRunningError("the local stack does not run; start it with: ki up")
    away = [part.value for part in parts if not is_alive(_mark(state, part))]
    if away:
        raise NotRunningError(f"the local stack does not run ({', '.join(away)} away); start it with: ki up")
    return state


def issuer(layout: Layout | None = None) -> LocalIssuer:
    """Return the stack's token issuer, to sign with. Raises `NotRunningError` if the stack was never started."""
    place = layout or Layout.of()
    state = read_state(place.state_file)
    if state is None:
        raise NotRunningError("the local stack has no issuer yet; start it with: ki up")
    return LocalIssuer(issuer_url(state), ensure_signing_key(place.signing_key))


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """Hold the stack's lock; the system frees it when the holder dies, however it dies."""
    layout.state.mkdir(parents=True, exist_ok=True)
    with layout.lock_file.open("w") as lock:
        if not wait_until(lambda: _try_lock(lock.fileno()), timeout_s=_LOCK_TIMEOUT_S, interval_s=0.2):
            raise StartError("another `ki up` or `ki down` of this checkout is still at work")
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _claim_ports(layout: Layout) -> StackState:
    earlier = read_state(layout.state_file)
    if earlier is None:
        # Whatever runs on this folder listens on ports nobody remembers.
        _stop_all(layout)
        return StackState(ports=Ports.choose(None, held=dict.fromkeys(Part, False)))
    held = {part: bool(_find(layout, part)) for part in Part}
    return StackState(ports=Ports.choose(earlier.ports, held=held), processes=earlier.processes)


def _ensure_serving(layout: Layout, state: StackState, env: Mapping[str, str]) -> Process:
    """Return the serving process: the running one if it has today's code and settings, else a new one."""
    full = {**os.environ, **env}
    stamp = _stamp({name: value for name, value in full.items() if name.startswith("KI_")})
    known = state.processes.get(Part.SERVE)
    running = _find(layout, Part.SERVE)
    if known is not None and known.stamp == stamp and known.mark in running and _serves(state):
        return known
    for mark in running:
        stop(mark, grace_s=_SERVE_GRACE_S, polite=signal.SIGTERM)
    ensure_signing_key(layout.signing_key)
    log = layout.log(Part.SERVE)
    mark = spawn(
        [sys.executable, "-m", "local.serve", _serve_argument(layout)],
        log=log,
        environment={**full, "PYTHONUNBUFFERED": "1"},
        working_folder=CHECKOUT,
    )
    wait_until(lambda: _serves(state) or not is_alive(mark), timeout_s=_SERVE_TIMEOUT_S)
    if not is_alive(mark) or not _serves(state):
        stop(mark, grace_s=_SERVE_GRACE_S, polite=signal.SIGTERM)
        raise StartError(f"the HTTP API did not start; see {log}\n{tail(log)}")
    return Process.of(mark, stamp)


def _stamp(settings: Mapping[str, str]) -> str:
    """Return what changes when the code or the settings of the serving process do."""
    return hashlib.sha256(json.dumps([sorted(settings.items()), _code()]).encode()).hexdigest()


def _code() -> list[tuple[str, int]]:
    """Return every file the serving process may have read, with the time of its last change."""
    files = [CHECKOUT / "config.json"]
    for package in ("shared", "functions", "local"):
        files += (CHECKOUT / package).rglob("*.py")
    return sorted((str(path), path.stat().st_mtime_ns) for path in files)


def _serves(state: StackState) -> bool:
    """Tell whether the API accepts connections and the issuer publishes its own description."""
    connection = HTTPConnection(LOOPBACK, state.ports.issuer, timeout=2)
    try:
        connection.request("GET", CONFIGURATION_PATH)
        described = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return described.get("issuer") == issuer_url(state) and answers(state.ports.http)


def _stop_all(layout: Layout) -> list[Part]:
    stopped = []
    state = read_state(layout.state_file)
    for part in (Part.SERVE, Part.OPENSEARCH, Part.POSTGRES):
        marks = _find(layout, part)
        for mark in marks:
            stop(mark, grace_s=_GRACE_S[part], polite=_POLITE[part])
        if marks:
            stopped.append(part)
    shutil.rmtree(layout.opensearch / "tmp", ignore_errors=True)
    if state is not None:
        write_state(layout.state_file, StackState(ports=state.ports))
    return stopped


_GRACE_S = {Part.SERVE: _SERVE_GRACE_S, Part.OPENSEARCH: 30.0, Part.POSTGRES: 20.0}
_POLITE = {Part.SERVE: signal.SIGTERM, Part.OPENSEARCH: signal.SIGTERM, Part.POSTGRES: signal.SIGINT}


def _delete_data(layout: Layout) -> None:
    for folder in (layout.postgres.parent, layout.opensearch, layout.storage):
        shutil.rmtree(folder, ignore_errors=True)


def _find(layout: Layout, part: Part) -> list[ProcessMark]:
    """Return the running processes of a part, found by the argument that names this stack's folder."""
    argument, program = {
        Part.POSTGRES: (str(layout.postgres), "postgres"),
        Part.OPENSEARCH: (f"path.home={layout.opensearch}", "java"),
        Part.SERVE: (_serve_argument(layout), "python"),
    }[part]
    return find_by_argument(argument, program=program)


def _serve_argument(layout: Layout) -> str:
    return f"--state={layout.state}"


def _node(layout: Layout, state: StackState) -> OpenSearchNode:
    return OpenSearchNode(
        home=layout.opensearch,
        log=layout.log(Part.OPENSEARCH),
        http_port=state.ports.opensearch,
        transport_port=state.ports.opensearch_transport,
        heap=layout.heap,
        quick=layout.throwaway,
    )


def _remember(layout: Layout, state: StackState, processes: Mapping[Part, Process]) -> StackState:
    remembered = StackState(ports=state.ports, processes={**state.processes, **processes})
    write_state(layout.state_file, remembered)
    return remembered


def _mark(state: StackState, part: Part) -> ProcessMark | None:
    process = state.processes.get(part)
    return process.mark if process else None


def _part_status(layout: Layout, part: Part, url: str, *, answering: bool) -> PartStatus:
    running = _find(layout, part)
    return PartStatus(part, url, running[0].pid if running else None, bool(running) and answering)
