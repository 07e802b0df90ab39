"""What is taken away is gone from every route with the next call, in every process (RC58)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from shared.access.grants import add_project_grant, remove_project_grant
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.types import Effect, ProjectId
from tests.functions.api import Api
from tests.functions.firm import CONTROL, PERSONAS, Firm
from tests.functions.probes import ADMINISTRATION, PROBES, PUBLIC, SYNCHRONISATION

FOR_EVERYBODY = sorted(set(PROBES) - PUBLIC - ADMINISTRATION - SYNCHRONISATION)


@pytest.fixture
def second(firm: Firm) -> Iterator[Services]:
    """Another process's services: the same engines, nothing kept in common but SQL."""
    parts = build(firm.parts.settings, embedding=firm.parts.embedding)
    yield parts
    parts.close()


@contextmanager
def revoked(firm: Firm, group: str) -> Iterator[None]:
    project = ProjectId(firm.projects["nord"])
    with firm.parts.engine.begin() as connection:
        assert remove_project_grant(connection, project, group, Effect.ALLOW, by="test", reason="leaves").changed
    try:
        yield
    finally:
        with firm.parts.engine.begin() as connection:
            add_project_grant(connection, project, group, Effect.ALLOW, by="test", reason="team")


@pytest.mark.parametrize("route", FOR_EVERYBODY)
def test_every_route_forgets_at_once_in_every_process(
    api: Api, firm: Firm, second: Services, token_of: Callable[[str], str], route: str
) -> None:
    token = token_of("anna")
    traces = (str(firm.documents[CONTROL]), "Kontrollbau", CONTROL)

    def shown() -> list[bool]:
        found = []
        for parts in (firm.parts, second):
            bootstrap.install(parts)
            # The control document comes first in every route's probes.
            said = "\n".join(reply.everything for reply in islice(PROBES[route](api, firm, token), 6))
            found.append(any(trace in said for trace in traces))
        return found

    assert shown() == [True, True]
    with revoked(firm, "group:nord-team"):
        assert shown() == [False, False]
    assert shown() == [True, True]


@pytest.mark.parametrize("route", FOR_EVERYBODY)
def test_a_token_with_fewer_groups_sees_less_at_once_on_every_route(api: Api, firm: Firm, route: str) -> None:
    email = PERSONAS["anna"][0]
    traces = (str(firm.documents[CONTROL]), "Kontrollbau", CONTROL)

    def is_shown(*groups: str) -> bool:
        replies = islice(PROBES[route](api, firm, api.token(email, *groups)), 6)
        said = "\n".join(reply.everything for reply in replies)
        return any(trace in said for trace in traces)

    assert [is_shown("nord-team"), is_shown(), is_shown("nord-team")] == [True, False, True]
