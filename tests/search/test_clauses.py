"""Clauses of final versions are found one by one, by their type and all types below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from shared.db.tables.catalog import document_versions
from shared.db.tables.content import chunks
from shared.index.ids import chunk_id
from shared.index.reconcile import reconcile
from shared.types import ChunkKind, VersionId
from tests.world import World

Search = Callable[..., dict[str, Any]]
BODY = "§ 9 Kündigung: Das Recht zur fristlosen Kündigung bleibt unberührt."


def add_clause(world: World, version_id: VersionId, clause_type: str) -> None:
    row = {
        "id": chunk_id(version_id, ChunkKind.CLAUSE, 1000),
        "version_id": version_id,
        "kind": ChunkKind.CLAUSE,
        "ordinal": 1000,
        "text": BODY,
        "char_start": 0,
        "char_end": len(BODY),
        "locus": "§ 9 Kündigung",
        "clause_type": clause_type,
        "language": "de",
    }
    with world.engine.begin() as connection:
        connection.execute(sa.insert(chunks).values(row))


def versions(answer: dict[str, Any]) -> list[str]:
    return [result["version_id"] for result in answer["results"]]


def test_a_type_of_clauses_finds_those_below_it(world: World, search: Search, listed: Search) -> None:
    version = world.document(world.project("nord"), BODY, title="Mietvertrag")
    add_clause(world, version, "term.termination.for_cause")
    world.publish()
    for clause_type in ("term", "term.termination", "term.termination.for_cause"):
        filters = {"clause_type": clause_type}
        (result,) = search("Kündigung", filters=filters)["results"]
        assert (result["citation"]["chunks"][0]["kind"], result["citation"]["chunks"][0]["locus"]) == (
            "clause",
            "§ 9 Kündigung",
        )
        assert versions(listed(filters=filters)) == [str(version)]
    assert versions(search("Kündigung", filters={"clause_type": "payment"})) == []


def test_a_clause_is_found_only_while_its_version_is_final(world: World, search: Search) -> None:
    version = world.document(world.project("nord"), BODY, title="Mietvertrag", status="draft")
    add_clause(world, version, "term.termination")
    world.publish()
    filters = {"chunk_kind": "clause"}
    assert versions(search("Kündigung", filters=filters)) == []
    for status, found in (("final", [str(version)]), ("draft", []), ("executed", [str(version)])):
        with world.engine.begin() as connection:
            connection.execute(sa.update(document_versions).values(status=status))
        world.queue(version)
        world.publish()
        assert versions(search("Kündigung", filters=filters)) == found
        assert versions(search("Kündigung")) == [str(version)]
        with world.engine.begin() as connection:
            assert reconcile(connection, world.client, world.settings.retrieval.index_name).none
