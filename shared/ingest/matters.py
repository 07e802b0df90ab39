"""To which matter an object belongs: what was decided, what its path says, what its content and name say.

Only matters of the object's own project come into question, and the project follows from the source's configuration
alone: nothing that a file says can bring it before other people (ADR 0013).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.prepared import hot
from shared.db.tables.base import Json, TextArray
from shared.db.tables.catalog import matter_parties, matters, parties, projects
from shared.db.tables.matters import matter_assignments, matter_numbers
from shared.db.tables.sources import source_objects, sources
from shared.errors import InvalidRequestError, NotVisibleError
from shared.ingest import objects, places
from shared.ingest.facts import FoundParty
from shared.ingest.matter_numbers import keys_of_identifiers, keys_of_name
from shared.ingest.objects import ObjectRow
from shared.ingest.places import PathPlace
from shared.sources.config import SourceConfig
from shared.text.normalise import single_line
from shared.types import MatterId, MatterMethod, SourceObjectId

_CERTAIN, _IN_NAME, _IN_TEXT, _BY_PARTY = 1.0, 0.9, 0.8, 0.6
_MAX_EVIDENCE = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """The matter by its key, None for no matter; how it was found, how sure that is (0 to 1), and by what.

    Evidence is [{"kind", "value", "matters"}]: where several matters fit alike there is none, and all are named.
    """

    matter: str | None
    method: MatterMethod
    confidence: float = _CERTAIN
    evidence: tuple[Mapping[str, Any], ...] = ()


NOTHING = Finding(None, MatterMethod.NONE)


def by_hand(row: ObjectRow, project: str | None) -> Finding | None:
    """Return what an administrator decided, None if nothing or if the object has come to another project since."""
    return _kept(row.manual_place, project, MatterMethod.MANUAL)


def inherited(row: ObjectRow, project: str | None) -> Finding | None:
    """Return the matter of the file that the object lies in; None if it lies in none, or that one has no place yet."""
    return _kept(row.parent_place, project, MatterMethod.INHERITED)


def by_path(place: PathPlace) -> Finding | None:
    """Return the matter of the path."""
    if place.matter is None:
        return None
    evidence = ({"kind": "folder", "value": "/".join(place.folders)},) if place.folders else ()
    return Finding(place.matter, place.method, _CERTAIN, evidence)


def by_numbers(
    connection: sa.Connection, project: str, name: str, identifiers: Iterable[Mapping[str, str]]
) -> Finding | None:
    """Return the matter whose number stands in the object's name, else in its text; None if no number does.

    A name counts before the text: a text may cite the numbers of other matters.
    """
    in_name, in_text = keys_of_name(name), keys_of_identifiers(identifiers)
    if not in_name and not in_text:
        return None
    rows = connection.execute(_with_numbers(), {"project": project, "keys": sorted({*in_name, *in_text})}).all()
    for kind, found, confidence in (("name", in_name, _IN_NAME), ("text", in_text, _IN_TEXT)):
        fitting = [(row.matter, found[row.key]) for row in rows if row.key in found]
        if fitting:
            return _the_only(fitting, MatterMethod.NUMBER, f"number in {kind}", confidence)
    return None


def by_parties(connection: sa.Connection, project: str, found: Iterable[FoundParty]) -> Finding | None:
    """Return the matter that has more of these parties than any other; None if none has one.

    A client is a party to all of his matters: it takes the other side to tell them apart.
    """
    # As `parties.normalised_name` may have been written, with and without the usual spelling of the legal form.
    spellings = (name for party in found for name in (party.key, party.name, party.text))
    wanted = sorted({single_line(name).lower() for name in spellings})
    if not wanted:
        return None
    held: dict[str, set[str]] = {}
    for row in connection.execute(_with_parties(), {"project": project, "names": wanted}):
        held.setdefault(row.matter, set()).add(row.name)
    if not held:
        return None
    most = max(map(len, held.values()))
    pairs = [(matter, name) for matter, names in held.items() if len(names) == most for name in names]
    return _the_only(pairs, MatterMethod.PARTY, "party", _BY_PARTY)


def record(connection: sa.Connection, object_id: SourceObjectId, project: str | None, finding: Finding) -> None:
    """Write the finding in one statement; what is right is not touched, and what an administrator decided stays."""
    connection.execute(
        _record(),
        {
            "object_id": object_id,
            "project": project,
            "matter": finding.matter,
            "found_by": finding.method,
            "sure": finding.confidence,
            "seen": [dict(item) for item in finding.evidence],
        },
    )


def assign(
    connection: sa.Connection, object_id: SourceObjectId, matter_id: MatterId | None, *, by: str, reason: str
) -> None:
    """Let an administrator decide: the matter, or None for no matter. The next run of the source follows it.

    It holds for the files in the object too, survives every re-run, and ends when the object comes to another
    project. Raises `InvalidRequestError` for a matter of another project than the object's.
    """
    row = connection.execute(
        sa.select(*objects.columns(), sources.c.config)
        .join(sources, sources.c.id == source_objects.c.source_id)
        .where(source_objects.c.id == object_id)
    ).one_or_none()
    if row is None:
        raise NotVisibleError(f"there is no source object {object_id}")
    project = places.by_path(SourceConfig.model_validate(row.config), ObjectRow(*row[:-1])).project
    project_id = connection.execute(sa.select(projects.c.id).where(projects.c.key == project)).scalar()
    if matter_id is not None:
        chosen = connection.execute(sa.select(matters.c.project_id).where(matters.c.id == matter_id)).one_or_none()
        if chosen is None:
            raise NotVisibleError(f"there is no matter {matter_id}")
        if chosen.project_id != project_id:
            raise InvalidRequestError(
                f"the object lies in the project {project!r}, the matter in another; move the file",
                field="matter_id",
            )
    values: dict[str, Any] = {
        "project_id": project_id,
        "matter_id": matter_id,
        "method": MatterMethod.MANUAL,
        "confidence": _CERTAIN,
        "evidence": [{"kind": "reason", "value": reason}],
        "decided_by": by,
        "decided_at": sa.func.now(),
    }
    insert = pg.insert(matter_assignments).values(source_object_id=object_id, **values)
    connection.execute(
        insert.on_conflict_do_update(index_elements=[matter_assignments.c.source_object_id], set_=values)
    )


def release(connection: sa.Connection, object_id: SourceObjectId) -> None:
    """Take an administrator's decision back: the next run decides again."""
    connection.execute(
        sa.delete(matter_assignments).where(
            matter_assignments.c.source_object_id == object_id, matter_assignments.c.method == MatterMethod.MANUAL
        )
    )


def _kept(place: str | None, project: str | None, method: MatterMethod) -> Finding | None:
    if place is None:
        return None
    keys = places.place_of_key(place)
    return Finding(keys.matter, method) if keys.project == project else None


def _the_only(fitting: Sequence[tuple[str, str]], method: MatterMethod, kind: str, confidence: float) -> Finding:
    """Return the one matter of these (matter, value) pairs; no matter when they speak for several."""
    named = sorted({matter for matter, _ in fitting})
    evidence = [
        {"kind": kind, "value": value, "matters": sorted({matter for matter, other in fitting if other == value})}
        for value in sorted({value for _, value in fitting})
    ][:_MAX_EVIDENCE]
    if len(named) > 1:
        return Finding(None, MatterMethod.NONE, _CERTAIN, tuple(evidence))
    return Finding(named[0], method, confidence, tuple(evidence))


def _in_project() -> sa.ColumnElement[bool]:
    """Return: a matter of the project that somebody has named. Content leads into no folder's matter."""
    return (projects.c.key == sa.bindparam("project", type_=sa.Text)) & ~matters.c.from_folder


@cache
def _with_numbers() -> sa.Select[Any]:
    return hot(
        sa.select(matters.c.key.label("matter"), matter_numbers.c.key)
        .join(matters, matters.c.id == matter_numbers.c.matter_id)
        .join(projects, projects.c.id == matters.c.project_id)
        .where(_in_project(), matter_numbers.c.key == sa.any_(sa.bindparam("keys", type_=TextArray)))
    )


@cache
def _with_parties() -> sa.Select[Any]:
    return hot(
        sa.select(matters.c.key.label("matter"), parties.c.normalised_name.label("name"))
        .select_from(matter_parties)
        .join(parties, parties.c.id == matter_parties.c.party_id)
        .join(matters, matters.c.id == matter_parties.c.matter_id)
        .join(projects, projects.c.id == matters.c.project_id)
        .where(_in_project(), parties.c.normalised_name == sa.any_(sa.bindparam("names", type_=TextArray)))
    )


@cache
def _record() -> sa.Insert:
    table = matter_assignments
    given = sa.select(
        sa.bindparam("object_id", type_=sa.Uuid).label("source_object_id"),
        sa.select(projects.c.id).where(projects.c.key == sa.bindparam("project", type_=sa.Text)).scalar_subquery(),
        matters.c.id,
        sa.bindparam("found_by", type_=sa.Text),
        sa.bindparam("sure", type_=sa.REAL),
        sa.bindparam("seen", type_=Json),
    ).select_from(sa.select(sa.bindparam("matter", type_=sa.Text).label("key")).subquery("wanted"))
    wanted = given.get_final_froms()[0]
    names = ["source_object_id", "project_id", "matter_id", "method", "confidence", "evidence"]
    known = given.outerjoin(matters, matters.c.key == wanted.c.key).where(
        # A matter that is not registered: relating the object says so.
        matters.c.id.is_not(None) | wanted.c.key.is_(None)
    )
    insert = pg.insert(table).from_select(names, known)
    changed = {name: insert.excluded[name] for name in names[1:]}
    differs = sa.or_(*(table.c[name].is_distinct_from(value) for name, value in changed.items()))
    return hot(
        insert.on_conflict_do_update(
            index_elements=[table.c.source_object_id],
            set_={**changed, "decided_at": sa.func.now()},
            where=(table.c.method != MatterMethod.MANUAL) & differs,
        )
    )
