"""The process that converts: it alone parses what strangers wrote, within limits, without network or programs.

It reads one JSON line a file from standard input and answers one JSON line: `{}` or the class and text of an error.
Text and members are written to the folder that the request names. It ends when its input ends.

In between it may ask for the words of a picture, `{"recognise": true}`, having written it to that folder; the next line
of its input is the answer. So the program that recognises text is its parent's, and it starts none itself.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from PIL import Image

from shared import errors
from shared.ingest.convert.confine import confine
from shared.ingest.convert.formats import FORMATS, Conversion, Limits
from shared.ingest.convert.ocr import NotReadError, OcrRules, PageReader

TEXT_FILE = "text.json"
MEMBERS_FILE = "members.json"
PICTURE_FILE = "page.pgm"
TABLE_FILE = "page.tsv"
_REFUSED = frozenset(
    {
        "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
        "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
        "urllib.Request", "webbrowser.open",
    }
)  # fmt: skip


def main() -> None:
    """Serve conversions until standard input ends."""
    given = json.loads(sys.argv[1])
    limits = Limits(**given["limits"])
    rules = OcrRules(**given["ocr"]) if given["ocr"] else None
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    # Whatever a library prints must not look like an answer.
    os.dup2(2, 1)
    _limit(given["memory_bytes"], limits.output_bytes)
    confine()
    sys.addaudithook(_refuse)
    while line := sys.stdin.readline():
        request = json.loads(line)
        reader = PageReader(rules, _asking(say, Path(request["output"]))) if rules else None
        say(_answer(request, reader, limits))


def _asking(say: Callable[[dict[str, Any]], None], folder: Path) -> Callable[[Image.Image], str]:
    def ask(picture: Image.Image) -> str:
        picture.save(folder / PICTURE_FILE, "PPM")
        say({"recognise": True})
        answer = json.loads(sys.stdin.readline())
        if "failed" in answer:
            raise NotReadError(answer["failed"])
        return (folder / TABLE_FILE).read_text(encoding="utf-8")

    return ask


def _answer(request: dict[str, Any], reader: PageReader | None, limits: Limits) -> dict[str, str]:
    _limit_cpu(request["cpu_s"])
    try:
        content = Path(request["input"]).read_bytes()
        _write(_converted(request["format"], content, reader, limits), Path(request["output"]), limits)
    except errors.PermanentError as error:
        return {"error": type(error).__name__, "message": error.message}
    except (MemoryError, RecursionError) as error:
        what = "memory" if isinstance(error, MemoryError) else "nesting"
        return {"error": "LimitExceededError", "message": f"the file needs more {what} than is allowed"}
    except OSError as error:
        if error.errno in {errno.EFBIG, errno.ENOSPC}:
            return {"error": "LimitExceededError", "message": "the converted file is larger than is allowed"}
        return {"error": "UnreadableFileError", "message": f"the file cannot be read: {error.strerror or error}"}
    except Exception as error:  # noqa: BLE001 - a parser may raise anything; the parent must get a reason
        return {"error": "UnreadableFileError", "message": f"the file is broken: {type(error).__name__}: {error}"[:500]}
    return {}


def _converted(format_name: str, content: bytes, reader: PageReader | None, limits: Limits) -> Conversion:
    chosen = next((known for known in FORMATS.values() if known.name == format_name), None)
    if chosen is None:
        raise errors.UnsupportedFileError(f"there is no converter {format_name!r}")
    module = importlib.import_module(f"shared.ingest.convert.{format_name}")
    more = [*([reader] if chosen.reads_pictures else []), *([limits] if chosen.unpacks else [])]
    result = module.convert(content, *more)
    if not isinstance(result, Conversion):
        raise TypeError(f"{format_name} gave {type(result).__name__}")
    return result


def _write(conversion: Conversion, folder: Path, limits: Limits) -> None:
    members = conversion.members
    if len(members) > limits.members:
        raise errors.LimitExceededError(f"the file holds {len(members)} files; {limits.members} are allowed")
    text = conversion.text.to_json()
    if len(text) + sum(len(member.content or b"") for member in members) > limits.output_bytes:
        raise errors.LimitExceededError(f"the converted file is larger than {limits.output_bytes} bytes")
    (folder / TEXT_FILE).write_bytes(text)
    for position, member in enumerate(members):
        if member.content is not None:
            (folder / str(position)).write_bytes(member.content)
    about = [
        {
            "name": member.name,
            "folder": member.folder,
            "raw_name": member.raw_name.hex() if member.raw_name is not None else None,
            "refused": asdict(member.refused) if member.refused else None,
        }
        for member in members
    ]
    (folder / MEMBERS_FILE).write_text(json.dumps(about), encoding="utf-8")


def _limit(memory_bytes: int, output_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output_bytes, output_bytes))
    # macOS knows the limit but refuses to set it.
    with contextlib.suppress(ValueError, OSError) if sys.platform == "darwin" else contextlib.nullcontext():
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _limit_cpu(cpu_s: float) -> None:
    """End this process by itself when its parent is gone and a parser never comes back."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + cpu_s) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _refuse(event: str, _: object) -> None:
    if event in _REFUSED:
        raise PermissionError(errno.EPERM, f"a converter may not call {event}")


if __name__ == "__main__":
    main()
