"""The functions of the state machine: an event in, one call of the pipeline, and an answer of ids and keys.

Step Functions matches errors by their very name and knows no inheritance, so an error leaves here under the name of
its branch: what may pass, what is wrong with the file, what is wrong with the installation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol
from uuid import UUID

from shared.errors import ObjectBusyError, PermanentError, SupersededError, TransientError
from shared.ingest.contract import Payload
from shared.ingest.definition import FAILED, MEMBERS
from shared.ingest.events import read_events
from shared.ingest.members import members_page
from shared.ingest.runner import utc_now
from shared.ingest.stage_call import FATAL, may_pass, reason_of
from shared.ingest.state import short
from shared.runtime import bootstrap, observability
from shared.types import SourceObjectId

Event = Mapping[str, Any]
Answer = dict[str, Any]

_AS_THEY_ARE: Final = (ObjectBusyError, SupersededError, *FATAL)
_DRAIN: Final = 200
# What a drain that was begun may still need when the function is about to end.
_LEFT_TO_FINISH_MS: Final = 120_000


class LambdaContext(Protocol):
    """What Lambda tells a function about its invocation."""

    @property
    def aws_request_id(self) -> str:
        """The invocation's id."""
        ...

    def get_remaining_time_in_millis(self) -> int:
        """Return the time until the function is ended."""
        ...


def run_stage(name: str, event: Event, context: LambdaContext) -> Answer:
    """Take the object of the payload through the stage and return the payload after it."""
    with _named(f"ingest_{name}", context):
        payload = bootstrap.services().stage_worker.advance(name, _payload(event))
        answer: Answer = json.loads(payload.to_json())
        return answer


def find_members(event: Event, context: LambdaContext) -> Answer:
    """Return the next page of the files in the object, with the level and the id after which the next one begins."""
    with _named(f"ingest_{MEMBERS}", context):
        object_id = _payload(event).object_id
        before = event.get(MEMBERS)
        with bootstrap.services().engine.connect() as connection:
            page = members_page(
                connection,
                object_id,
                level=int(event.get("level", 1)),
                after=SourceObjectId(UUID(before[-1])) if before else None,
            )
        if page is None:
            return {"object_id": str(object_id), MEMBERS: []}
        return {"object_id": str(object_id), MEMBERS: [str(one) for one in page.ids], "level": page.level}


def quarantine(event: Event, context: LambdaContext) -> Answer:
    """Write down a failure that the stage's own function could not write down, and hand on the object's id."""
    with _named("ingest_quarantine", context):
        payload = _payload(event)
        for stage, failure in event[FAILED].items():
            name = str(failure.get("Error", "unknown"))
            bootstrap.services().stage_worker.record(
                stage, payload, error=name, reason=_reason(name, str(failure.get("Cause", "")))
            )
        return {"object_id": str(payload.object_id)}


def start(event: Event, context: LambdaContext) -> Answer:
    """Make true what a bucket tells, and start one execution for each object that is to be taken in.

    An event that comes again starts nothing again: the execution's name is made of the event.
    """
    with _named("ingest_start", context):
        parts = bootstrap.services()
        started: list[str] = []
        for one in read_events(event):
            object_id = parts.intake.take(one, now=utc_now())
            if object_id is not None:
                parts.state_machine.start(one.execution_name, Payload(object_id).to_json().decode())
                started.append(str(object_id))
        return {"started": started}


def apply_acls(event: Event, context: LambdaContext) -> Answer:
    """Apply the files of ACLs and memberships that a bucket tells of; one that is refused fails the call."""
    with _named("access_sync", context):
        reports = [bootstrap.services().acl_uploads.take(one) for one in read_events(event)]
        return {"applied": [report.to_json() for report in reports if report is not None]}


def sweep(event: Event, context: LambdaContext) -> Answer:
    """Bring the index up to date with what is queued; with `{"repair": true}` queue first what it lacks.

    Works as long as there is something due and time to finish it; the next call goes on.
    """
    with _named("index_sweep", context):
        parts = bootstrap.services()
        repaired = parts.index_repair.run() if event.get("repair") else 0
        report = parts.writer.drain(_DRAIN)
        total = report
        while report.versions_indexed + report.versions_removed and not report.error and _has_time(context):
            report = parts.writer.drain(_DRAIN)
            total += report
        return {
            "repaired": repaired,
            "indexed": total.versions_indexed,
            "removed": total.versions_removed,
            "failed": total.versions_failed,
        }


def _has_time(context: LambdaContext) -> bool:
    return context.get_remaining_time_in_millis() > _LEFT_TO_FINISH_MS


def _payload(event: Event) -> Payload:
    """Return the payload in an event, which may carry more than a payload."""
    known = {name: event[name] for name in Payload.__slots__ if name in event}
    return Payload.from_json(json.dumps(known))


def _reason(name: str, cause: str) -> str:
    """Return what stopped the stage, for people. A function's own error says it; the service's stands for itself."""
    try:
        said = json.loads(cause)["errorMessage"]
    except (ValueError, KeyError, TypeError):
        said = f"the stage was ended before it could say why ({name}): {cause}"
    return short(str(said)) or name


@contextmanager
def _named(function: str, context: LambdaContext) -> Iterator[None]:
    """Let errors out under the names that the state machine matches, and log them by their own."""
    with observability.correlated(str(getattr(context, "aws_request_id", ""))):
        try:
            yield
        except _AS_THEY_ARE as error:
            observability.log().info(function, extra={"errors": observability.kinds(error)})
            raise
        except Exception as error:  # noqa: BLE001 - the one place where errors get the names of their branches
            kind = TransientError if may_pass(error) else PermanentError
            if type(error) not in {TransientError, PermanentError}:
                observability.log_failure(function, error)
            raise kind(short(reason_of(error))) from None
