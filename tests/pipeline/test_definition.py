"""The state machine's document: one task a stage, its rules in the data, and the laws that hold whatever the stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from shared.errors import (
    EmbeddingWidthError,
    IndexMappingError,
    MisconfiguredError,
    ObjectBusyError,
    SupersededError,
    TransientError,
)
from shared.ingest.contract import Payload, Retry, Stage, StageResult
from shared.ingest.definition import definition, function_names
from shared.ingest.pipeline import stages
from shared.settings import load_settings
from tests.golden_files import assert_golden


def pipeline() -> tuple[Stage, ...]:
    return stages(load_settings({}))


def document(listed: tuple[Stage, ...] | None = None, *, at_once: int = 5) -> dict[str, Any]:
    listed = listed or pipeline()
    return definition(listed, {name: f"arn:{name}" for name in function_names(listed)}, max_concurrent_members=at_once)


def bodies() -> list[dict[str, Any]]:
    """The states of an object, and of a file in it."""
    whole = document()
    return [whole["States"], whole["States"]["members"]["ItemProcessor"]["States"]]


def all_states(states: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, body in states.items():
        yield name, body
        if body["Type"] == "Map":
            yield from all_states(body["ItemProcessor"]["States"])


def targets(body: dict[str, Any]) -> set[str]:
    places = [body, *body.get("Catch", []), *body.get("Choices", [])]
    return {place["Next"] for place in places if "Next" in place} | ({body["Default"]} if "Default" in body else set())


@pytest.mark.golden
def test_the_document_is_the_reviewed_one() -> None:
    assert_golden("state_machine.json", json.dumps(document(), indent=1) + "\n")


@pytest.mark.parametrize("prefix", ["", "member_"])
def test_each_stage_is_there_once_in_the_order_of_the_list(prefix: str) -> None:
    whole = document()
    states = whole["States"] if not prefix else whole["States"]["members"]["ItemProcessor"]["States"]
    at = whole["StartAt"] if not prefix else whole["States"]["members"]["ItemProcessor"]["StartAt"]
    seen = []
    while at in states and states[at].get("Resource", "").removeprefix("arn:ingest_") in {s.name for s in pipeline()}:
        seen.append(states[at]["Resource"].removeprefix("arn:ingest_"))
        at = states[at]["Next"]
    assert seen == [stage.name for stage in pipeline()]


def test_every_task_is_tried_again_and_every_stage_is_caught() -> None:
    for name, body in all_states(document()["States"]):
        if body["Type"] != "Task":
            continue
        assert body["TimeoutSeconds"] > 0
        assert any(TransientError.__name__ in one["ErrorEquals"] for one in body["Retry"]), name
        is_stage = body["Resource"].removeprefix("arn:ingest_") in {stage.name for stage in pipeline()}
        # What records failures has no catch: if it fails for good, the execution must fail.
        assert ("Catch" in body) is is_stage, name


def test_a_transient_failure_waits_as_the_stage_s_own_data_say() -> None:
    retry = Retry(max_tries=3, backoff_base_s=5.0)
    [first, second] = [retry.wait_s(failed_tries=n) for n in (1, 2)]
    for stage in pipeline():
        assert stage.retry == retry
        [found] = [
            one for one in document()["States"][stage.name]["Retry"] if one["ErrorEquals"] == [TransientError.__name__]
        ]
        assert (found["IntervalSeconds"], found["MaxAttempts"]) == (first, 2)
        assert found["IntervalSeconds"] * found["BackoffRate"] == second


def test_intervals_are_whole_seconds_of_at_least_one() -> None:
    """The service refuses others."""
    for base in (0.0, 0.2, 1.5):
        one = Stage("only", lambda *_: StageResult({}), lambda _: "1", (), 1.2, Retry(1, base))
        states = document((one,))["States"]
        [found] = [r for r in states["only"]["Retry"] if r["ErrorEquals"] == [TransientError.__name__]]
        assert isinstance(found["IntervalSeconds"], int)
        assert found["IntervalSeconds"] >= max(1, base)
        assert found["MaxAttempts"] == 0
        assert isinstance(states["only"]["TimeoutSeconds"], int)


def test_the_service_waits_longer_than_a_stage_limits_itself() -> None:
    for stage in pipeline():
        assert stage.timeout_s < document()["States"][stage.name]["TimeoutSeconds"] <= 900


def test_a_wrong_installation_fails_the_execution_before_anything_is_quarantined() -> None:
    for states in bodies():
        for name, body in states.items():
            if "Catch" not in body:
                continue
            superseded, fatal, rest = body["Catch"]
            assert superseded["ErrorEquals"] == [SupersededError.__name__]
            for kind in (MisconfiguredError, EmbeddingWidthError, IndexMappingError):
                assert kind.__name__ in fatal["ErrorEquals"]
            assert states[fatal["Next"]]["Type"] == "Fail"
            assert rest["ErrorEquals"] == ["States.ALL"]
            assert states[rest["Next"]]["Resource"] == "arn:ingest_quarantine", name


def test_an_object_in_other_hands_is_waited_for_apart_from_failures() -> None:
    for stage in pipeline():
        [busy] = [r for r in document()["States"][stage.name]["Retry"] if ObjectBusyError.__name__ in r["ErrorEquals"]]
        assert busy["MaxAttempts"] * busy["IntervalSeconds"] >= 60


def test_no_state_puts_anything_but_ids_into_the_payload() -> None:
    for name, body in all_states(document()["States"]):
        assert "Parameters" not in body, name
        if body["Type"] == "Map":
            assert body["ItemSelector"] == {"object_id.$": "$$.Map.Item.Value"}
            assert body["ResultPath"] is None
            assert body["ItemProcessor"]["ProcessorConfig"]["Mode"] == "DISTRIBUTED"
    assert all(kind in {"str", "str | None", "SourceObjectId"} for kind in Payload.__annotations__.values())


def test_one_file_s_failed_execution_fails_the_whole() -> None:
    """An item's execution fails only for what concerns every object: no tolerance, and nobody catches it."""
    [found] = [body for _, body in all_states(document()["States"]) if body["Type"] == "Map"]
    assert not {"Catch", "Retry", "ToleratedFailureCount", "ToleratedFailurePercentage"} & set(found)


def test_files_in_a_file_are_taken_in_so_many_at_a_time() -> None:
    assert document(at_once=7)["States"]["members"]["MaxConcurrency"] == 7


def test_every_state_can_be_reached_and_leads_to_one_of_its_own_level() -> None:
    whole = document()
    for start, states in (
        (whole["StartAt"], whole["States"]),
        (whole["States"]["members"]["ItemProcessor"]["StartAt"], bodies()[1]),
    ):
        reached, todo = set(), {start}
        while todo:
            name = todo.pop()
            reached.add(name)
            todo |= targets(states[name]) - reached
        assert reached == set(states)


def test_names_of_states_are_unique_in_the_whole_document() -> None:
    names = [name for name, _ in all_states(document()["States"])]
    assert len(names) == len(set(names))
    assert all(len(name) <= 80 for name in names)


def test_a_function_that_is_missing_is_named() -> None:
    with pytest.raises(MisconfiguredError, match="ingest_fetch"):
        definition(pipeline(), {}, max_concurrent_members=1)
