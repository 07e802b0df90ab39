"""The prompts as files, one a task, and how they are filled."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from shared.providers.embedding.model_input import sendable

_ENDING = ".txt"
_FILE = re.compile(r"version: (?P<version>\d+)\n=== system\n(?P<system>.+?)\n=== user\n(?P<user>.+)", re.DOTALL)
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_MARK_CHARS = 24


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as its file says it; `{{name}}` stands for a variable."""

    task: str
    version: int
    system: str
    user: str

    @property
    def variables(self) -> frozenset[str]:
        """The names that must be filled in."""
        return frozenset(_PLACE.findall(self.user))


@dataclass(frozen=True, slots=True)
class Filled:
    """What is sent: the instructions, and the request with the data in it."""

    system: str
    user: str


def fill(task: str, variables: Mapping[str, str]) -> Filled:
    """Return the prompt with each variable set between marks that it cannot contain.

    A mark is made from the value itself, so that whoever wrote a document cannot have known the one that ends it; and
    what stands in a value is never taken for a place of another variable. A variable too few or too many is a
    programming error.
    """
    prompt = load(task)
    if set(variables) != prompt.variables:
        raise TypeError(f"the prompt {task} takes {sorted(prompt.variables)}, not {sorted(variables)}")
    return Filled(prompt.system, _PLACE.sub(lambda place: _delimited(place[1], variables[place[1]]), prompt.user))


@cache
def load(task: str) -> Prompt:
    """Return the prompt of this name."""
    text = (resources.files(__package__) / f"{task}{_ENDING}").read_text(encoding="utf-8")
    found = _FILE.fullmatch(text.rstrip("\n"))
    if found is None:
        raise ValueError(f"the prompt {task} lacks its version, its system or its user part")
    return Prompt(task, int(found["version"]), found["system"].strip(), found["user"].strip())


@cache
def fingerprint() -> str:
    """Return what changes when any prompt does, its version or a word."""
    files = sorted(entry.name for entry in resources.files(__package__).iterdir() if entry.name.endswith(_ENDING))
    prompts = [load(name.removesuffix(_ENDING)) for name in files]
    return hashlib.sha256(repr(prompts).encode()).hexdigest()[:8]


def _delimited(name: str, value: str) -> str:
    clean = sendable(value)
    mark = _mark(clean)
    return f"<{name} {mark}>\n{clean}\n</{name} {mark}>"


def _mark(value: str) -> str:
    mark = hashlib.sha256(value.encode()).hexdigest()[:_MARK_CHARS]
    while mark in value:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:_MARK_CHARS]
    return mark
