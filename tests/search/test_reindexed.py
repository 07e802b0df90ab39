"""A process that still has another model than the index refuses to search; it does not compare vectors of two models."""

from __future__ import annotations

import pytest

from shared.access.audit import AuditHasher
from shared.access.service import AccessService
from shared.errors import EngineUnavailableError
from shared.search.request import parse_filter, parse_search
from shared.search.service import SearchService
from tests.search.conftest import KEY, WIDTH
from tests.stub_embedding import StubEmbedding
from tests.world import World, caller


def test_a_process_with_another_model_of_the_same_width_finds_no_index(world: World) -> None:
    project = world.project("nord")
    world.document(project, "Die Kündigungsfrist beträgt drei Monate.")
    world.publish()
    security = world.settings.security
    stale = SearchService(
        world.engine,
        AccessService(world.engine, security),
        world.client,
        StubEmbedding(dimensions=WIDTH, model_id="another"),
        world.settings,
        AuditHasher(KEY),
    )
    with pytest.raises(EngineUnavailableError):
        stale.search(caller(), parse_search({"query": "Kündigungsfrist"}, world.settings.retrieval))
    with pytest.raises(EngineUnavailableError):
        stale.filter(caller(), parse_filter({}))
