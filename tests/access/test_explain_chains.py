"""How somebody came to what they hold, and what is said of every place: by name, and against the reference."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.access.caller import Caller
from shared.access.chains import Chain, Via, chains
from shared.access.expansion import expand
from shared.access.explain import Explanation, explain_whole
from shared.access.principals import normalise_all
from shared.access.service import AccessService
from shared.access.who import as_signed_in, who_sees
from shared.db.tables.sources import source_objects, sources
from shared.types import AclMode, DocumentId, Principal
from tests.access import reference
from tests.access.generated import PEOPLE, callers, worlds
from tests.access.world import World, allow, deny, id_of, uncached, write
from tests.statements import counted

ENTRA = ("group:entra:x", "group:entra:y", "group:entra:z")


@st.composite
def tangled(draw: st.DrawFn) -> World:
    """A world in which groups of groups and aliases lead to most of what is granted."""
    world = draw(worlds())
    member = st.tuples(st.just("dms"), st.sampled_from(ENTRA), st.sampled_from([*PEOPLE, *ENTRA]))
    world.memberships |= draw(st.sets(member, min_size=4, max_size=8))
    pair = st.tuples(st.sampled_from([*PEOPLE, *ENTRA]), st.sampled_from(ENTRA)).filter(lambda two: two[0] != two[1])
    world.aliases |= draw(st.sets(pair, min_size=1, max_size=2))
    return world


HARD = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def whole(
    connection: sa.Connection, document: str, *principals: str, mode: AclMode = AclMode.SUFFICIENT
) -> Explanation:
    return explain_whole(connection, normalise_all(principals), mode, DocumentId(id_of(f"document/{document}")))


def ways(connection: sa.Connection, *principals: str) -> dict[Principal, Chain]:
    own = normalise_all(principals)
    return chains(connection, own, expand(connection, own))


def base() -> World:
    return World().project("p").source("ablage", "local_fs").source("dms", "external")


def test_groups_are_followed_step_by_step_with_source_and_rights_as_of(connection: sa.Connection) -> None:
    world = base().document("d", "p").file("f", "dms", "d", allow("group:c"))
    for member, group in (("user:anna", "group:a"), ("group:a", "group:b"), ("group:b", "group:c")):
        world.member("dms", group, member)
    write(connection, world)
    connection.execute(
        sa.update(sources).where(sources.c.name == "dms").values(memberships_as_of=sa.text("timestamptz '2026-11-30Z'"))
    )
    connection.execute(sa.update(source_objects).values(acl_as_of=sa.text("timestamptz '2026-11-29Z'")))
    [version] = whole(connection, "d", "user:anna").versions
    [row] = version.allowed_by
    assert row.chain is not None
    assert [(link.via, link.source, f"{link.as_of:%m-%d}") for link in row.chain.links] == [
        (Via.MEMBERSHIP, "dms", "11-30")
    ] * 3
    assert (row.source, f"{row.as_of:%m-%d}") == ("dms", "11-29")
    assert version.line == (
        "visible: allowed by source grant for group:c on f, held by user:anna, in group:a of dms, in group:b of dms, "
        "in group:c of dms; source grant for group:c on f, held by user:anna, in group:a of dms, in group:b of dms, "
        "in group:c of dms"
    )


def test_an_alias_stands_in_the_chain_one_hop_a_pass_and_counts_for_both_names_of_a_user(
    connection: sa.Connection,
) -> None:
    world = base().alias("username:anna", "group:entra:old").alias("group:entra:new", "group:entra:after")
    world.member("dms", "group:entra:new", "group:entra:old")
    write(connection, world.alias("group:entra:after", "group:entra:too-far"))
    assert sorted(str(chain) for chain in ways(connection, "user:anna").values()) == [
        "user:anna",
        "user:anna, also known as group:entra:old",
        "user:anna, also known as group:entra:old, also known as username:anna",
        "user:anna, also known as group:entra:old, in group:entra:new of dms",
        "user:anna, also known as group:entra:old, in group:entra:new of dms, also known as group:entra:after",
    ]


def test_a_cycle_of_groups_and_a_group_in_itself_end(connection: sa.Connection) -> None:
    world = base()
    for member, group in (("user:anna", "group:a"), ("group:a", "group:b"), ("group:b", "group:a"), ("group:a",) * 2):
        world.member("dms", group, member)
    write(connection, world)
    assert sorted(len(chain.links) for chain in ways(connection, "user:anna").values()) == [0, 1, 2]


def test_a_deny_wins_and_the_allows_are_told_as_well(connection: sa.Connection) -> None:
    world = base().project("p", allow("user:anna")).document("d", "p", deny("group:wall")).file("f", "ablage", "d")
    write(connection, world)
    found = whole(connection, "d", "user:anna", "group:wall")
    [version] = found.versions
    assert not found.is_visible
    assert version.reasons == [
        "denied by document grant for group:wall on d",
        "allowed by project grant for user:anna on p",
        "open: f has no ACL of its own",
        "seen: f at ablage has no ACL of its own: the project or document decides",
    ]
    assert [place.is_citable for place in version.observations] == [False]


def test_why_not_names_the_state_of_every_place(connection: sa.Connection) -> None:
    world = base().document("d", "p", allow("user:anna"))
    world.file("never-mirrored", "dms", "d", version="v").file("names-nobody", "dms", "d", [], version="v")
    world.file("others", "dms", "d", allow("user:ben"), version="v").file(
        "secret", "ablage", "d", version="v", gone=True
    )
    write(connection, world)
    connection.execute(
        sa.update(source_objects).where(source_objects.c.path == "names-nobody").values(acl_warning="ACL unreadable")
    )
    [version] = whole(connection, "d", "user:anna").versions
    assert version.line == "not visible: open at no source"
    assert set(version.reasons) == {
        "allowed by document grant for user:anna on d",
        "open at no source",
        "seen: never-mirrored at dms has no ACL of its own: closed until its source reports one",
        "seen: names-nobody at dms has an ACL that names nobody (ACL unreadable)",
        "seen: others at dms has an ACL with 1 entries",
        "seen: a place at ablage is gone from there",
    }


def test_a_document_that_is_gone_is_explained_to_administrators_without_its_names(connection: sa.Connection) -> None:
    write(connection, base().document("d", "p", allow("user:anna")).file("weg", "ablage", "d", gone=True))
    [version] = whole(connection, "d", "role:admin").versions
    assert version.line == "not visible: seen at no source any more"
    assert [place.path for place in version.observations] == [None]
    [for_anna] = whole(connection, "d", "user:anna").versions
    assert for_anna.allowed_by[0].name == str(id_of("document/d"))


def test_an_administrator_by_alias_cites_every_active_place(connection: sa.Connection) -> None:
    world = base().document("d", "p").file("f", "dms", "d", []).alias("user:chef", "role:admin")
    write(connection, world)
    found = whole(connection, "d", "user:chef")
    assert (found.viewer.is_administrator, found.is_visible) == (True, True)
    assert found.line == "visible: administrator"
    assert [place.is_citable for version in found.versions for place in version.observations] == [True]


def test_an_explanation_with_all_that_belongs_to_it_takes_five_statements(connection: sa.Connection) -> None:
    for documents in (1, 4):
        world = World(sources={f"s{documents}": "local_fs"}).project(f"p{documents}", allow("user:anna"))
        world.document(f"d{documents}", f"p{documents}")
        for number in range(documents):
            world.file(f"f{documents}.{number}", f"s{documents}", f"d{documents}")
        write(connection, world)
        with counted(connection.engine) as statements:
            whole(connection, f"d{documents}", "user:anna")
        assert len(statements) == 5


def test_an_explanation_is_the_rule_on_every_world(engine: sa.Engine) -> None:
    seen = {"visible": 0, "not": 0, "through": 0}

    @HARD
    @given(tangled(), callers, st.sampled_from(list(AclMode)))
    def compare(world: World, principals: set[str], mode: AclMode) -> None:
        with engine.connect() as connection:
            write(connection, world)
            facts = reference.load(connection)
            own = normalise_all(principals)
            visible, citable = reference.visible(facts, own, mode), reference.citable(facts, own, mode)
            service = AccessService(engine, uncached(mode))
            scope = service.compile_scope(connection, Caller("test", own))
            for document in world.documents:
                found = whole(connection, document, *principals, mode=mode)
                for version in found.versions:
                    assert version.is_visible == (version.version_id in visible) == (version.seq in scope.visible)
                    assert {
                        (version.version_id, place.source_object_id)
                        for place in version.observations
                        if place.is_citable
                    } == {pair for pair in citable if pair[0] == version.version_id}
                    assert {place.source_object_id for place in version.observations} == {
                        place for seen_as, place in facts.observations if seen_as == version.version_id
                    }
                    if not version.is_administrator:
                        assert version.is_visible == bool(
                            version.allowed_by and version.open_by and not version.denied_by
                        ), version
                    rows = (*version.allowed_by, *version.open_by, *version.denied_by)
                    assert all(row.chain is not None for row in rows if row.principal is not None)
                    seen["visible" if version.is_visible else "not"] += 1
                    seen["through"] += any(row.chain is not None and len(row.chain.links) > 0 for row in rows)
            connection.rollback()

    compare()
    assert min(seen.values()) > 20, seen


def test_chains_reach_exactly_what_expansion_holds_and_each_step_is_a_row(engine: sa.Engine) -> None:
    longest = []

    @HARD
    @given(tangled(), callers)
    def compare(world: World, principals: set[str]) -> None:
        with engine.connect() as connection:
            write(connection, world)
            facts = reference.load(connection)
            own = normalise_all(principals)
            found = ways(connection, *principals)
            assert set(found) == reference.expand(facts, own)
            for principal, chain in found.items():
                assert chain.start in own
                at = chain.start
                for link in chain.links:
                    assert _is_a_row(facts, at, link.principal, link.via)
                    at = link.principal
                assert at == principal
                longest.append(len(chain.links))
            connection.rollback()

    compare()
    assert sum(steps >= 2 for steps in longest) > 10


def test_who_sees_a_document_agrees_with_the_rule_and_forgets_nobody(engine: sa.Engine) -> None:
    told = {True: 0, False: 0}

    @settings(HARD, max_examples=8)
    @given(tangled(), st.sampled_from(list(AclMode)))
    def compare(world: World, mode: AclMode) -> None:
        with engine.connect() as connection:
            write(connection, world)
            facts = reference.load(connection)
            raw = [
                "user:anna",
                "username:anna",
                "user:ben",
                "user:cem",
                "group:a",
                "group:b",
                "group:c",
                "group:entra:x",
            ]
            for document in sorted(world.documents)[:2]:
                id_ = DocumentId(id_of(f"document/{document}"))
                found = who_sees(connection, id_, mode=mode, admin_groups=(), limit=1_000, offset=0)
                listed = {one.principal for one in found.listed}
                assert (len(listed), found.total) == (len(found.listed), len(found.listed))
                assert {"role:admin", "system:admin"} <= listed
                for one in found.listed:
                    own = as_signed_in(one.principal, ())
                    expected = reference.visible(facts, own, mode) & _versions(facts, id_)
                    assert {v.version_id for v in one.explanation.versions if v.is_visible} == expected
                    told[one.explanation.is_visible] += 1
                for caller in raw:
                    own = normalise_all([caller, "role:authenticated"])
                    if reference.visible(facts, own, mode) & _versions(facts, id_):
                        assert own & listed, caller
            connection.rollback()

    compare()
    assert min(told.values()) > 20


def test_who_goes_backwards_over_aliases_memberships_and_aliases_again(connection: sa.Connection) -> None:
    world = base().document("d", "p", allow("group:entra:named")).file("f", "ablage", "d")
    world.alias("group:entra:named", "group:entra:outer").member("dms", "group:entra:outer", "group:entra:inner")
    world.alias("user:zoe@x.de", "group:entra:inner").alias("group:entra:inner", "username:zed")
    write(connection, world)
    id_ = DocumentId(id_of("document/d"))
    found = who_sees(connection, id_, mode=AclMode.SUFFICIENT, admin_groups=(), limit=100, offset=0)
    assert {one.principal: one.explanation.is_visible for one in found.listed} == {
        "group:entra:inner": True,
        "group:entra:named": True,
        "group:entra:outer": True,
        "role:admin": True,
        "system:admin": True,
        "user:zed": True,
        "user:zoe@x.de": True,
        "username:zed": True,
    }


def test_who_is_paged_counts_all_and_shows_members_of_groups(connection: sa.Connection) -> None:
    world = (
        base()
        .project("p", allow("group:entra:team"))
        .document("d", "p", deny("user:m03@x.de"))
        .file("f", "ablage", "d")
    )
    for number in range(12):
        world.member("dms", "group:entra:team", f"user:m{number:02}@x.de")
    write(connection, world)
    document = DocumentId(id_of("document/d"))

    def page(limit: int, offset: int) -> list[tuple[str, bool, int]]:
        found = who_sees(
            connection,
            document,
            mode=AclMode.SUFFICIENT,
            admin_groups=[Principal("group:it")],
            limit=limit,
            offset=offset,
        )
        assert found.total == 16
        return [(one.principal, one.explanation.is_visible, one.members) for one in found.listed]

    everybody = page(100, 0)
    assert [*page(5, 0), *page(5, 5), *page(5, 10), *page(5, 15)] == everybody
    assert page(5, 16) == []
    assert everybody == [
        ("group:entra:team", True, 12),
        ("group:it", True, 0),
        ("role:admin", True, 0),
        ("system:admin", True, 0),
        *((f"user:m{number:02}@x.de", number != 3, 0) for number in range(12)),
    ]
    unknown = DocumentId(id_of("document/none"))
    assert who_sees(connection, unknown, mode=AclMode.SUFFICIENT, admin_groups=(), limit=5, offset=0).total == 0


def _is_a_row(facts: reference.Facts, here: str, there: str, via: Via) -> bool:
    if via is Via.MEMBERSHIP:
        return (there, here) in facts.memberships
    names = {here, here.replace("user:", "username:", 1), here.replace("username:", "user:", 1)}
    pairs: Iterable[tuple[str, str]] = ((name, there) for name in names)
    return any(pair in facts.aliases or pair[::-1] in facts.aliases for pair in pairs)


def _versions(facts: reference.Facts, document: DocumentId) -> set[object]:
    return {version for version, of in facts.document_of.items() if of == document}
