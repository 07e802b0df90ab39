"""The class path of the local OpenSearch node: fetched by Maven and compiled once, then kept.

The folder's name is a hash of what it is made from, and it appears whole or not at all, so an interrupted fetch
or a changed POM never leaves a node with the wrong jars.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.java import Jdk, find_maven
from local.processes import StartError

_SOURCES = Path(__file__).parent / "opensearch_node"
_PARTS = ("pom.xml", "LocalOpenSearchNode.java", "log4j2.properties")
_FETCH_TIMEOUT_S = 540.0
_FORMAT = b"jars only"  # how the folder is laid out; a change makes it anew
MAIN_CLASS = "LocalOpenSearchNode"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A folder with everything the node's class path needs."""

    folder: Path

    @property
    def class_path(self) -> str:
        """The class path: all jars, of which one is ours. Only jars, because Java archives no loose classes."""
        return str(self.folder / "lib" / "*")

    def class_archive(self, jdk: Jdk) -> Path:
        """Return the file of classes this JDK has loaded and checked beforehand; it halves the work of a start."""
        return self.folder / f"classes-{jdk.version}.jsa"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the distribution while something is added to it."""
        with _locked(self.folder.parent):
            yield


def ensure_distribution(folder: Path, jdk: Jdk) -> Distribution:
    """Return the distribution below `folder`, fetching and compiling it if this version is not there yet.

    Safe to call from several processes at once: one builds, the others wait. Raises `StartError`.
    """
    place = folder / _fingerprint()
    if place.is_dir():
        return Distribution(place)
    with _locked(folder):
        if not place.is_dir():
            draft = folder / f"{place.name}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            _build(draft, jdk)
            draft.rename(place)
    return Distribution(place)


def is_installed(folder: Path) -> bool:
    """Tell whether the distribution of the present sources is there."""
    return (folder / _fingerprint()).is_dir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fingerprint() -> str:
    digest = hashlib.sha256(_FORMAT)
    for part in _PARTS:
        digest.update((_SOURCES / part).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _build(draft: Path, jdk: Jdk) -> None:
    lib, classes = draft / "lib", draft / "classes"
    lib.mkdir(parents=True)
    classes.mkdir()
    maven = [
        str(find_maven()),
        "--batch-mode",
        "--quiet",
        "--strict-checksums",
        f"--file={_SOURCES / 'pom.xml'}",
        "dependency:copy-dependencies",
        f"-DoutputDirectory={lib}",
        "-DincludeScope=runtime",
    ]
    _run(maven, what="Maven could not fetch OpenSearch", jdk=jdk)
    for plugin in lib.glob("*.zip"):
        _unpack_jars(plugin, lib)
        plugin.unlink()
    compiler = [str(jdk.javac), "--release", "21", "-cp", str(lib / "*"), "-d", str(classes)]
    _run([*compiler, str(_SOURCES / f"{MAIN_CLASS}.java")], what="the node's main class did not compile", jdk=jdk)
    with zipfile.ZipFile(lib / "local-node.jar", "w") as jar:
        jar.write(_SOURCES / "log4j2.properties", "log4j2.properties")
        for compiled in sorted(classes.glob("*.class")):
            jar.write(compiled, compiled.name)
    shutil.rmtree(classes)


def _unpack_jars(plugin: Path, lib: Path) -> None:
    """Put a plug-in's jars beside the others; a jar that is there already is the same file."""
    with zipfile.ZipFile(plugin) as archive:
        for name in archive.namelist():
            target = lib / Path(name).name
            if name.endswith(".jar") and not target.exists():
                target.write_bytes(archive.read(name))


def _run(command: list[str], *, what: str, jdk: Jdk) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_TIMEOUT_S,
            env={**os.environ, "JAVA_HOME": str(jdk.home)},
        )
    except subprocess.TimeoutExpired as error:
        raise StartError(f"{what}: no end after {_FETCH_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "error" in line]
        raise StartError(f"{what}: {' '.join(lines[:5]) or done.stderr[-500:]}")
