"""What a search costs in round trips, however much there is to see; and what it leaves in the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from shared.access.audit import AuditHasher
from shared.access.service import AccessService
from shared.db.engine import make_engine
from shared.db.tables.access import kept_scopes
from shared.db.tables.audit import audit_events
from shared.errors import EngineUnavailableError, PartialAnswerError, ProviderUnavailableError
from shared.index.client import connect
from shared.search.service import SearchService
from shared.settings import Settings
from tests.index.stub_engine import WHOLE, Answer, item, items, stub_engine
from tests.statements import counted
from tests.stub_embedding import StubEmbedding
from tests.world import World, caller

Search = Callable[..., dict[str, Any]]


def trail(engine: sa.Engine) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(audit_events).order_by(audit_events.c.id)))


def fill(world: World, key: str, *, documents: int, groups: int) -> None:
    project = world.project(key, *[f"group:g{number}" for number in range(groups)])
    for number in range(documents):
        world.document(project, f"Kündigung Nummer {number}", title=f"{key} {number}")
    world.publish()


def test_the_budget_does_not_grow_with_documents_grants_or_groups(world: World, search: Search, listed: Search) -> None:
    costs = []
    for size in (5, 10, 20):
        fill(world, f"p{size}", documents=size, groups=size)
        who = caller(f"u{size}", *[f"group:g{number}" for number in range(size)])
        sent: list[bytes] = []
        world.client.on_request = sent.append
        with counted(world.engine) as cold:
            search("Kündigung", who=who)
        with counted(world.engine) as warm:
            search("Kündigung", who=who)
        with counted(world.engine) as listing:
            listed(who=who)
        costs.append((len(cold), len(warm), len(listing), len(sent)))
    # Cold: look, compile, verify. Warm: look, verify. One request each.
    assert costs == [(3, 2, 2, 3)] * 3


def test_a_new_scope_is_kept_by_the_same_statement(world: World, search: Search) -> None:
    fill(world, "nord", documents=1, groups=1)
    search("Kündigung", who=caller("anna", "group:g0"))
    with world.engine.connect() as connection:
        kept = connection.execute(sa.select(sa.func.count()).select_from(kept_scopes)).scalar_one()
    assert kept == 1


def test_what_was_shown_is_audited_and_the_query_is_not(world: World, search: Search) -> None:
    fill(world, "nord", documents=3, groups=1)
    who = caller("anna", "group:g0")
    first = search("Kündigung Nummer", who=who, limit=2)
    search("Kündigung Nummer", who=who, limit=2, offset=2)
    page, second = trail(world.engine)
    assert (page.action, page.subject, page.outcome) == ("search", "user:anna", "allowed")
    assert page.detail["version_ids"] == [result["version_id"] for result in first["results"]]
    assert (page.detail["offset"], page.detail["limit"]) == (0, 2)
    assert len(second.detail["version_ids"]) == 1
    assert page.scope_fingerprint == first["scope"]["fingerprint"]
    assert (page.query_hash, page.query_chars) == (second.query_hash, len("Kündigung Nummer"))
    assert len(page.query_hash) == 64
    assert "ndigung" not in str(page)


def test_a_list_and_an_empty_answer_are_audited_too(world: World, search: Search, listed: Search) -> None:
    fill(world, "nord", documents=1, groups=1)
    search("Kündigung", who=caller("bert", "group:other"))
    listed(who=caller("anna", "group:g0"))
    empty, listing = trail(world.engine)
    assert empty.detail["version_ids"] == []
    assert (listing.action, listing.query_hash) == ("search.filter", None)
    assert len(listing.detail["version_ids"]) == 1


def test_a_search_that_cannot_be_audited_fails(world: World, search: Search) -> None:
    fill(world, "nord", documents=1, groups=1)
    with world.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE audit_events ADD CONSTRAINT full_disk CHECK (action <> 'search')"))
    try:
        with pytest.raises(sa.exc.DBAPIError, match="full_disk"):
            search("Kündigung", who=caller("anna", "group:g0"))
    finally:
        with world.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE audit_events DROP CONSTRAINT full_disk"))


def test_a_leg_that_weighs_nothing_is_neither_sent_nor_embedded(
    world: World, search: Search, service_with: Callable[..., SearchService], embedding: StubEmbedding
) -> None:
    fill(world, "nord", documents=2, groups=1)
    embedding.calls.clear()
    sent: list[bytes] = []
    world.client.on_request = sent.append
    answer = search("Kündigung", who=caller("anna", "group:g0"), using=service_with(weight_semantic=0.0))
    assert len(answer["results"]) == 2
    assert embedding.calls == []
    assert b'"knn"' not in sent[0]


@pytest.mark.parametrize(
    "trouble",
    [
        {"_shards": {"total": 2, "successful": 1, "failed": 1}},
        {"timed_out": True},
        {"_shards": WHOLE | {"successful": 0}},
    ],
)
def test_a_part_of_an_answer_is_an_error_and_leaves_no_audit_row(
    world: World, search: Search, service: SearchService, settings: Settings, trouble: dict[str, Any]
) -> None:
    fill(world, "nord", documents=1, groups=1)
    with stub_engine(items(item(), item(**trouble), item())) as engine:
        broken = connect(settings.opensearch.model_copy(update={"url": engine.url}))
        service._index = broken
        with pytest.raises(PartialAnswerError):
            search("Kündigung", who=caller("anna", "group:g0"))
        broken.close()
    assert trail(world.engine) == []


def test_an_engine_that_is_away_is_an_error(
    world: World, search: Search, listed: Search, service: SearchService, settings: Settings
) -> None:
    fill(world, "nord", documents=1, groups=1)
    with stub_engine(Answer(status=0)) as engine:
        away = connect(settings.opensearch.model_copy(update={"url": engine.url, "deadline_s": 1.0}))
        service._index = away
        for call in (lambda **who: search("Kündigung", **who), listed):
            with pytest.raises(EngineUnavailableError):
                call(who=caller("anna", "group:g0"))
        away.close()


def test_a_model_that_is_away_is_an_error(world: World, search: Search, service: SearchService) -> None:
    class Away(StubEmbedding):
        def embed_queries(self, texts: Any) -> Any:  # noqa: ARG002
            raise ProviderUnavailableError

    fill(world, "nord", documents=1, groups=1)
    service._embedding = Away(dimensions=32)
    with pytest.raises(ProviderUnavailableError):
        search("Kündigung", who=caller("anna", "group:g0"))


def test_behind_a_transaction_pooler_the_audit_row_is_kept_all_the_same(
    world: World,
    search: Search,
    settings: Settings,
    embedding: StubEmbedding,
) -> None:
    fill(world, "nord", documents=1, groups=1)
    with world.engine.begin() as connection:
        name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET statement_timeout = '15s'"))
    pooled = make_engine(settings.database.model_copy(update={"pooler": "transaction"}))
    access = AccessService(pooled, settings.security)
    service = SearchService(pooled, access, world.client, embedding, settings, AuditHasher(b"k" * 16))
    answer = search("Kündigung", who=caller("anna", "group:g0"), using=service)
    pooled.dispose()
    with world.engine.begin() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} RESET statement_timeout"))
    assert len(answer["results"]) == 1
    assert len(trail(world.engine)) == 1
