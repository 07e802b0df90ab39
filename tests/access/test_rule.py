"""The consequences that docs/access-model.md lists, each by name. `sees` asks every evaluator."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from shared.types import AclMode
from tests.access.world import World, allow, ask, cites, deny, id_of, sees, write

SUFFICIENT, INTERSECT = AclMode.SUFFICIENT, AclMode.INTERSECT
BOTH = pytest.mark.parametrize("mode", [SUFFICIENT, INTERSECT])


def firm() -> World:
    """Two projects and one of each kind of source; tests add the files that they are about."""
    return (
        World()
        .project("nordlicht", allow("group:team-a"))
        .project("westerkamp", allow("group:team-b"))
        .source("ablage", "local_fs")
        .source("dms", "external")
        .source("bucket", "s3")
        .document("spa", "nordlicht")
        .document("bewertung", "westerkamp")
        # Control: what team A always sees, so that an empty answer cannot pass for a wall.
        .document("kontrolle", "nordlicht")
        .file("kontrolle", "ablage", "kontrolle")
    )


@BOTH
def test_a_project_allow_opens_a_local_file_without_acl(connection: sa.Connection, mode: AclMode) -> None:
    world = firm().file("spa", "ablage", "spa").file("bewertung", "ablage", "bewertung")
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle", "spa"}
    assert sees(connection, world, "user:ben", "group:team-b", mode=mode) == {"bewertung"}
    assert sees(connection, world, "user:cem", mode=mode) == set()


@BOTH
@pytest.mark.parametrize("source", ["dms", "bucket"])
def test_an_external_object_without_rows_is_invisible_even_to_a_project_member(
    connection: sa.Connection, source: str, mode: AclMode
) -> None:
    world = firm().file("never-mirrored", source, "spa").file("names-nobody", source, "spa", acl=())
    write(connection, world)
    assert sees(connection, world, "group:team-a", mode=mode) == {"kontrolle"}


@BOTH
def test_a_local_allow_never_opens_an_external_object(connection: sa.Connection, mode: AclMode) -> None:
    world = (
        firm().document("geheim", "nordlicht", allow("user:anna")).file("geheim", "dms", "geheim", allow("user:ben"))
    )
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle"}


@BOTH
def test_a_local_file_with_rows_behaves_like_an_external_one(connection: sa.Connection, mode: AclMode) -> None:
    world = firm().file("spa", "ablage", "spa", allow("user:ben"))
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle"}
    assert sees(connection, world, "user:ben", "group:team-a", mode=mode) == {"kontrolle", "spa"}


@BOTH
def test_a_known_acl_without_rows_names_nobody_but_administrators(connection: sa.Connection, mode: AclMode) -> None:
    world = firm().file("spa", "ablage", "spa", acl=())
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle"}
    assert sees(connection, world, "role:admin", mode=mode) == {"kontrolle", "spa"}


def test_a_source_allow_is_enough_only_in_sufficient_mode(connection: sa.Connection) -> None:
    world = firm().file("spa", "dms", "spa", allow("user:cem", "user:anna"))
    write(connection, world)
    assert sees(connection, world, "user:cem", mode=SUFFICIENT) == {"spa"}
    assert sees(connection, world, "user:cem", mode=INTERSECT) == set()
    assert sees(connection, world, "user:anna", "group:team-a", mode=INTERSECT) == {"kontrolle", "spa"}


def test_a_document_without_project_is_reached_through_document_or_source_allow(connection: sa.Connection) -> None:
    world = (
        firm()
        .document("lose", None, allow("user:anna"))
        .document("fremd", None)
        .file("lose", "ablage", "lose")
        .file("fremd", "dms", "fremd", allow("user:anna"))
    )
    write(connection, world)
    assert sees(connection, world, "user:anna") == {"lose", "fremd"}
    assert sees(connection, world, "user:anna", mode=INTERSECT) == {"lose"}
    # It never disappears because some project is visible.
    assert sees(connection, world, "user:anna", "group:team-a") == {"lose", "fremd", "kontrolle"}


@BOTH
@pytest.mark.parametrize("place", ["project", "document", "object"])
def test_a_deny_wins_wherever_it_stands(connection: sa.Connection, place: str, mode: AclMode) -> None:
    wall = deny("user:anna")
    world = firm().project("zu", [*allow("group:team-a"), *(wall if place == "project" else [])])
    world.document("akte", "zu", [*allow("user:anna"), *(wall if place == "document" else [])])
    world.file("akte", "dms", "akte", [*allow("user:ben", "user:anna"), *(wall if place == "object" else [])])
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle"}
    assert sees(connection, world, "user:ben", "group:team-a", mode=mode) == {"kontrolle", "akte"}


@BOTH
def test_a_deny_nobody_holds_changes_nothing(connection: sa.Connection, mode: AclMode) -> None:
    world = firm().project("nordlicht", [*allow("group:team-a"), *deny("group:nobody")])
    world.document("spa", "nordlicht", deny("user:nobody")).file("spa", "ablage", "spa")
    write(connection, world)
    assert sees(connection, world, "group:team-a", mode=mode) == {"kontrolle", "spa"}


def test_a_deny_at_a_tombstoned_object_no_longer_counts(connection: sa.Connection) -> None:
    world = firm().file("spa", "ablage", "spa")
    world.file("alt", "dms", "spa", deny("user:anna"), version="spa", gone=True)
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a") == {"kontrolle", "spa"}


def test_a_deny_at_one_active_observation_closes_the_version(connection: sa.Connection) -> None:
    world = firm().file("spa", "ablage", "spa").file("mail", "dms", "spa", deny("user:anna"), version="spa")
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a") == {"kontrolle"}
    assert sees(connection, world, "user:ben", "group:team-a") == {"kontrolle", "spa"}


@BOTH
def test_a_tombstone_ends_an_observation_for_everyone_administrators_included(
    connection: sa.Connection, mode: AclMode
) -> None:
    world = firm().file("spa", "ablage", "spa", gone=True)
    write(connection, world)
    assert sees(connection, world, "role:admin", mode=mode) == {"kontrolle"}
    assert sees(connection, world, "group:team-a", mode=mode) == {"kontrolle"}


@BOTH
@pytest.mark.parametrize("name", ["role:admin", "system:admin"])
def test_administrators_skip_the_rule_but_need_an_active_observation(
    connection: sa.Connection, name: str, mode: AclMode
) -> None:
    world = firm().file("spa", "dms", "spa", deny(name)).file("weg", "ablage", "spa", gone=True)
    world.versions["nie-gesehen"] = "spa"
    write(connection, world)
    assert sees(connection, world, name, mode=mode) == {"kontrolle", "spa"}


def test_administrators_become_so_after_expansion(connection: sa.Connection) -> None:
    world = firm().file("spa", "dms", "spa").alias("group:it", "role:admin")
    write(connection, world)
    assert sees(connection, world, "group:it") == {"kontrolle", "spa"}
    assert sees(connection, world, "group:itx") == set()


@BOTH
def test_no_principals_see_nothing(connection: sa.Connection, mode: AclMode) -> None:
    world = firm()
    write(connection, world)
    assert sees(connection, world, mode=mode) == set()
    assert sees(connection, world, "", "   ", "nonsense", mode=mode) == set()


@BOTH
def test_a_walled_draft_stays_out_beside_a_readable_final(connection: sa.Connection, mode: AclMode) -> None:
    world = (
        firm()
        .file("entwurf", "dms", "spa", [*allow("group:team-a"), *deny("user:anna")])
        .file("endfassung", "dms", "spa", allow("group:team-a"))
    )
    write(connection, world)
    # The ACL names a group of the DMS; it opens for its members there, not for the firm's group of that name.
    assert sees(connection, world, "group:team-a", mode=mode) == {"kontrolle"}
    connection.rollback()
    world.member("dms", "group:team-a", "user:anna").member("dms", "group:team-a", "user:ben")
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", mode=mode) == {"kontrolle", "endfassung"}
    assert sees(connection, world, "user:ben", "group:team-a", mode=mode) == {"kontrolle", "entwurf", "endfassung"}


def test_a_wall_around_one_copy_neither_closes_nor_opens_another(connection: sa.Connection) -> None:
    world = firm().document("kopie", "westerkamp", deny("user:anna"))
    world.file("original", "ablage", "spa").file("kopie", "ablage", "kopie")
    write(connection, world)
    assert sees(connection, world, "user:anna", "group:team-a", "group:team-b") == {"kontrolle", "original"}
    assert sees(connection, world, "user:ben", "group:team-b") == {"kopie"}


def test_only_citable_observations_of_a_version_are_shown(connection: sa.Connection) -> None:
    world = firm().file("ordner", "ablage", "spa").file("dms-fremd", "dms", "spa", allow("user:ben"), version="ordner")
    world.file("dms-eigen", "dms", "spa", allow("user:anna"), version="ordner")
    world.file("papierkorb", "ablage", "spa", version="ordner", gone=True)
    write(connection, world)
    assert cites(connection, world, "user:anna", "group:team-a") == {"kontrolle", "ordner", "dms-eigen"}
    assert cites(connection, world, "user:anna") == {"dms-eigen"}
    assert cites(connection, world, "user:ben") == {"dms-fremd"}
    assert cites(connection, world, "role:admin") == {"kontrolle", "ordner", "dms-fremd", "dms-eigen"}


def test_a_delegated_observation_is_not_citable_on_a_source_allow_alone(connection: sa.Connection) -> None:
    world = firm().file("ordner", "ablage", "spa").file("dms", "dms", "spa", allow("user:cem"), version="ordner")
    write(connection, world)
    assert sees(connection, world, "user:cem") == {"ordner"}
    assert cites(connection, world, "user:cem") == {"dms"}


def test_a_mirrored_group_opens_only_at_its_own_source(connection: sa.Connection) -> None:
    world = (
        firm()
        .source("dms2", "external")
        .document("fremd", None)
        .file("spa", "dms", "spa", allow("group:partner"))
        .file("fremd", "dms2", "fremd", allow("group:partner"))
        .member("dms", "group:partner", "user:anna")
        .member("dms2", "group:partner", "user:ben")
    )
    write(connection, world)
    assert sees(connection, world, "user:anna") == {"spa"}
    assert sees(connection, world, "user:ben") == {"fremd"}
    assert sees(connection, world, "user:cem", "group:partner") == set()


def test_a_mirrored_deny_binds_only_the_group_of_its_own_source(connection: sa.Connection) -> None:
    world = firm().file("spa", "dms", "spa", [*allow("user:anna"), *deny("group:partner")])
    world.source("dms2", "external").member("dms2", "group:partner", "user:anna")
    write(connection, world)
    assert sees(connection, world, "user:anna") == {"spa"}
    connection.rollback()
    world.member("dms", "group:partner", "user:anna")
    write(connection, world)
    assert sees(connection, world, "user:anna") == set()


def test_directory_groups_mean_the_same_at_every_source(connection: sa.Connection) -> None:
    world = (
        firm().file("spa", "dms", "spa", allow("group:entra:4711")).file("b", "bucket", "spa", allow("group:google:x"))
    )
    write(connection, world)
    assert sees(connection, world, "group:entra:4711") == {"spa"}
    assert sees(connection, world, "group:google:x") == {"b"}


def test_groups_nest_and_cycles_end(connection: sa.Connection) -> None:
    world = (
        firm()
        .file("spa", "dms", "spa", allow("group:c"))
        .member("dms", "group:a", "username:anna@kanzlei.example")
        .member("dms", "group:b", "group:a")
        .member("dms", "group:c", "group:b")
        .member("dms", "group:a", "group:c")
        .member("dms", "group:c", "group:c")
    )
    write(connection, world)
    assert sees(connection, world, "username:anna@kanzlei.example") == {"spa"}
    assert sees(connection, world, "user:anna@kanzlei.example") == set()


def test_aliases_work_both_ways_one_hop_before_and_one_after_memberships(connection: sa.Connection) -> None:
    world = (
        firm()
        .file("spa", "dms", "spa", allow("user:am"))
        .document("b", None, allow("group:ende"))
        .file("b", "ablage", "b")
        .document("zu-weit", None, allow("group:zu-weit"))
        .file("zu-weit", "ablage", "zu-weit")
        .alias("username:am", "user:anna")
        .alias("user:anna", "user:a2")
        .alias("group:ende", f"group:src.{id_of('source/dms')}.g")
        .alias("group:zu-weit", "group:ende")
        .member("dms", "group:g", "username:am")
    )
    write(connection, world)
    # anna stands for username:am, which is in g, which stands for ende; "zu-weit" is one hop more.
    assert sees(connection, world, "user:anna") == {"b"}
    # The other way round; username:anna is looked up as user:anna.
    assert sees(connection, world, "username:anna") == {"b"}
    # user:am is looked up as username:am, but it is not in g itself.
    assert sees(connection, world, "user:am") == {"spa"}


def test_alias_and_group_names_are_compared_whole(connection: sa.Connection) -> None:
    world = firm().project("p", allow("group:%", "group:team_x")).document("d", "p").file("d", "ablage", "d")
    write(connection, world)
    assert sees(connection, world, "group:team-x", "group:teamyx", "group:team") == set()
    assert sees(connection, world, "group:%") == {"d"}


def test_principals_meet_in_lower_case_and_composed_form_but_are_never_folded(connection: sa.Connection) -> None:
    world = firm().document("d", None, allow("  GROUP:Stra\u00dfenrecht ", "group:Bu\u0308ro")).file("d", "ablage", "d")
    write(connection, world)
    assert sees(connection, world, "group:stra\u00dfenrecht") == {"d"}
    assert sees(connection, world, "group:b\u00fcro") == {"d"}
    assert sees(connection, world, "group:strassenrecht") == set()


def test_a_hundred_thousand_members_are_no_burden(connection: sa.Connection) -> None:
    world = firm().file("spa", "dms", "spa", allow("group:alle"))
    write(connection, world)
    connection.execute(
        sa.text(
            "insert into source_group_members select :s, 'group:src.' || cast(:s as text) || '.alle', 'user:m' || n"
            " from generate_series(1, 100000) n"
        ),
        {"s": id_of("source/dms")},
    )
    answer = ask(connection, ["user:m77777"])
    assert answer.versions == {id_of("version/spa")}
    connection.execute(sa.text("delete from source_group_members"))
