"""The invented firm as the product knows it: people, projects with grants and walls, matters with parties, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from local.acl_file import AclFile, apply
from local.people import Membership, register
from local.samples.firm import Firm, Matter, Placement, Project, Source
from shared.access.grants import set_project_grants
from shared.access.snapshots import AclEntry
from shared.db.tables.catalog import matter_parties, matters, parties, projects
from shared.ingest.metadata.party_names import name_key
from shared.ingest.report import IngestReport
from shared.ingest.service import Progress
from shared.runtime.bootstrap import Services
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.sources.local_fs import LocalFolder
from shared.types import Effect, ProjectId, SourceId

SETTER = "user:demo"
_OPENING_REASON = "The team of the client file."


def register_people(firm: Firm) -> None:
    """Put the firm's people with their groups into the local issuer's directory."""
    register({person.email: Membership(person.groups, person.admin) for person in firm.people})


def take_in(
    services: Services,
    firm: Firm,
    folder: Path,
    *,
    progress_of: Callable[[str], Callable[[Progress], None] | None],
) -> list[IngestReport]:
    """Ingest the built samples below `folder`, source by source; walls and ACLs stand before anything is found."""
    reports = []
    for source in firm.sources:
        files = LocalFolder(source.name, folder / source.name, source_config(firm, source))

        def before_content(source_id: SourceId, name: str = source.name) -> None:
            _write_parties(services.engine, firm)
            _write_grants(services.engine, firm)
            apply(services.engine, source_id, acl_of(firm, name), as_of=datetime.now(UTC))

        reports.append(
            services.ingest_service().ingest(files, progress=progress_of(source.name), after_scan=before_content)
        )
    services.index.refresh(services.settings.retrieval.index_name)
    return reports


def source_config(firm: Firm, source: Source) -> SourceConfig:
    """Return the product's configuration of one of the firm's sources."""
    known_projects = {project.key: project for project in firm.projects}
    known_matters = {matter.key: matter for matter in firm.matters}
    return SourceConfig(places=tuple(_rule(place, known_projects, known_matters) for place in source.placements))


def acl_of(firm: Firm, source: str) -> AclFile:
    """Return what one source says about its objects and its groups, as the snapshot that `ki ingest --acl` takes.

    A group in an object's ACL is the source's own, so the source has to say who its members are.
    """
    start = f"{source}/"
    acls = [acl for acl in firm.object_acls if acl.file.startswith(start)]
    groups = {grant.principal for acl in acls for grant in acl.grants if grant.principal.startswith("group:")}
    return AclFile(
        objects={
            acl.file.removeprefix(start): tuple(
                AclEntry(principal=grant.principal, effect=Effect(grant.effect)) for grant in acl.grants
            )
            for acl in acls
        },
        memberships={group: _members(firm, group.removeprefix("group:")) for group in sorted(groups)},
    )


def _members(firm: Firm, group: str) -> tuple[str, ...]:
    return tuple(f"user:{person.email}" for person in firm.people if group in person.groups)


def _rule(place: Placement, known: Mapping[str, Project], matters_by_key: Mapping[str, Matter]) -> PlaceRule:
    matter = matters_by_key[place.matter] if place.matter else None
    return PlaceRule(
        prefix=place.path_prefix,
        project=ProjectRef(key=place.project, title=known[place.project].title),
        matter=MatterRef(
            key=matter.key,
            title=matter.title,
            reference_numbers=matter.reference_numbers,
            practice_area=matter.practice_area,
            status=matter.status,
        )
        if matter
        else None,
    )


def _write_grants(engine: sa.Engine, firm: Firm) -> None:
    walls = {(wall.project, wall.principal): wall.reason for wall in firm.walls}
    with engine.begin() as connection:
        for key, project_id in sorted(_ids(connection, projects).items()):
            project = next((each for each in firm.projects if each.key == key), None)
            if project is None:
                continue
            denied = [(principal, Effect.DENY) for (of, principal) in walls if of == key]
            allowed = [(grant.principal, Effect(grant.effect)) for grant in project.grants]
            reason = "; ".join(reason for (of, _), reason in walls.items() if of == key) or _OPENING_REASON
            set_project_grants(connection, ProjectId(project_id), [*denied, *allowed], by=SETTER, reason=reason)


def _write_parties(engine: sa.Engine, firm: Firm) -> None:
    named = sorted({party.name for matter in firm.matters for party in matter.parties})
    with engine.begin() as connection:
        # A party that a text has named before is known by its key alone; the matter says what it is called.
        insert = pg.insert(parties).values([{"name": name, "normalised_name": name_key(name)} for name in named])
        called = insert.on_conflict_do_update(
            index_elements=[parties.c.normalised_name], set_={"name": insert.excluded.name}
        )
        connection.execute(called)
        known = sa.select(parties.c.normalised_name, parties.c.id)
        by_party = {row.normalised_name: row.id for row in connection.execute(known)}
        by_key = _ids(connection, matters)
        links = [
            {"matter_id": by_key[matter.key], "party_id": by_party[name_key(party.name)], "role": party.role}
            for matter in firm.matters
            if matter.key in by_key
            for party in matter.parties
        ]
        if links:
            connection.execute(pg.insert(matter_parties).values(links).on_conflict_do_nothing())


def _ids(connection: sa.Connection, table: sa.Table) -> dict[str, UUID]:
    return {row.key: row.id for row in connection.execute(sa.select(table.c.key, table.c.id))}
