"""Classify: to which matter of its project the object belongs.

In this order: an administrator's decision; the file that it lies in; its path, by configuration or by folder; a
matter's number in its name or text; the parties of one matter. What is ambiguous is in no matter.
"""

from __future__ import annotations

from shared.db.engine import reading, recording
from shared.errors import MisconfiguredError
from shared.ingest import matters, places
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.facts import Reading
from shared.ingest.matters import Finding
from shared.ingest.places import PathPlace
from shared.types import MatterMethod


def classify_matter(call: StageInput, services: Services) -> StageResult:
    """Record the object's matter with its evidence, and hand on its key."""
    place = places.by_path(services.source.config, call.row)
    finding = matters.by_hand(call.row, place.project)
    if finding is None:
        finding = matters.inherited(call.row, place.project) or matters.by_path(place)
        finding = finding or _by_content(call, services, place.project)
        if finding.method is MatterMethod.FOLDER:
            _make(services, place)
        with recording(services.engine) as connection:
            matters.record(connection, call.row.id, place.project, finding)
    return StageResult({} if finding.matter is None else {"matter": finding.matter}, note=finding.method)


def _by_content(call: StageInput, services: Services, project: str | None) -> Finding:
    if project is None:
        # Nothing fences the choice in.
        return matters.NOTHING
    facts = Reading.from_json(services.store.get(call.payload.need("facts_key"))).content
    with reading(services.engine) as connection:
        found = matters.by_numbers(connection, project, call.row.name, facts.identifiers)
        return found or matters.by_parties(connection, project, facts.parties) or matters.NOTHING


def _make(services: Services, place: PathPlace) -> None:
    if place.project is None or place.matter is None:
        raise AssertionError("a folder's matter lies in a project")
    with recording(services.engine) as connection:
        is_here = places.make_folder_matter(connection, place.project, place.matter, place.folders[-1])
    if not is_here:
        raise MisconfiguredError(
            f"the folder {'/'.join(place.folders)!r} would be the matter {place.matter!r}, but that belongs to another"
            f" project, or the project {place.project!r} is not registered; rename the matter, or scan the source"
        )
