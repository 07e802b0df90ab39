"""The published description of the API."""

from __future__ import annotations

import json

from openapi_spec_validator import OpenAPIV31SpecValidator

from shared.runtime.openapi import OPERATIONS, document
from shared.runtime.routes import ROUTES


def test_the_document_is_valid_and_plain_json() -> None:
    OpenAPIV31SpecValidator(document()).validate()
    assert json.loads(json.dumps(document())) == document()


def test_every_route_is_described_and_nothing_else() -> None:
    described = {f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item}
    assert described == {route.key for route in ROUTES} == set(OPERATIONS)


def test_all_but_the_public_routes_ask_for_a_token() -> None:
    for route in ROUTES:
        operation = document()["paths"][route.path][route.method.lower()]
        assert (operation.get("security") == []) is (route.function == "api")
        assert ("401" in operation["responses"]) is (route.function != "api")


def test_the_filters_are_those_of_the_contract_and_no_others() -> None:
    filters = document()["components"]["schemas"]["Filters"]
    assert filters["additionalProperties"] is False
    assert set(filters["properties"]) == {
        "project_id", "matter_id", "doc_type", "version_status", "language", "date_from", "date_to", "clause_type",
        "chunk_kind",
    }  # fmt: skip


def test_query_parameters_are_never_null() -> None:
    for item in document()["paths"].values():
        for operation in item.values():
            assert "null" not in json.dumps(operation.get("parameters", []))
