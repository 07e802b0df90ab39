"""What is read of one version about others, as values: an intent is met by whatever bears its key in the same realm.

A key is `sort:value`; its sort says how far it holds (`rows.Realms`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from shared.text.normalise import single_line
from shared.types import RelationKind

# Where documents without a project or matter are: only keys that are unique by themselves hold there.
NOWHERE = UUID(int=0)
_MAX_KEY_BYTES = 200
_MAX_QUOTE_CHARS = 300


# Sorts of keys that say the same wherever they are written; all others are common words within a matter.
PROJECT_SORTS = ("mail", "ecli", "file_number", "eu_case")
# Unique by themselves, because they name an object or a folder of ours.
UNIQUE_SORTS = ("member", "annex", "folder")


@dataclass(frozen=True, slots=True)
class Intent:
    """This version is `kind` to the one that bears `key`. `by_name`: read from the file's name or place."""

    kind: RelationKind
    key: str
    confidence: float
    evidence: Mapping[str, Any]
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """What others call this version."""

    key: str
    evidence: Mapping[str, Any]
    by_name: bool = False


def key_of(sort: str, value: str) -> str:
    """Return the one spelling of a key; a long value is replaced by its hash, because the index holds no long ones."""
    key = f"{sort}:{single_line(value)}"
    if len(key.encode()) <= _MAX_KEY_BYTES:
        return key
    return f"{sort}:#{hashlib.sha256(key.encode()).hexdigest()}"


def dated(sort: str, day: date) -> str:
    """Return the key of a paper of this sort and day."""
    return key_of(sort, day.isoformat())


def quote(source: str, text: str, start: int, end: int) -> dict[str, Any]:
    """Return evidence that quotes `text[start:end]` of the version itself."""
    end = min(end, start + _MAX_QUOTE_CHARS)
    return {"source": source, "text": text[start:end], "char_start": start, "char_end": end}
