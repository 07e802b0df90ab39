"""A caller who may see 70,000 documents: more than the engine takes as a list of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from shared.access.service import AccessService
from shared.db.engine import reading
from shared.settings import Settings
from tests.world import World, caller

# Seven in eight are visible, so that the set is no single run of numbers.
_ROWS = """
insert into documents (id, project_id, title)
  select md5('d' || n)::uuid, :project, 'Schreiben ' || n from generate_series(1, 80000) n;
insert into document_versions (id, document_id, sha256, title, mime, size_bytes)
  select md5('v' || n)::uuid, md5('d' || n)::uuid, md5('h' || n), 'Schreiben', 'text/plain', 1
  from generate_series(1, 80000) n;
insert into source_objects (id, source_id, external_id, path, name)
  select md5('o' || n)::uuid, :source, 'o' || n, 'o' || n, 'o' from generate_series(1, 80000) n;
insert into version_sources (version_id, source_object_id)
  select md5('v' || n)::uuid, md5('o' || n)::uuid from generate_series(1, 80000) n;
insert into document_grants (document_id, principal, effect)
  select md5('d' || n)::uuid, 'group:staff', 'deny' from generate_series(8, 80000, 8) n
"""


def test_seventy_thousand_visible_documents_are_searched_as_sql_says(
    world: World,
    settings: Settings,
    search_database_url: str,
    search: Callable[..., dict[str, Any]],
    listed: Callable[..., dict[str, Any]],
) -> None:
    project = world.project("nord")

    def put(place: str) -> set[str]:
        titles = [f"{place} {number}" for number in range(10)]
        made = [world.document(project, "Kündigung der Miete", title=title) for title in titles]
        for version in made[::3]:
            world.wall(version)
        return {title for number, title in enumerate(titles) if number % 3}

    open_titles = put("vorn")
    _put_many(search_database_url, project, world.source_id)
    open_titles |= put("hinten")
    world.publish()

    with reading(world.engine) as connection:
        scope = AccessService(world.engine, settings.security).compile_scope(connection, caller())
    assert scope.size == 70_000 + len(open_titles)
    sent: list[bytes] = []
    world.client.on_request = sent.append
    found = {result["title"] for result in search("Kündigung der Miete", limit=50)["results"]}
    assert found == open_titles
    assert {result["title"] for result in listed(limit=50)["results"]} == open_titles
    # One clause of packed bits for each leg: 70,000 ids would be seven times as much, and refused.
    assert all(b'"value_type":"bitmap"' in body.replace(b" ", b"") for body in sent)
    assert max(map(len, sent)) < 100_000


def _put_many(url: str, project: UUID, source: UUID) -> None:
    """Write the rows as one who owns the tables: without a limit of time, and without a look at each reference."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("set local session_replication_role = replica"))
        for statement in _ROWS.split(";"):
            given = {"project": project, "source": source}
            named = {name: value for name, value in given.items() if f":{name}" in statement}
            connection.execute(sa.text(statement), named)
        connection.execute(sa.text("analyze"))
    engine.dispose()
