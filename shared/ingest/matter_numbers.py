"""The numbers by which a matter is recognised: what all spellings of one have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import sqlalchemy as sa

from shared.db.tables.catalog import matters
from shared.db.tables.ingest import ingest_state
from shared.db.tables.matters import matter_assignments, matter_numbers
from shared.ingest import identifiers
from shared.sources.config import MatterRef
from shared.text.normalise import single_line
from shared.types import MatterMethod

STAGE = "classify_matter"
KINDS = frozenset({"file_number", "eu_case", "ecli", "authority", "application", "reference", "case"})
"""Kinds of identifiers that name a case or a file; a statute or an invoice names no matter."""

_GUESSED = (MatterMethod.NUMBER, MatterMethod.PARTY, MatterMethod.NONE)
_SEPARATORS = re.compile(r"[\W_]+")
_LETTERS = re.compile(r"^[a-z]{1,2}-(?=\d)")
_MAX_WORDS = 6
_MIN_NAME_KEY_CHARS = 4


def key_of(number: str) -> str:
    """Return what all spellings of a number share: "12 O 34/21" and, as files are called, "12_O_34-21"."""
    return _SEPARATORS.sub("-", single_line(number).casefold()).strip("-")


def keys_of_number(number: str) -> set[str]:
    """Return the keys of a configured number: as it is written, and in the canonical form if it has one."""
    found = [part for whole in identifiers.extract(number) for part in whole.each() if part.kind in KINDS]
    return {key for key in (key_of(number), *(key_of(part.canonical) for part in found)) if key}


def keys_of_identifiers(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the keys of what a text names, each with its spelling there.

    The letters before a chamber ("S 12 KR 3/20") are left out of many files' numbers: both forms count.
    """
    keys: dict[str, str] = {}
    for each in found:
        if each["kind"] in KINDS:
            key = key_of(each["canonical"])
            keys |= {key: each["raw"], _LETTERS.sub("", key): each["raw"]}
    return keys


def keys_of_name(name: str) -> dict[str, str]:
    """Return the key of every run of words in a file's name that could be a number, each with the words."""
    words = [word for word in _SEPARATORS.split(single_line(name)) if word]
    runs = (words[start:end] for start in range(len(words)) for end in range(start + 1, start + _MAX_WORDS + 1))
    found = {key_of(" ".join(run)): " ".join(run) for run in runs}
    return {key: run for key, run in found.items() if len(key) >= _MIN_NAME_KEY_CHARS and any(c.isdigit() for c in key)}


def bring_up(
    connection: sa.Connection, refs: Sequence[MatterRef], before: Mapping[str, tuple[UUID | None, bool]]
) -> None:
    """Write the numbers of matters whose configuration gives them.

    What was guessed in their projects is decided anew when a number has come or gone, when a matter has moved, or when
    one that a folder made is named now. `before` is the project of each that was there, and whether a folder made it.
    """
    if not refs:
        return
    wanted = {ref.key: ref for ref in refs}
    columns = (matters.c.key, matters.c.id, matters.c.project_id, matters.c.from_folder)
    rows = connection.execute(sa.select(*columns).where(matters.c.key.in_(sorted(wanted)))).all()
    given = {row.id: wanted[row.key] for row in rows if "reference_numbers" in wanted[row.key].model_fields_set}
    expected = {
        (matter_id, key): number
        for matter_id, ref in given.items()
        for number in ref.reference_numbers
        for key in keys_of_number(number)
    }
    stored = {
        (row.matter_id, row.key): row.number
        for row in connection.execute(sa.select(matter_numbers).where(matter_numbers.c.matter_id.in_(list(given))))
    }
    changed = {matter_id for (matter_id, _), _ in expected.items() ^ stored.items()}
    if changed:
        connection.execute(sa.delete(matter_numbers).where(matter_numbers.c.matter_id.in_(sorted(changed))))
        fresh = [
            {"matter_id": matter_id, "key": key, "number": number}
            for (matter_id, key), number in sorted(expected.items())
            if matter_id in changed
        ]
        if fresh:
            connection.execute(sa.insert(matter_numbers), fresh)
    moved = [row for row in rows if row.key in before and before[row.key] != (row.project_id, row.from_folder)]
    touched = {row.project_id for row in (*moved, *(row for row in rows if row.id in changed))}
    touched |= {before[row.key][0] for row in moved}
    reconsider(connection, sorted(project for project in touched if project is not None))


def reconsider(connection: sa.Connection, project_ids: Sequence[UUID]) -> None:
    """Let the next run decide anew about all objects of these projects whose matter was read from content.

    For whoever changes the numbers or the parties of a matter.
    """
    if not project_ids:
        return
    guessed = sa.select(matter_assignments.c.source_object_id).where(
        matter_assignments.c.project_id.in_(project_ids), matter_assignments.c.method.in_(_GUESSED)
    )
    connection.execute(
        sa.delete(ingest_state).where(ingest_state.c.stage == STAGE, ingest_state.c.source_object_id.in_(guessed))
    )
