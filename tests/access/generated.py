"""Random worlds, small enough to shrink and dense enough that walls, groups and copies meet."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.access.world import World, allow, id_of

PROJECTS = ("p0", "p1", "p2")
SOURCES = ("ablage", "dms", "bucket")
PEOPLE = ("user:anna", "username:anna", "user:ben", "user:cem")
GROUPS = ("group:a", "group:b", "group:c", "group:entra:x")
EVERYONE = "role:authenticated"
NAMES = (*PEOPLE, *GROUPS, EVERYONE, f"group:src.{id_of('source/dms')}.a")

grant_lists = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["allow", "allow", "allow", "allow", "deny"])),
    min_size=1,
    max_size=5,
    unique_by=lambda grant: grant[0],
)
callers = st.one_of(
    *[st.sets(st.sampled_from([*PEOPLE, *GROUPS, EVERYONE]), min_size=1, max_size=3)] * 5,
    st.sampled_from([{"role:admin"}, {"user:anna", "system:admin"}, set[str]()]),
)


@st.composite
def worlds(draw: st.DrawFn, *, denies: bool = True) -> World:
    """A world with up to 6 documents, 9 versions and 12 objects over three kinds of source."""

    def grants() -> list[tuple[str, str]]:
        listed = draw(grant_lists)
        return listed if denies else allow(*{principal for principal, _ in listed})

    world = World(sources=dict(zip(SOURCES, draw(st.permutations(["local_fs", "external", "s3"])), strict=True)))
    # Twice as much local ground as chance gives: most firms start there.
    world.sources["ablage"] = "local_fs"
    for project in PROJECTS:
        world.project(project, grants())
    for number in range(draw(st.integers(3, 6))):
        world.document(f"d{number}", draw(st.sampled_from([*PROJECTS, *PROJECTS, None])), grants())
    for number in range(draw(st.integers(4, 9))):
        world.versions[f"v{number}"] = draw(st.sampled_from(sorted(world.documents)))
    for number in range(draw(st.integers(6, 12))):
        source = draw(st.sampled_from([*SOURCES, "ablage"]))
        acl = grants() if draw(st.booleans()) else None
        world.objects[f"o{number}"] = (source, acl, draw(st.integers(0, 5)) == 0)
        versions = draw(st.sets(st.sampled_from(sorted(world.versions)), min_size=1, max_size=2))
        world.seen |= {(version, f"o{number}") for version in versions}
    member = st.tuples(st.sampled_from(SOURCES), st.sampled_from(GROUPS), st.sampled_from([*PEOPLE, *GROUPS]))
    world.memberships = draw(st.sets(member, max_size=5))
    pair = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda two: two[0] != two[1])
    world.aliases = draw(st.sets(pair, max_size=2))
    return world
