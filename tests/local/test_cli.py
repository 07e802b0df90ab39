"""The command line answers with one document and the right exit code, and its help is quick."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import click
import jwt
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from local import stack
from local.cli.main import COMMANDS, main
from local.cli.output import ExitCode, emit, exit_code_of, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.issuer import subject_of
from local.paths import Layout
from local.processes import StartError
from local.state import Part, Ports, StackState, write_state
from shared.errors import (
    EngineUnavailableError,
    InvalidRequestError,
    NotVisibleError,
)
from shared.ingest.report import FileOutcome, Outcome
from shared.ingest.service import Progress


@pytest.fixture
def layout(tmp_path, monkeypatch):
    made = replace(Layout.of(), state=tmp_path / "local", cache=tmp_path / "cache")
    monkeypatch.setattr(Layout, "of", classmethod(lambda _cls, *_args: made))
    return made


@pytest.fixture
def known(layout):
    state = StackState(ports=Ports.choose(None, held=dict.fromkeys(Part, False)))
    write_state(layout.state_file, state)
    return state


def run(*words):
    return CliRunner().invoke(main, words)


def every_command():
    for entry in COMMANDS:
        command = main.get_command(None, entry.name)
        if isinstance(command, click.Group):
            yield from ((entry.name, name) for name in command.commands)
        else:
            yield (entry.name,)


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_every_command_has_help_and_json(words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_help_imports_no_command_and_no_engine():
    loaded = "import sys, local.cli.main as m; m.main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "local.cli.main" in modules
    assert {"sqlalchemy", "pydantic", "psutil", "local.stack", "local.cli.up"}.isdisjoint(modules)


def test_an_unknown_command_and_an_unknown_option_are_wrong_use():
    assert run("fly").exit_code == 2
    assert run("status", "--loud").exit_code == 2


def test_a_token_is_printed_alone_and_is_what_was_asked_for(known):
    result = run("token", "--as", "anna@kanzlei.example", "--group", "bank", "--group", "m-17", "--admin")
    assert result.exit_code == 0
    (token,) = result.stdout.split()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["sub"] == subject_of("anna@kanzlei.example")
    assert claims["groups"] == ["bank", "m-17", "ki-admins"]
    assert claims["iss"] == f"http://127.0.0.1:{known.ports.issuer}"


def test_json_is_one_document(known):
    answer = json.loads(run("token", "--as", "anna@kanzlei.example", "--json").stdout)
    assert answer["email"] == "anna@kanzlei.example"
    assert jwt.get_unverified_header(answer["token"])["alg"] == "RS256"


def test_a_token_for_no_address_is_wrong_use(known):
    assert run("token", "--as", "anna").exit_code == 2


def test_a_token_before_the_first_up_says_what_to_do(layout):
    result = run("token", "--as", "anna@kanzlei.example", "--json")
    assert result.exit_code == 3
    assert "ki up" in json.loads(result.stdout)["error"]["message"]


def test_status_of_a_stopped_stack_is_a_no(layout, known):
    result = run("status", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["running"] is False
    assert [part["part"] for part in answer["parts"]] == ["postgres", "opensearch", "serve"]


def test_status_before_the_first_up_is_a_no(layout):
    assert run("status").exit_code == 1


def test_down_of_nothing_is_done(layout):
    result = run("down", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"stopped": []})


def test_up_without_a_fitting_jdk_is_an_engine_away(layout, monkeypatch):
    def without_jdk(*_args, **_kwargs):
        raise StartError("OpenSearch needs a JDK")

    monkeypatch.setattr(stack, "up", without_jdk)
    result = run("up")
    assert result.exit_code == 3
    assert "needs a JDK" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StartError("x"), ExitCode.ENGINE_AWAY),
        (EngineUnavailableError(), ExitCode.ENGINE_AWAY),
        (InvalidRequestError("x"), ExitCode.WRONG_USE),
        (NotVisibleError(), ExitCode.NO),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert exit_code_of(error) is code


def test_what_is_no_error_of_ours_is_not_hidden():
    @click.command
    @json_option
    @reporting
    def broken(*, as_json):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(broken, [], catch_exceptions=False)


def test_a_database_of_another_version_is_told_in_words(database_url: str) -> None:
    @click.command()
    @json_option
    @reporting
    def asking(*, as_json: bool) -> None:
        assert as_json
        with sa.create_engine(database_url, poolclass=sa.NullPool).connect() as connection:
            connection.execute(sa.text("select * from a_table_of_tomorrow"))

    answer = CliRunner().invoke(asking, ["--json"])
    assert answer.exit_code == ExitCode.NO
    assert "ki up" in json.loads(answer.stdout)["error"]["message"]


def test_a_name_that_commands_a_terminal_is_printed_and_not_obeyed(capsys):
    emit({}, as_json=False, text="  ! a/\x1b[2Jx\u202etxt.exe\x9b1m: Grund\n\tzweite Zeile")
    note("Warnung: \x1b]0;Titel\x07")
    shown = capsys.readouterr()
    assert shown.out == "  ! a/\ufffd[2Jx\ufffdtxt.exe\ufffd1m: Grund\n\tzweite Zeile\n"
    assert shown.err == "Warnung: \ufffd]0;Titel\ufffd\n"


def test_a_name_with_brackets_is_no_markup_of_the_progress_bar(capsys):
    outcome = FileOutcome("a/[bold]x[blink]\x1b[2J.txt", Outcome.NEW)
    with ingest_progress("[red]ablage", quiet=False) as move:
        move(Progress(1, 1, outcome))
    shown = capsys.readouterr().err
    assert "[red]ablage" in shown
    assert "[bold]x[blink]\ufffd[2J.txt" in shown
