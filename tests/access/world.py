"""Small worlds by name: written to the database, and asked through every evaluator of the product at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from shared.access import predicate
from shared.access.caller import Caller
from shared.access.expansion import expand
from shared.access.predicate import Viewer, among_documents, among_seqs, among_versions
from shared.access.principals import normalise, normalise_all, qualify
from shared.access.service import AccessService
from shared.db.tables import access, catalog, sources
from shared.settings import Security, load_settings
from shared.types import AclMode, SourceId
from tests.access import reference

Grants = Sequence[tuple[str, str]]
"""(principal as written, "allow" or "deny")."""


def allow(*principals: str) -> list[tuple[str, str]]:
    return [(principal, "allow") for principal in principals]


def deny(*principals: str) -> list[tuple[str, str]]:
    return [(principal, "deny") for principal in principals]


def id_of(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, name)


@dataclass
class World:
    """Everything by name. An object's ACL `None` was never mirrored; an empty one names nobody."""

    projects: dict[str, Grants] = field(default_factory=dict)
    documents: dict[str, tuple[str | None, Grants]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    objects: dict[str, tuple[str, Grants | None, bool]] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)
    memberships: set[tuple[str, str, str]] = field(default_factory=set)
    aliases: set[tuple[str, str]] = field(default_factory=set)

    # A vocabulary for tests that read like a story.
    def project(self, name: str, grants: Grants = ()) -> World:
        self.projects[name] = grants
        return self

    def document(self, name: str, project: str | None = None, grants: Grants = ()) -> World:
        self.documents[name] = (project, grants)
        return self

    def source(self, name: str, kind: str) -> World:
        self.sources[name] = kind
        return self

    def file(
        self, name: str, source: str, document: str, acl: Grants | None = None, *, version: str = "", gone: bool = False
    ) -> World:
        """One object at a source, seen as a version (of its own name unless told otherwise) of a document."""
        self.objects[name] = (source, acl, gone)
        self.versions[version or name] = document
        self.seen.add((version or name, name))
        return self

    def member(self, source: str, group: str, member: str) -> World:
        self.memberships.add((source, group, member))
        return self

    def alias(self, principal: str, alias: str) -> World:
        self.aliases.add((principal, alias))
        return self


def write(connection: sa.Connection, world: World) -> None:
    """Write the world, each thing under the id that follows from its name."""

    def put(table: sa.Table, rows: Iterable[dict[str, object]]) -> None:
        if listed := list(rows):
            connection.execute(sa.insert(table).values(listed))

    def grants(column: str, kind: str, items: Iterable[tuple[str, Grants]]) -> list[dict[str, object]]:
        found = {
            (id_of(f"{kind}/{name}"), normalise(principal), effect)
            for name, listed in items
            for principal, effect in listed
        }
        return [{column: target, "principal": principal, "effect": effect} for target, principal, effect in found]

    put(catalog.projects, ({"id": id_of(f"project/{p}"), "key": p, "title": p} for p in world.projects))
    put(
        catalog.documents,
        (
            {"id": id_of(f"document/{d}"), "project_id": project and id_of(f"project/{project}"), "title": d}
            for d, (project, _) in world.documents.items()
        ),
    )
    put(
        catalog.document_versions,
        (
            {
                "id": id_of(f"version/{v}"),
                "document_id": id_of(f"document/{d}"),
                "sha256": v,
                "title": v,
                "mime": "text/plain",
                "size_bytes": 1,
            }
            for v, d in world.versions.items()
        ),
    )
    put(
        sources.sources,
        ({"id": id_of(f"source/{s}"), "name": s, "kind": kind} for s, kind in world.sources.items()),
    )
    put(
        sources.source_objects,
        (
            {
                "id": id_of(f"object/{o}"),
                "source_id": id_of(f"source/{source}"),
                "external_id": o,
                "path": o,
                "name": o,
                "acl_state": "unknown" if acl is None else "known",
                "deleted_at": sa.func.now() if gone else None,
            }
            for o, (source, acl, gone) in world.objects.items()
        ),
    )
    put(
        sources.version_sources,
        ({"version_id": id_of(f"version/{v}"), "source_object_id": id_of(f"object/{o}")} for v, o in world.seen),
    )
    put(access.project_grants, grants("project_id", "project", world.projects.items()))
    put(access.document_grants, grants("document_id", "document", ((d, g) for d, (_, g) in world.documents.items())))
    mirrored = (
        (o, [(_qualified(source, principal), effect) for principal, effect in acl or ()])
        for o, (source, acl, _) in world.objects.items()
    )
    put(access.source_object_grants, grants("source_object_id", "object", mirrored))
    edges = {(id_of(f"source/{s}"), _qualified(s, g), _qualified(s, m)) for s, g, m in world.memberships}
    put(
        access.source_group_members,
        ({"source_id": s, "group_principal": g, "member_principal": m} for s, g, m in edges),
    )
    put(
        access.principal_aliases,
        ({"principal": normalise(p), "alias": normalise(a)} for p, a in world.aliases),
    )


def _qualified(source: str, principal: str) -> str:
    normal = normalise(principal)
    assert normal is not None
    return qualify(SourceId(id_of(f"source/{source}")), normal)


def uncached(mode: AclMode, **changes: object) -> Security:
    """Settings under which every scope is compiled anew."""
    security = load_settings({}).security
    return security.model_copy(
        update={
            "source_acl_mode": mode,
            "keep_scopes_in_process": 0,
            "keep_scopes_in_database": False,
            **changes,
        }
    )


@dataclass(frozen=True)
class Answer:
    """What all evaluators agreed on."""

    versions: frozenset[uuid.UUID]
    observations: frozenset[tuple[uuid.UUID, uuid.UUID]]


def ask(connection: sa.Connection, principals: Iterable[str], mode: AclMode = AclMode.SUFFICIENT) -> Answer:
    """Ask the compiled scope, the predicate in each of its forms and the reference; they must agree."""
    facts = reference.load(connection)
    held = normalise_all(principals)
    expected = reference.visible(facts, held, mode)
    version_of = {seq: version for version, seq in facts.seq_of.items()}

    service = AccessService(connection.engine, uncached(mode))
    scope = service.compile_scope(connection, Caller("test", held))
    assert scope.principals == reference.expand(facts, held) == expand(connection, held)
    assert {version_of[seq] for seq in scope.visible} == expected

    viewer = Viewer(scope.principals, mode)
    found: set[tuple[uuid.UUID, uuid.UUID | None]] = set()
    documents = set(facts.document_of.values())
    for among in (
        predicate.EVERYTHING,
        among_seqs(list(version_of)),
        among_versions(list(facts.document_of)),
        among_documents(list(documents)),
    ):
        visible = predicate.visible_versions(viewer, among=among)
        citable = predicate.citable_observations(viewer, visible)
        rows = connection.execute(
            sa.select(visible.c.version_id, visible.c.seq, visible.c.document_id, citable.c.source_object_id).join_from(
                visible, citable, citable.c.version_id == visible.c.version_id, isouter=True
            )
        ).all()
        assert len(rows) == len(set(rows))
        assert all(facts.seq_of[r.version_id] == r.seq for r in rows)
        assert all(facts.document_of[r.version_id] == r.document_id for r in rows)
        found = {(row.version_id, row.source_object_id) for row in rows}
        # A left join: a visible version without a citable observation would show as None.
        assert found == reference.citable(facts, held, mode)
        assert {version for version, _ in found} == expected
    return Answer(frozenset(expected), frozenset((v, o) for v, o in found if o is not None))


def sees(connection: sa.Connection, world: World, *principals: str, mode: AclMode = AclMode.SUFFICIENT) -> set[str]:
    """Return the names of the versions that a caller with these principals sees."""
    answer = ask(connection, principals, mode)
    return {name for name in world.versions if id_of(f"version/{name}") in answer.versions}


def cites(connection: sa.Connection, world: World, *principals: str, mode: AclMode = AclMode.SUFFICIENT) -> set[str]:
    """Return the names of the objects that a caller with these principals may be shown."""
    answer = ask(connection, principals, mode)
    shown = {seen_at for _, seen_at in answer.observations}
    return {name for name in world.objects if id_of(f"object/{name}") in shown}
