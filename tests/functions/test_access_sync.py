"""The routes by which sources report rights: only for tokens with the role, and each fault has its answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from local.issuer import ADMIN_GROUP, SYNC_GROUP
from tests.functions.api import Api
from tests.functions.firm import Firm

BODY: dict[str, Any] = {"as_of": "2020-01-01T00:00:00Z", "complete": True}


@pytest.mark.parametrize("groups", [(), ("nord-team",), (ADMIN_GROUP,)])
def test_without_the_role_there_is_no_such_route(api: Api, firm: Firm, groups: tuple[str, ...]) -> None:
    token = api.token("anna@kanzlei.example", *groups)
    for kind, what in (("acl", "objects"), ("memberships", "groups")):
        answers = [
            api.send("PUT", f"/sources/{source}/{kind}", token=token, body={**BODY, what: []})
            for source in (firm.sources["dms"], uuid4())
        ]
        assert {(reply.status, reply.json["detail"]) for reply in answers} == {(404, "there is no such route")}


def test_without_a_token_nothing_is_said(api: Api, firm: Firm) -> None:
    assert api.send("PUT", f"/sources/{firm.sources['dms']}/acl", body={**BODY, "objects": []}).status == 401


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/sources/{dms}/acl", {**BODY, "objects": []}, 200),
        ("/sources/{dms}/acl", {"objects": []}, 400),
        ("/sources/{dms}/acl", {**BODY, "complete": False, "objects": []}, 400),
        ("/sources/{dms}/acl", {**BODY, "objects": [{"external_id": "nowhere", "entries": []}]}, 400),
        ("/sources/{other}/acl", {**BODY, "objects": []}, 404),
        ("/sources/dms/acl", {**BODY, "objects": []}, 404),
        (
            "/sources/{dms}/acl",
            {**BODY, "objects": [{"path": "Beschluss canexternname.txt", "entries": []}]},
            409,
        ),
        ("/sources/{dms}/memberships", {**BODY, "groups": {}}, 400),
    ],
)
def test_each_fault_has_its_answer(api: Api, firm: Firm, path: str, body: dict[str, Any], status: int) -> None:
    token = api.token("robot@kanzlei.example", SYNC_GROUP)
    place = path.format(dms=firm.sources["dms"], other=uuid4())
    reply = api.send("PUT", place, token=token, body=body)
    assert reply.status == status, reply.body
    if status == 200:
        assert reply.json == {"changed": 0, "unchanged": 0, "warnings": []}
