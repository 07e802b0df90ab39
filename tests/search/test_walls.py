"""Nothing behind a wall takes part in an answer, whatever the index still holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from shared.access.service import AccessService
from shared.db.tables import catalog, sources
from shared.search.service import SearchService
from tests.stub_embedding import StubEmbedding
from tests.world import STAFF, World, caller

Search = Callable[..., dict[str, Any]]


def titles(answer: dict[str, Any]) -> list[str]:
    return [result["title"] for result in answer["results"]]


class StaleScope:
    """An access service whose scope is from before: what a search holds when a grant is taken away during it."""

    def __init__(self, access: AccessService, world: World) -> None:
        with world.engine.connect() as connection:
            self._scope = access.compile_scope(connection, caller())

    def compile_scope(self, *_: Any, **__: Any) -> Any:
        return self._scope


def test_what_is_revoked_between_ranking_and_answer_is_dropped(
    world: World, search: Search, service: SearchService, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = world.project("nord")
    gone = [world.document(project, "Kündigung zum Jahresende", title=f"geheim {number}") for number in range(30)]
    world.document(project, "Kündigung zum Jahresende ohne Grund", title="offen")
    world.publish()
    monkeypatch.setattr(service, "_access", StaleScope(service._access, world))
    assert len(titles(search("Kündigung zum Jahresende"))) == 8
    for version in gone:
        world.wall(version)
    answer = search("Kündigung zum Jahresende")
    assert titles(answer) == ["offen"]
    assert answer["page"]["has_more"] is False


def test_a_tombstoned_place_hides_its_version_at_once(
    world: World, search: Search, service: SearchService, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = world.document(world.project("nord"), "Kündigung", title="weg")
    world.publish()
    monkeypatch.setattr(service, "_access", StaleScope(service._access, world))
    assert titles(search("Kündigung")) == ["weg"]
    with world.engine.begin() as connection:
        places = sa.select(sources.version_sources.c.source_object_id).where(
            sources.version_sources.c.version_id == version
        )
        connection.execute(
            sa.update(sources.source_objects)
            .where(sources.source_objects.c.id.in_(places))
            .values(deleted_at=sa.func.now())
        )
    assert titles(search("Kündigung")) == []


def test_rows_of_a_version_that_is_gone_from_sql_are_dropped(
    world: World, search: Search, service: SearchService, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = world.document(world.project("nord"), "Kündigung", title="weg")
    world.publish()
    monkeypatch.setattr(service, "_access", StaleScope(service._access, world))
    with world.engine.begin() as connection:
        versions = catalog.document_versions
        connection.execute(sa.delete(versions).where(versions.c.id == version))
    assert titles(search("Kündigung")) == []


def test_buried_rows_are_not_found(world: World, search: Search) -> None:
    version = world.document(world.project("nord"), "Kündigung", title="weg")
    world.publish()
    world.bury(version)
    world.publish()
    assert titles(search("Kündigung")) == []


def test_a_walled_draft_beside_a_readable_final_stays_out(world: World, search: Search) -> None:
    final = world.document(world.project("nord"), "Kündigung nach drei Monaten", title="final")
    draft = world.version(
        world.document_of(final), "Kündigung sofort und fristlos", title="entwurf", status="draft", is_latest=False
    )
    _close(world, draft)
    world.publish()
    answer = search("Kündigung sofort fristlos")
    assert titles(answer) == ["final"]
    assert answer["scope"]["versions"] == {"total": 1}


def test_the_latest_final_version_is_the_latest_that_the_caller_may_see(
    world: World, search: Search, service: SearchService
) -> None:
    first = world.document(world.project("nord"), "Kündigung eins", title="eins")
    document = world.document_of(first)
    second = world.version(document, "Kündigung zwei", title="zwei", ordinal=2)
    world.version(document, "Kündigung drei", title="drei", ordinal=3, status="draft", is_latest=False)
    draft = world.document(world.project("drafts"), "Kündigung Entwurf", title="nur Entwurf", status="draft")
    world.publish()

    def latest(who: Any) -> dict[str, bool]:
        return {
            result["title"]: result["is_latest_final"]
            for word in ("eins", "zwei", "drei", "Entwurf")
            for result in search(f"Kündigung {word}", who=who)["results"]
        }

    everything = {"eins": False, "zwei": True, "drei": False, "nur Entwurf": False}
    assert latest(caller()) == everything
    _close(world, second)
    assert latest(caller()) == {"eins": True, "drei": False, "nur Entwurf": False}
    assert latest(caller("admin", "role:admin")) == everything
    assert world.document_of(draft) != document


def test_a_walled_newer_final_does_not_decide_which_version_stands_for_a_document(world: World, search: Search) -> None:
    first = world.document(world.project("nord"), "Kündigung zum Jahresende", title="Vertrag")
    document = world.document_of(first)
    second = world.version(document, "Kündigung zum Jahresende", ordinal=2)
    third = world.version(document, "Kündigung zum Jahresende", ordinal=3)
    world.publish()
    for walled, expected in ((None, third), (third, second), (second, first)):
        if walled is not None:
            _close(world, walled)
        (result,) = search("Kündigung zum Jahresende")["results"]
        assert (result["version_id"], result["is_latest_final"]) == (str(expected), True)


def test_a_version_shows_what_was_read_from_itself_and_not_its_walled_sibling(world: World, search: Search) -> None:
    def facts(number: str) -> dict[str, Any]:
        return {
            "doc_type": "contract.lease",
            "language": "de",
            "doc_date": {"day": "2023-05-05", "precision": "day", "raw": "5.5.2023"},
            "identifiers": [{"kind": "file", "raw": number, "canonical": number}],
        }

    final = world.document(world.project("nord"), "Streng geheim", title="Geheimer Titel", doc_type="contract.secret")
    world.version(
        world.document_of(final), "Kündigung", title="Entwurf", status="draft", is_latest=False, facts=facts("1 C 4/16")
    )
    _close(world, final)
    world.publish()
    (result,) = search("Kündigung")["results"]
    assert (result["title"], result["citation"]["document"]["title"]) == ("Entwurf", "Entwurf")
    assert (result["doc_type"], result["doc_date"]) == ("contract.lease", "2023-05-05")
    assert [one["raw"] for one in result["identifiers"]] == ["1 C 4/16"]
    assert "eheim" not in str(result)


def test_only_the_parties_of_a_hits_own_matter_and_document_are_shown(world: World, search: Search) -> None:
    project = world.project("nord")
    ours, other = world.matter(project, "nord-1"), world.matter(project, "nord-2")
    shown = world.document(project, "Kündigung", title="offen", matter_id=ours)
    sibling = world.document(project, "Kündigung", title="geheim", matter_id=ours)
    elsewhere = world.document(project, "Kündigung", title="woanders", matter_id=other)
    draft = world.version(
        world.document_of(shown), "Entwurf", title="geheimer Entwurf", status="draft", is_latest=False
    )
    _name_party(world, catalog.matter_parties, "Mandantin GmbH", matter_id=ours)
    _name_party(world, catalog.document_parties, "Zeugin Ost", version_id=shown)
    _name_party(world, catalog.document_parties, "Geheime AG", version_id=sibling)
    _name_party(world, catalog.document_parties, "Streng Vertrauliche SE", version_id=draft)
    _name_party(world, catalog.matter_parties, "Fremde KG", matter_id=other)
    world.wall(sibling)
    world.wall(elsewhere)
    _close(world, draft)
    world.publish()
    (result,) = search("Kündigung")["results"]
    assert result["parties"] == ["Mandantin GmbH", "Zeugin Ost"]
    assert titles(search("Geheime Fremde")) == ["offen"]
    for query in ("Geheime", "Fremde", "Streng Vertrauliche SE"):
        assert query not in str(search(query)["results"])


def test_a_path_that_may_not_be_cited_is_not_shown(world: World, search: Search) -> None:
    version = world.document(world.project("nord"), "Kündigung", title="zweimal")
    hidden = world.observe(version, path="vorstand/geheim.txt")
    with world.engine.begin() as connection:
        connection.execute(
            sa.update(sources.source_objects).where(sources.source_objects.c.id == hidden).values(acl_state="known")
        )
    world.publish()
    (result,) = search("Kündigung")["results"]
    assert [source["path"] for source in result["citation"]["sources"]] != []
    assert "vorstand" not in str(result)


def test_who_may_see_nothing_sends_nothing_and_embeds_nothing(
    world: World, search: Search, embedding: StubEmbedding
) -> None:
    world.document(world.project("nord"), "Kündigung", title="eins")
    world.publish()
    embedding.calls.clear()
    sent: list[bytes] = []
    world.client.on_request = sent.append
    answer = search("Kündigung", who=caller("bert", "group:other"))
    assert (answer["results"], answer["page"]["has_more"], answer["scope"]["versions"]) == ([], False, {"total": 0})
    assert (sent, embedding.calls) == ([], [])


def test_a_project_that_is_not_the_callers_gives_nothing_and_no_error(world: World, search: Search) -> None:
    world.document(world.project("nord"), "Kündigung", title="eins")
    other = world.project("south", "group:other")
    world.document(other, "Kündigung", title="zwei")
    world.publish()
    assert titles(search("Kündigung", project_ids=[str(other)])) == []
    assert titles(search("Kündigung", filters={"project_id": str(other)})) == []
    assert titles(search("Kündigung", who=caller("admin", "role:admin"), project_ids=[str(other)])) == ["zwei"]


def test_a_deny_never_adds_a_result_and_a_control_stays(world: World, search: Search) -> None:
    project = world.project("nord")
    made = [world.document(project, f"Kündigung Nummer {number}", title=f"{number}") for number in range(6)]
    world.document(project, "Kündigung der Kontrolle", title="Kontrolle")
    world.publish()
    before = set(titles(search("Kündigung")))
    assert len(before) == 7
    for version in made:
        world.wall(version, STAFF)
        after = set(titles(search("Kündigung")))
        assert after < before
        assert "Kontrolle" in after
        before = after


def _close(world: World, version: Any) -> None:
    """Give the version's place an ACL that names nobody."""
    column = sources.version_sources.c
    places = sa.select(column.source_object_id).where(column.version_id == version)
    with world.engine.begin() as connection:
        closed = sa.update(sources.source_objects).where(sources.source_objects.c.id.in_(places))
        connection.execute(closed.values(acl_state="known"))


def _name_party(world: World, table: sa.Table, name: str, **target: Any) -> None:
    party = catalog.parties
    # A version shows the name as it writes it, whatever the row that it shares with others says.
    own = {"name": name, "evidence": {}} if table is catalog.document_parties else {}
    shared = name.lower() if own else name
    with world.engine.begin() as connection:
        values = {"name": shared, "normalised_name": name.lower()}
        party_id = connection.execute(sa.insert(party).values(values).returning(party.c.id)).scalar_one()
        connection.execute(sa.insert(table).values(party_id=party_id, role="client", **own, **target))
