"""The Java development kit that compiles and runs the OpenSearch node, found by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.processes import StartError

OLDEST = 21
_SYSTEM_FOLDERS = (
    Path("/usr/lib/jvm"),
    Path("/usr/java"),
    Path("/opt/java"),
    Path("/Library/Java/JavaVirtualMachines"),
)


@dataclass(frozen=True, slots=True)
class Jdk:
    """A Java development kit of version 21 or newer."""

    home: Path
    version: int

    @property
    def java(self) -> Path:
        """The program that runs a class."""
        return self.home / "bin" / "java"

    @property
    def javac(self) -> Path:
        """The compiler."""
        return self.home / "bin" / "javac"


def find_jdk(
    environment: Mapping[str, str] | None = None, *, system_folders: tuple[Path, ...] = _SYSTEM_FOLDERS
) -> Jdk:
    """Return the first fitting JDK of: JAVA_HOME, `javac` on the PATH, the system's folders (newest first).

    Raises `StartError` that says what was seen and what to install.
    """
    env = os.environ if environment is None else environment
    seen: list[str] = []
    for home in _candidates(env, system_folders):
        version = _version(home)
        if version is None:
            continue
        if version >= OLDEST and (home / "bin" / "javac").exists():
            return Jdk(home, version)
        lack = "" if (home / "bin" / "javac").exists() else ", without javac"
        seen.append(f"{home} (Java {version}{lack})")
    found = f" Found only: {'; '.join(dict.fromkeys(seen))}." if seen else ""
    raise StartError(
        f"OpenSearch needs a JDK of version {OLDEST} or newer.{found} Install one, for example Temurin 25 "
        "(Debian and Ubuntu: temurin-25-jdk or openjdk-21-jdk-headless; macOS: brew install temurin), or set "
        "JAVA_HOME to it, and run the command again"
    )


def find_maven(environment: Mapping[str, str] | None = None) -> Path:
    """Return the Maven program. Raises `StartError` that says what to install."""
    env = os.environ if environment is None else environment
    maven = shutil.which("mvn", path=env.get("PATH", os.defpath))
    if maven is None:
        raise StartError(
            "Maven (mvn) is needed once to fetch OpenSearch. Install it (Debian and Ubuntu: apt-get install maven; "
            "macOS: brew install maven) and run the command again"
        )
    return Path(maven)


def _candidates(env: Mapping[str, str], system_folders: tuple[Path, ...]) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"])
    for program in ("javac", "java"):
        on_path = shutil.which(program, path=env.get("PATH", ""))
        # On macOS /usr/bin/java is a stub of the system, not part of a JDK.
        if on_path is not None and not (sys.platform == "darwin" and on_path.startswith("/usr/bin/")):
            yield Path(on_path).resolve().parent.parent
    kits = [kit for folder in system_folders if folder.is_dir() for kit in folder.iterdir() if kit.is_dir()]
    homes = [kit / "Contents" / "Home" if (kit / "Contents" / "Home").is_dir() else kit for kit in kits]
    yield from sorted(homes, key=lambda home: (_version(home) or 0, str(home)), reverse=True)
    if sys.platform == "darwin":
        yield from _macos_java_home()


def _macos_java_home() -> Iterator[Path]:
    answer = subprocess.run(
        ["/usr/libexec/java_home", "-v", f"{OLDEST}+"], capture_output=True, text=True, check=False, timeout=20
    )
    if answer.returncode == 0:
        yield Path(answer.stdout.strip())


def _version(home: Path) -> int | None:
    """Return the main version a Java folder states in its `release` file, else what its program says."""
    if not (home / "bin" / "java").exists():
        return None
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        text = _ask(home)
    stated = re.search(r'(?:JAVA_VERSION="|version ")(?:1\.)?(\d+)', text)
    return int(stated.group(1)) if stated else None


def _ask(home: Path) -> str:
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr
