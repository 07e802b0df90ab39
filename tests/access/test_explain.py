from __future__ import annotations

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.access.expansion import expand
from shared.access.explain import VersionExplanation, explain
from shared.access.predicate import Viewer
from shared.access.principals import normalise_all
from shared.db.tables.access import project_grants
from shared.types import AclMode, DocumentId
from tests.access import reference
from tests.access.generated import callers, worlds
from tests.access.world import World, allow, deny, id_of, write
from tests.statements import counted


def explained(
    connection: sa.Connection, document: str, *principals: str, mode: AclMode = AclMode.SUFFICIENT
) -> list[VersionExplanation]:
    viewer = Viewer(expand(connection, normalise_all(principals)), mode)
    return explain(connection, viewer, DocumentId(id_of(f"document/{document}")))


def firm() -> World:
    return (
        World()
        .project("Nordlicht", allow("group:team-a"))
        .source("ablage", "local_fs")
        .source("dms", "external")
        .document("spa", "Nordlicht", deny("user:ben"))
    )


def test_a_line_names_the_grant_that_decided_and_why(connection: sa.Connection) -> None:
    write(connection, firm().file("spa.docx", "ablage", "spa"))
    connection.execute(
        sa.insert(project_grants).values(
            project_id=id_of("project/Nordlicht"),
            principal="group:team-b",
            effect="deny",
            granted_by="user:partner",
            reason="advised the other bidder",
        )
    )
    lines = {
        name: [version.line for version in explained(connection, "spa", *principals)]
        for name, principals in {
            "anna": ("user:anna", "group:team-a"),
            "ben": ("user:ben", "group:team-a"),
            "cem": ("user:cem", "group:team-a", "group:team-b"),
            "dana": ("user:dana",),
            "admin": ("role:admin",),
        }.items()
    }
    assert lines == {
        "anna": ["visible: allowed by project grant for group:team-a on Nordlicht; spa.docx has no ACL of its own"],
        "ben": ["not visible: denied by document grant for user:ben on spa"],
        "cem": ["not visible: denied by project grant for group:team-b on Nordlicht (advised the other bidder)"],
        "dana": ["not visible: no grant allows it"],
        "admin": ["visible: administrator"],
    }


def test_a_local_allow_does_not_open_an_external_object_and_the_line_says_so(connection: sa.Connection) -> None:
    write(connection, firm().file("spa.docx", "dms", "spa"))
    assert [v.line for v in explained(connection, "spa", "group:team-a")] == ["not visible: open at no source"]


def test_every_version_is_explained_by_itself_in_one_statement(connection: sa.Connection) -> None:
    world = firm().file("entwurf", "dms", "spa", deny("user:anna")).file("final", "dms", "spa", allow("user:anna"))
    world.file("weg", "ablage", "spa", gone=True)
    write(connection, world)
    viewer = Viewer(expand(connection, normalise_all(["user:anna"])), AclMode.SUFFICIENT)
    with counted(connection.engine) as statements:
        found = explain(connection, viewer, DocumentId(id_of("document/spa")))
    assert len(statements) == 1
    assert {version.line for version in found} == {
        "not visible: denied by source grant for user:anna on entwurf",
        "visible: allowed by source grant for user:anna on final; source grant for user:anna on final",
        "not visible: no grant allows it",
    }


def test_an_unknown_document_has_no_explanation(connection: sa.Connection) -> None:
    assert explained(connection, "nothing", "role:admin") == []


def test_an_explanation_never_contradicts_the_rule(engine: sa.Engine) -> None:
    @settings(
        deadline=None,
        database=None,
        derandomize=True,
        max_examples=25,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(worlds(), callers, st.sampled_from(list(AclMode)))
    def compare(world: World, principals: set[str], mode: AclMode) -> None:
        with engine.connect() as connection:
            write(connection, world)
            facts = reference.load(connection)
            visible = reference.visible(facts, principals, mode)
            for document in world.documents:
                for version in explained(connection, document, *principals, mode=mode):
                    assert version.is_visible == (version.version_id in visible)
                    assert version.line.startswith("visible") == version.is_visible, version
            connection.rollback()

    compare()
