"""The state file is whole or ignored, and ports are kept for as long as they can be."""

from __future__ import annotations

import socket

import pytest

from local.ports import choose_port, is_free
from local.processes import ProcessMark
from local.state import Part, Ports, Process, StackState, read_state, write_state

PORTS = Ports(postgres=20001, opensearch=20002, opensearch_transport=20003, http=20004, issuer=20005)
NOTHING_HELD = dict.fromkeys(Part, False)


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_what_is_written_is_read(tmp_path):
    state = StackState(ports=PORTS, processes={Part.SERVE: Process.of(ProcessMark(7, 1.5), "stamp")})
    write_state(tmp_path / "state.json", state)
    assert read_state(tmp_path / "state.json") == state


@pytest.mark.parametrize("content", ["", "{", '{"ports": {"postgres": 1}}', "[]", '{"ports": "all"}', "\x00" * 99])
def test_a_state_that_cannot_be_used_is_no_state(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_text(content)
    assert read_state(path) is None


def test_free_ports_are_kept():
    earlier = Ports.choose(None, held=NOTHING_HELD)
    assert Ports.choose(earlier, held=NOTHING_HELD) == earlier


def test_five_ports_are_five_different_ones():
    chosen = Ports.choose(None, held=NOTHING_HELD).model_dump().values()
    assert len(set(chosen)) == 5


def test_a_port_someone_else_took_is_given_up_alone(taken_port, monkeypatch):
    monkeypatch.setattr("local.state._RELEASE_S", 0.1)
    earlier = Ports.choose(None, held=NOTHING_HELD).model_copy(update={"http": taken_port})
    again = Ports.choose(earlier, held=NOTHING_HELD)
    assert again.http != taken_port
    assert again.model_copy(update={"http": taken_port}) == earlier


def test_a_port_our_own_part_listens_on_is_kept(taken_port):
    earlier = Ports.choose(None, held=NOTHING_HELD).model_copy(update={"http": taken_port})
    assert Ports.choose(earlier, held={**NOTHING_HELD, Part.SERVE: True}).http == taken_port


def test_a_chosen_port_is_free_and_not_among_the_taken():
    port = choose_port()
    assert is_free(port)
    assert choose_port(port, taken=(port,)) != port
