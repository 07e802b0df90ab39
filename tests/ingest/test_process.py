"""The process that converts: what it may not do, and a parent that survives whatever becomes of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from shared.errors import LimitExceededError, PermanentError, UnreadableFileError
from shared.ingest.convert.formats import FORMATS, format_of
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.report import Outcome
from shared.sources.config import SourceConfig
from shared.sources.local_fs import LocalFolder
from tests.ingest.conftest import CONFIG, World
from tests.ingest.test_realfiles import FILES

Sabotage = Callable[..., ConversionProcess]

# The pipe to the parent is a descriptor that the worker does not show; it is the one pipe that is neither 0, 1 nor 2.
PIPE = (
    "import os, stat\n"
    "def pipe(): return next(n for n in range(3, 40) if ok(n))\n"
    "def ok(n):\n"
    "    try: return stat.S_ISFIFO(os.fstat(n).st_mode)\n"
    "    except OSError: return False\n"
)
GOOD = (
    "from shared.ingest.convert.formats import Conversion\n"
    "from shared.text.converted import ConvertedText\n"
    "def good(): return Conversion(ConvertedText('gut'))\n"
)


@pytest.fixture
def sabotaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Sabotage]:
    """A worker in which the plain format does what the test says when it is given "evil"."""
    made: list[ConversionProcess] = []

    def make(does: str) -> ConversionProcess:
        code = PIPE + GOOD + f"def convert(content):\n    if content == b'evil':\n        {does}\n    return good()\n"
        (tmp_path / "sitecustomize.py").write_text(
            "import sys, types\n"
            "module = types.ModuleType('shared.ingest.convert.plain')\n"
            f"exec({code!r}, module.__dict__)\n"
            "sys.modules['shared.ingest.convert.plain'] = module\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        made.append(ConversionProcess(memory_bytes=2**30, output_bytes=2**20))
        return made[-1]

    yield make
    for process in made:
        process.close()


@pytest.mark.parametrize(
    ("does", "error"),
    [
        (r"os.write(pipe(), b'{\"error\": \n'); import time; time.sleep(600)", UnreadableFileError),
        (r"os.write(pipe(), os.urandom(5000) + b'\n')", UnreadableFileError),
        (r"os.write(pipe(), b'[1, 2]\n')", UnreadableFileError),
        (r"os.write(pipe(), b'{}\n{}\n')", UnreadableFileError),
        (r"os.write(pipe(), b'{}\n'); import time; time.sleep(600)", UnreadableFileError),
        ("\n        while True: os.write(pipe(), b'x' * 65536)", UnreadableFileError),
        ("os.close(pipe()); import time; time.sleep(600)", UnreadableFileError),
        ("os._exit(0)", UnreadableFileError),
        ("os.kill(os.getpid(), 11)", UnreadableFileError),
        ("os.kill(os.getpid(), 9)", LimitExceededError),
        ("os.kill(os.getpid(), 19)", LimitExceededError),
        (r"os.write(pipe(), b'{\"recognise\": true}\n'); import time; time.sleep(600)", UnreadableFileError),
        ("\n        while True: pass", LimitExceededError),
    ],
)
def test_whatever_the_worker_does_the_file_has_a_reason_and_the_next_one_is_read(
    sabotaged: Sabotage, does: str, error: type[PermanentError]
) -> None:
    process = sabotaged(does)
    assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"
    began = time.monotonic()
    with pytest.raises(error) as raised:
        process.convert("plain", b"evil", timeout_s=1)
    # Its name is what quarantine shows.
    assert raised.type is error
    assert time.monotonic() - began < 10
    assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_a_worker_killed_between_two_files_is_replaced(sabotaged: Sabotage) -> None:
    process = sabotaged("pass")
    process.convert("plain", b"x", timeout_s=30)
    assert process._process is not None
    os.kill(process._process.pid, signal.SIGKILL)
    assert process.convert("plain", b"x", timeout_s=30).text.text == "gut"


def test_a_worker_killed_once_on_a_file_is_not_the_files_fault(sabotaged: Sabotage, tmp_path: Path) -> None:
    once = f"p = {str(tmp_path / 'once')!r}; os.path.exists(p) or (open(p, 'w').close(), os.kill(os.getpid(), 9))"
    assert sabotaged(once).convert("plain", b"evil", timeout_s=30).text.text == "gut"


def test_a_closed_converter_leaves_no_process(sabotaged: Sabotage) -> None:
    process = sabotaged("pass")
    process.convert("plain", b"x", timeout_s=30)
    assert process._process is not None
    worker = psutil.Process(process._process.pid)
    process.close()
    assert not worker.is_running()


@pytest.mark.parametrize("kind", ["AF_INET", "AF_INET6", "AF_UNIX"])
def test_not_even_a_library_in_c_gets_a_socket(sabotaged: Sabotage, kind: str) -> None:
    # Through ctypes no audit event is raised: only the kernel can refuse it.
    does = f"import ctypes, socket; c = ctypes.CDLL(None, use_errno=True); raise ValueError((c.socket(int(socket.{kind}), 1, 0), ctypes.get_errno()))"
    with pytest.raises(UnreadableFileError, match=r"\(-1, 1\)"):
        sabotaged(does).convert("plain", b"evil", timeout_s=30)


def test_not_even_a_library_in_c_starts_a_program(sabotaged: Sabotage) -> None:
    does = "import ctypes; c = ctypes.CDLL(None, use_errno=True); raise ValueError((c.execv(b'/bin/true', None), ctypes.get_errno()))"
    with pytest.raises(UnreadableFileError, match=r"\(-1, 1\)"):
        sabotaged(does).convert("plain", b"evil", timeout_s=30)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file in which every worker notes what it tries with sockets, before it is refused."""
    note = tmp_path / "tried"
    note.touch()
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        f"note = os.open({str(note)!r}, os.O_WRONLY | os.O_APPEND)\n"
        "def hook(event, _):\n"
        "    if event.startswith(('socket.', 'urllib.', 'http.', 'ftplib.', 'smtplib.')) and event != 'socket.__new__':\n"
        "        os.write(note, (event + '\\n').encode())\n"
        "sys.addaudithook(hook)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return note


def calling_home(url: str) -> dict[str, bytes]:
    """Files of several kinds that name an address on this machine wherever a reader might follow it."""
    entity = f'<?xml version="1.0"?><!DOCTYPE a SYSTEM "{url}/dtd" [<!ENTITY e SYSTEM "{url}/entity">]><a>&e;</a>'
    page = f'<html><base href="{url}/"><link rel="stylesheet" href="{url}/css"><img src="{url}/i.png"><p>x</p></html>'
    mail = f'From: a@b.example\nSubject: x\nContent-Type: message/external-body; access-type=URL; URL="{url}/m"\n\nx'
    return {"a.xml": entity.encode(), "a.html": page.encode(), "a.eml": mail.encode()}


def test_no_parser_tries_to_reach_anything(recorded: Path, sabotaged: Sabotage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        heard: list[object] = []
        threading.Thread(target=lambda: heard.append(_accepted(server)), daemon=True).start()
        files = {path.name: path.read_bytes() for path in sorted(FILES.glob("F*"))} | calling_home(url)
        tried = set()
        with ConversionProcess(memory_bytes=2**31, output_bytes=2**28) as process:
            for name, content in files.items():
                mime = kind_of(content, name)
                if mime not in FORMATS:
                    continue
                tried.add(format_of(mime).name)
                with contextlib.suppress(PermanentError):
                    process.convert(format_of(mime).name, content, timeout_s=60)
        assert {"docx", "pdf", "eml", "html"} <= tried
        assert recorded.read_text() == ""
        assert not heard


def _accepted(server: socket.socket) -> object:
    try:
        return server.accept()
    except OSError:
        return None


def test_what_a_parser_would_try_is_recorded_and_refused(recorded: Path) -> None:
    code = Path(recorded.parent, "sitecustomize.py").read_text()
    body = GOOD + "def convert(content):\n    import socket\n    socket.getaddrinfo('kanzlei.example', 80)\n"
    code += (
        "import types\nmodule = types.ModuleType('shared.ingest.convert.plain')\n"
        f"exec({body!r}, module.__dict__)\nsys.modules['shared.ingest.convert.plain'] = module\n"
    )
    Path(recorded.parent, "sitecustomize.py").write_text(code)
    with ConversionProcess(memory_bytes=2**30, output_bytes=2**20) as process, pytest.raises(UnreadableFileError):
        process.convert("plain", b"x", timeout_s=30)
    assert "socket.getaddrinfo" in recorded.read_text()


def test_a_file_of_two_gigabytes_is_refused_while_it_is_read(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "ablage"
    folder.mkdir()
    with (folder / "gross.pdf").open("wb") as file:
        file.truncate(2 * 2**30)
    (folder / "gut.txt").write_text("Ein Text.")
    before = psutil.Process().memory_info().rss
    report = world.service().ingest(LocalFolder("ablage", folder, SourceConfig(project=CONFIG.project)))
    found = {file.path: file.error or file.outcome for file in report.files}
    assert found == {"gross.pdf": "LimitExceededError", "gut.txt": Outcome.NEW}
    grown = psutil.Process().memory_info().rss - before
    assert grown < 2 * world.settings.ingest.max_file_bytes
