"""The state machine of the pipeline: the one list of stages as an Amazon States Language document.

One execution takes one object through the stages, and then the files in it, level by level: pages of ids, each page a
distributed map whose items run the same stages in executions of their own. Payloads carry ids and storage keys, so
that neither the number of files in a file nor their failures make them grow. Everything is a value: names of functions
come in, a document comes out, and the in-process runner obeys the same stages (ADR 0016).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from shared.errors import MisconfiguredError, ObjectBusyError, SupersededError, TransientError
from shared.ingest.contract import Retry, Stage
from shared.ingest.stage_call import BUSY, FATAL

MEMBERS: Final = "members"
"""Answers the next page of files in the object."""
QUARANTINE: Final = "quarantine"
"""Records a failure that the stage itself could not record."""
FAILED: Final = "failed"
"""The payload field that a failed stage adds: its name, and what went wrong."""

_PREFIX: Final = "ingest_"
# A call waits for its turn, a cold start and a connection before its stage begins.
_SLACK_S: Final = 30
# What the service itself may answer instead of running the function: the function never began.
_SERVICE_ERRORS: Final = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.TooManyRequestsException",
)
_SERVICE: Final = Retry(max_tries=6, backoff_base_s=2.0)
# What is written down about failures must outlive a database that is away for ten minutes.
_BOOKKEEPING: Final = Retry(max_tries=8, backoff_base_s=5.0)
_BOOKKEEPING_TIMEOUT_S: Final = 60
# The installation is wrong, for every object alike: quarantining them all would hide it.
_INSTALLATION: Final = (
    *(kind.__name__ for kind in FATAL),
    "Lambda.AccessDeniedException",
    "Lambda.ResourceNotFoundException",
    "States.Permissions",
)


def function_names(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return the functions that the machine calls: one a stage in order, and two for the bookkeeping."""
    return tuple(_PREFIX + name for name in (*(stage.name for stage in stages), MEMBERS, QUARANTINE))


def definition(stages: Sequence[Stage], functions: Mapping[str, str], *, max_concurrent_members: int) -> dict[str, Any]:
    """Return the machine. `functions` maps the names of `function_names` to what the service calls them by (ARNs).

    Its input is a payload with nothing but the object's id. Raises `MisconfiguredError` naming a function that is
    missing.
    """
    missing = [name for name in function_names(stages) if name not in functions]
    if missing:
        raise MisconfiguredError(f"the state machine needs the function {missing[0]}")
    return {
        "Comment": "One object through the pipeline, then the files in it",
        "StartAt": stages[0].name,
        "States": {
            **_object_states(stages, functions, then="find_members"),
            "find_members": _bookkeeping(functions[_PREFIX + MEMBERS], then="any_members"),
            "any_members": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.members[0]", "IsPresent": True, "Next": "members"}],
                "Default": "done",
            },
            "members": {
                "Type": "Map",
                "MaxConcurrency": max_concurrent_members,
                "ItemsPath": "$.members",
                "ItemSelector": {"object_id.$": "$$.Map.Item.Value"},
                "ItemProcessor": {
                    # Each item has a history of its own; that of one execution ends at 25,000 events.
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": _of_member(stages[0].name),
                    "States": _object_states(stages, functions, then="done", name=_of_member)
                    | {_of_member("done"): _nothing()},
                },
                # What an item answers is in the database; the page's cursor goes on.
                "ResultPath": None,
                "Next": "find_members",
            },
            "done": _nothing(),
        },
    }


def _object_states(
    stages: Sequence[Stage], functions: Mapping[str, str], *, then: str, name: Any = str
) -> dict[str, Any]:
    """Return the states that take one object through the stages, all named by `name`."""
    following = [*(stage.name for stage in stages[1:]), then]
    states = {
        name(stage.name): _task(stage, functions[_PREFIX + stage.name], then=next_state, name=name)
        for stage, next_state in zip(stages, following, strict=True)
    }
    states[name(QUARANTINE)] = _bookkeeping(functions[_PREFIX + QUARANTINE], then=name(then))
    states[name("misconfigured")] = {
        "Type": "Fail",
        "ErrorPath": f"$.{FAILED}.Error",
        "CausePath": f"$.{FAILED}.Cause",
    }
    return states


def _task(stage: Stage, function: str, *, then: str, name: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": function,
        "TimeoutSeconds": math.ceil(stage.timeout_s) + _SLACK_S,
        "Retry": [
            _retry([ObjectBusyError.__name__], BUSY),
            _retry([TransientError.__name__], stage.retry),
            _retry(_SERVICE_ERRORS, _SERVICE),
        ],
        "Catch": [
            # Somebody newer has the object: nothing failed, and nothing is left to do here.
            {"ErrorEquals": [SupersededError.__name__], "ResultPath": None, "Next": name("done")},
            {"ErrorEquals": list(_INSTALLATION), "ResultPath": f"$.{FAILED}", "Next": name("misconfigured")},
            {"ErrorEquals": ["States.ALL"], "ResultPath": f"$.{FAILED}.{stage.name}", "Next": name(QUARANTINE)},
        ],
        "Next": name(then),
    }


def _bookkeeping(function: str, *, then: str) -> dict[str, Any]:
    """Return a task that has no catch: an object that cannot even be written down must fail the execution."""
    return {
        "Type": "Task",
        "Resource": function,
        "TimeoutSeconds": _BOOKKEEPING_TIMEOUT_S,
        "Retry": [_retry([TransientError.__name__, *_SERVICE_ERRORS, "States.Timeout"], _BOOKKEEPING)],
        "Next": then,
    }


def _retry(errors: Iterable[str], retry: Retry) -> dict[str, Any]:
    """Return a retrier; the service counts tries after the first, in whole seconds from one on."""
    return {
        "ErrorEquals": list(errors),
        "IntervalSeconds": max(1, math.ceil(retry.backoff_base_s)),
        "BackoffRate": retry.rate,
        "MaxAttempts": retry.max_tries - 1,
    }


def _nothing() -> dict[str, Any]:
    """Return the end of an execution: its answer is in the database."""
    return {"Type": "Pass", "Result": {}, "End": True}


def _of_member(state: str) -> str:
    """Return the state's name in the map: names are unique in the whole document."""
    return f"member_{state}"
