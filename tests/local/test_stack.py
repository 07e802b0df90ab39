"""The stack comes up from whatever it finds, keeps its data, and goes down without a trace."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import jwt
import psutil
import pytest

from local import opensearch, postgres, stack
from local.environment import cluster_of, environment, http_url, issuer_url
from local.paths import CHECKOUT, Layout
from local.processes import StartError, is_alive
from local.state import Part, read_state
from shared.settings import load_settings

pytestmark = pytest.mark.slow

ROW = "SELECT n FROM kept"


def bring_up(layout, **kwargs):
    return stack.up(layout, prepare_engines=lambda _env: None, **kwargs)


def marks(state):
    return {part: process.mark for part, process in state.processes.items()}


def processes_of(layout):
    """Every living process whose command line names the folder, or that works in it."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(str(layout.state) in word for word in words):
            found.append(words)
    return found


@pytest.fixture(scope="module")
def layout():
    folder = Path(tempfile.mkdtemp(prefix="ki-stack-"))
    made = replace(
        Layout.of(CHECKOUT), state=folder / "a" / "local", cache=folder / "a" / "cache", heap="256m", throwaway=True
    )
    yield made
    stack.down(made)
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def code(monkeypatch):
    """The code as the stack sees it, so that a file saved meanwhile changes no outcome."""
    seen = []
    monkeypatch.setattr(stack, "_code", lambda: seen)
    return seen


@pytest.fixture
def running(layout):
    """The running stack, with one row and one document in it."""
    state = bring_up(layout)
    postgres.execute(cluster_of(layout, state), "CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS n")
    opensearch.call(stack._node(layout, state), "PUT", "/kept", {"settings": {"number_of_replicas": 0}})
    opensearch.call(stack._node(layout, state), "PUT", "/kept/_doc/1?refresh=true", {"n": 7})
    return state


def assert_data_is_there(layout, state):
    assert postgres.execute(cluster_of(layout, state), ROW) == [(7,)]
    status, document = opensearch.call(stack._node(layout, state), "GET", "/kept/_doc/1")
    assert (status, document["_source"]) == (200, {"n": 7})


def test_a_second_up_changes_nothing(layout, running):
    again = bring_up(layout)
    assert again == running
    assert all(part.healthy for part in stack.status(layout))


@pytest.mark.parametrize("part", list(Part))
def test_after_kill_9_of_a_part_up_starts_that_part_alone(layout, running, part):
    before = marks(running)
    os.kill(before[part].pid, signal.SIGKILL)
    assert not next(row for row in stack.status(layout) if row.part is part).healthy
    with pytest.raises(stack.NotRunningError, match=part.value):
        stack.running_state(layout)
    after = bring_up(layout)
    changed = {name for name, mark in marks(after).items() if mark != before[name]}
    assert changed == {part}
    assert after.ports == running.ports
    assert_data_is_there(layout, after)


def test_after_kill_9_of_everything_up_brings_it_back_with_its_data(layout, running):
    for mark in marks(running).values():
        os.kill(mark.pid, signal.SIGKILL)
    after = bring_up(layout)
    assert after.ports == running.ports
    assert_data_is_there(layout, after)


def test_a_half_written_state_costs_neither_data_nor_a_stray_process(layout, running):
    layout.state_file.write_text('{"ports": {"postg')
    after = bring_up(layout)
    assert_data_is_there(layout, after)
    assert [is_alive(mark) for mark in marks(running).values()] == [False, False, False]


def test_a_recorded_id_that_now_belongs_to_a_stranger_is_left_alone(layout, running):
    stranger = os.getpid()
    process = running.processes[Part.SERVE].model_copy(update={"pid": stranger})
    stack.write_state(
        layout.state_file, running.model_copy(update={"processes": {**running.processes, Part.SERVE: process}})
    )
    after = bring_up(layout)
    assert after.processes[Part.SERVE].pid != stranger
    assert len([words for words in processes_of(layout) if "local.serve" in words]) == 1


def test_two_ups_at_once_end_in_one_stack(layout, running):
    os.kill(running.processes[Part.SERVE].pid, signal.SIGKILL)
    states = []
    callers = [threading.Thread(target=lambda: states.append(bring_up(layout))) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=120)
    assert states[0] == states[1]
    assert len([words for words in processes_of(layout) if "local.serve" in words]) == 1


def test_changed_settings_restart_what_serves(layout, running, monkeypatch):
    monkeypatch.setenv("KI_SECURITY__SCOPE_DELTA_LIMIT", "17")
    after = bring_up(layout)
    changed = {name for name, mark in marks(after).items() if mark != marks(running)[name]}
    assert changed == {Part.SERVE}


def test_changed_code_restarts_what_serves(layout, running, code):
    code.append(("search.py", 1))
    after = bring_up(layout)
    changed = {name for name, mark in marks(after).items() if mark != marks(running)[name]}
    assert changed == {Part.SERVE}


def test_the_environment_is_a_complete_valid_configuration(layout, running):
    env = environment(layout, running)
    settings = load_settings(env)
    assert settings.database.url == cluster_of(layout, running).url()
    assert settings.opensearch.url == f"http://127.0.0.1:{running.ports.opensearch}"
    assert settings.identity.issuer == issuer_url(running)
    assert settings.identity.admin_groups == ("ki-admins",)
    assert (settings.retrieval.embedding_dimensions, settings.embedding.provider) == (384, "local_e5")
    assert stack.running_environment(layout) == env
    assert Path(settings.audit.hmac_key_file).stat().st_mode & 0o777 == 0o600


def test_a_token_of_the_stack_is_verified_through_its_published_keys(layout, running):
    env = environment(layout, running)
    token = stack.issuer(layout).issue("s", email="anna@kanzlei.example", ttl_s=60)
    key = jwt.PyJWKClient(env["KI_IDENTITY__JWKS_URL"]).get_signing_key_from_jwt(token)
    claims = jwt.decode(token, key, algorithms=["RS256"], issuer=env["KI_IDENTITY__ISSUER"], audience="knowledge-index")
    assert claims["sub"] == "s"


def test_another_stack_beside_it_shares_nothing_and_stops_alone(layout, running, tmp_path):
    other = replace(layout, state=layout.state.parent.parent / "b" / "local", cache=tmp_path)
    assert stack.status(other) == []
    theirs = stack._claim_ports(other)
    assert set(theirs.ports.model_dump().values()).isdisjoint(running.ports.model_dump().values())
    second = replace(cluster_of(other, theirs), port=theirs.ports.postgres)
    postgres.start(second)
    assert stack.down(other) == [Part.POSTGRES]
    assert all(is_alive(mark) for mark in marks(running).values())
    assert_data_is_there(layout, running)


def test_preparation_that_fails_leaves_nothing_served_and_the_next_up_works(layout, running):
    os.kill(running.processes[Part.SERVE].pid, signal.SIGKILL)

    def fail(env):
        raise StartError("the schema is from the future")

    with pytest.raises(StartError, match="future"):
        stack.up(layout, prepare_engines=fail)
    assert not next(row for row in stack.status(layout) if row.part is Part.SERVE).healthy
    # The engines run on for who puts it right.
    with pytest.raises(stack.NotRunningError, match="serve"):
        stack.running_environment(layout)
    assert stack.engines_environment(layout) == environment(layout, running)
    assert Part.SERVE in bring_up(layout).processes


def test_the_callers_own_settings_come_before_the_stacks(layout, running, monkeypatch):
    monkeypatch.setenv("KI_RETRIEVAL__EMBEDDING_DIMENSIONS", "512")
    seen = {}
    stack.up(layout, prepare_engines=seen.update)
    assert load_settings(seen).retrieval.embedding_dimensions == 512
    assert seen["KI_OPENSEARCH__URL"] == environment(layout, running)["KI_OPENSEARCH__URL"]


def test_down_leaves_no_process_and_no_temporary_file_but_the_data(layout, running):
    assert set(stack.down(layout)) == set(Part)
    assert processes_of(layout) == []
    assert {path.name for path in layout.state.iterdir()} == {
        "keys", "lock", "log", "opensearch", "postgres", "state.json", "storage",
    }  # fmt: skip
    assert not (layout.opensearch / "tmp").exists()
    assert not (layout.postgres / "postmaster.pid").exists()
    assert stack.down(layout) == []
    after = bring_up(layout)
    assert (after.ports, http_url(after)) == (running.ports, http_url(running))
    assert_data_is_there(layout, after)


def test_fresh_empties_the_data_and_keeps_the_keys(layout, running):
    key = layout.signing_key.read_bytes()
    (layout.storage / "original").write_bytes(b"x")
    state = bring_up(layout, fresh=True)
    assert postgres.execute(cluster_of(layout, state), "SELECT to_regclass('kept')") == [(None,)]
    assert opensearch.call(stack._node(layout, state), "GET", "/kept")[0] == 404
    assert list(layout.storage.iterdir()) == []
    assert layout.signing_key.read_bytes() == key
    assert read_state(layout.state_file) == state
