"""The firm's people, walls and expected results agree with its files and with the access rule."""

import re
from collections.abc import Iterable
from itertools import chain

import pytest

from local.samples.build import render
from local.samples.firm import Expected, Grant, Person, load_expectations, load_firm
from local.samples.manifest import ENTRIES, NORDLICHT, WESTERKAMP, Damage
from local.samples.plain import markdown
from local.samples.prose import parse

FIRM, QUERIES, FILES = load_firm(), load_expectations().queries, render()
SET_ASIDE = {item.file for item in FIRM.quarantined}


def source_words(folder: str) -> set[str]:
    """The words of all readable texts in a matter's folders."""
    from local.samples.build import _source

    texts = (
        markdown(parse(_source(entry.text), variant=entry.variant, values=entry.values)).decode()
        for entry in ENTRIES
        if f"/{folder}/" in entry.path and entry.damage is Damage.NONE
    )
    return {word for text in texts for word in re.findall(r"\w{4,}", text.lower())}


def holds(person: Person, grants: Iterable[Grant], effect: str) -> bool:
    mine = {f"user:{person.email}", *(f"group:{group}" for group in person.groups)}
    return any(grant.effect == effect and grant.principal in mine for grant in grants)


def may_see(person: Person, file: str) -> bool:
    """The access rule for this small world, told a second time: no aliases, local files only."""
    if file in SET_ASIDE:
        return False
    if person.admin:
        return True
    place = FIRM.placement(file)
    (project,) = (item for item in FIRM.projects if item.key == place.project)
    walls = [Grant(effect="deny", principal=wall.principal) for wall in FIRM.walls if wall.project == project.key]
    acls = [acl.grants for acl in FIRM.object_acls if acl.file == file]
    own = [grant for grants in acls for grant in grants]
    opened = holds(person, own, "allow") if acls else holds(person, project.grants, "allow")
    return opened and not holds(person, [*walls, *project.grants, *own], "deny")


def expectations() -> list[tuple[str, Person, Expected]]:
    return [(query.id, FIRM.person(email), expected) for query in QUERIES for email, expected in query.expect.items()]


def test_every_file_belongs_to_a_known_project_and_matter() -> None:
    projects = {project.key for project in FIRM.projects}
    matters = {matter.key: matter.project for matter in FIRM.matters}
    assert len(matters) == 4
    for file in FILES:
        place = FIRM.placement(file)
        assert place.project in projects
        assert place.matter is None or matters[place.matter] == place.project


def test_a_file_outside_every_folder_has_no_placement() -> None:
    with pytest.raises(KeyError, match="add its folder"):
        FIRM.placement("ablage/99999_Fremd/a.txt")


def test_every_file_named_in_the_descriptions_exists() -> None:
    named = {acl.file for acl in FIRM.object_acls} | SET_ASIDE | {f for copy in FIRM.copies for f in copy.files}
    for query in QUERIES:
        for expected in query.expect.values():
            named |= {*expected.top, *chain(*expected.present), *expected.absent}
    for entry in named:
        assert any(file == entry or (entry.endswith("/") and file.startswith(entry)) for file in FILES), entry


def test_every_set_aside_file_is_damaged_on_purpose_and_no_other_is() -> None:
    damaged = {entry.path for entry in ENTRIES if entry.damage is not Damage.NONE}
    assert damaged == SET_ASIDE


def test_copies_have_the_same_bytes_and_one_version_only_within_a_matter() -> None:
    for copy in FIRM.copies:
        assert len({FILES[file] for file in copy.files}) == 1
        assert (len({FIRM.placement(file).matter for file in copy.files}) == 1) is copy.same_version


def test_there_are_six_to_eight_searches_and_each_is_told_for_several_people() -> None:
    assert 6 <= len(QUERIES) <= 8
    assert len({query.id for query in QUERIES}) == len(QUERIES)
    assert all(len(query.expect) >= 3 for query in QUERIES)


@pytest.mark.parametrize(("query", "person", "expected"), expectations())
def test_what_must_be_found_is_visible_and_what_must_be_absent_is_not(
    query: str, person: Person, expected: Expected
) -> None:
    for file in chain(expected.top, *expected.present):
        assert may_see(person, file), f"{query}: {person.email} may not see {file}"
    for entry in expected.absent:
        below = [file for file in FILES if file == entry or (entry.endswith("/") and file.startswith(entry))]
        assert not [file for file in below if may_see(person, file)], f"{query}: {person.email} may see {entry}"


def test_every_persona_sees_something_and_only_the_administrator_sees_everything() -> None:
    readable = set(FILES) - SET_ASIDE
    for person in FIRM.people:
        seen = {file for file in FILES if may_see(person, file)}
        assert seen
        assert (seen == readable) is person.admin


def test_the_two_sides_share_the_open_matter_and_nothing_of_the_walled_ones() -> None:
    left, right = FIRM.person(FIRM.personas.left), FIRM.person(FIRM.personas.right)
    both = {file for file in FILES if may_see(left, file) and may_see(right, file)}
    assert {FIRM.placement(file).project for file in both} == {"hafenkontor", "intern"}


def test_only_the_wall_keeps_the_sides_apart() -> None:
    """Without the deny rows each would see the other's files through the department's grant."""
    for wall in FIRM.walls:
        (project,) = (item for item in FIRM.projects if item.key == wall.project)
        walled = [person for person in FIRM.people if wall.principal.removeprefix("group:") in person.groups]
        assert walled
        assert all(holds(person, project.grants, "allow") for person in walled)
        assert wall.reason


def test_the_walled_matters_speak_the_same_language() -> None:
    shared = source_words(NORDLICHT) & source_words(WESTERKAMP)
    assert {"kaufpreis", "wettbewerbsverbot", "material", "adverse", "change", "geschäftsanteile"} <= shared
    assert len(shared) > 150


def test_each_walled_matter_has_facts_that_the_other_lacks() -> None:
    nordlicht, westerkamp = source_words(NORDLICHT), source_words(WESTERKAMP)
    assert "halvorsen" in nordlicht - westerkamp
    assert "wilhelmshaven" in westerkamp - nordlicht


def test_broken_claims_are_told_one_by_one() -> None:
    expected = Expected(top=("a/1",), present=(("a/2", "a/3"),), absent=("b/", "c/1"))
    assert expected.failures([["a/1"], ["a/3", "c/2"]]) == []
    assert expected.failures([["c/1"], ["b/x/y"]]) == [
        "none of ['a/1'] is first, but ['c/1']",
        "a/2 or a/3 is missing",
        "b/x/y must not be shown",
        "c/1 must not be shown",
    ]
    assert Expected(top=("a/1",), present=(), absent=()).failures([]) != []
