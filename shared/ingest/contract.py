"""What a stage is: a plain function from ids and storage keys to ids and storage keys, with its rules as data.

The same function runs in a unit test, in the in-process runner, in a Lambda handler and under the state machine.
It is safe to call twice: what it writes is keyed by what it read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol
from uuid import UUID

import sqlalchemy as sa

from shared.errors import LimitExceededError
from shared.ingest.convert.formats import Conversion
from shared.ingest.objects import ObjectRow
from shared.providers.llm.protocol import LanguageModel
from shared.providers.storage import ObjectStore
from shared.settings import Settings
from shared.sources.base import Source
from shared.types import SourceObjectId

MAX_PAYLOAD_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """What travels between stages: ids, hashes and storage keys, never content."""

    object_id: SourceObjectId
    sha256: str | None = None
    mime: str | None = None
    original_key: str | None = None
    # Path, project and matter: what else but the bytes decides where a version belongs.
    place: str | None = None
    text_key: str | None = None
    # The list of the files in this one; None when there are none.
    members_key: str | None = None
    facts_key: str | None = None
    # What was decided about the matter before the content was looked at: by an administrator, for the file around it.
    assigned: str | None = None
    # The key of the matter that the object belongs to.
    matter: str | None = None
    # The clauses of the text; None when it has none.
    clauses_key: str | None = None
    document_id: str | None = None
    version_id: str | None = None

    def with_result(self, result: Mapping[str, str]) -> Payload:
        """Return the payload after a stage; an unknown field is a programming error."""
        changes: dict[str, Any] = dict(result)
        merged = replace(self, **changes)
        if len(merged.to_json()) > MAX_PAYLOAD_BYTES:
            raise LimitExceededError(f"the payload of a stage is larger than {MAX_PAYLOAD_BYTES} bytes")
        return merged

    def to_json(self) -> bytes:
        """Return the payload as the state machine carries it."""
        body = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps(body | {"object_id": str(self.object_id)}, sort_keys=True).encode()

    @classmethod
    def from_json(cls, carried: bytes | str) -> Payload:
        """Return the payload that `to_json` wrote."""
        body = json.loads(carried)
        return cls(**{**body, "object_id": SourceObjectId(UUID(body["object_id"]))})

    def need(self, field: str) -> str:
        """Return a field that an earlier stage must have set."""
        value = getattr(self, field)
        if not isinstance(value, str):
            raise TypeError(f"the payload of {self.object_id} lacks {field}: an earlier stage did not run")
        return value


@dataclass(frozen=True, slots=True)
class StageInput:
    """One call of a stage. `row` is the object as it was when the caller took its lock.

    `is_last_try`: a failure that may pass would end the object's run now, so a stage that can do without help does.
    """

    payload: Payload
    row: ObjectRow
    timeout_s: float
    is_last_try: bool = True


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage adds to the payload, and one word on what happened for the closing table."""

    found: Mapping[str, str]
    note: str | None = None


class Converter(Protocol):
    """Runs a conversion out of this process, within limits."""

    def convert(self, format_name: str, content: bytes, *, timeout_s: float) -> Conversion:
        """Return the converted text and the members, or raise the permanent error that says why not."""


@dataclass(frozen=True, slots=True)
class Services:
    """What stages work with; made once by the caller and handed in.

    `opens_all` off: an object of which the source's listing says that it has not changed is not opened. `model` is
    None where rules do the work (`llm.provider`).
    """

    engine: sa.Engine
    store: ObjectStore
    settings: Settings
    source: Source
    converter: Converter
    opens_all: bool = True
    model: LanguageModel | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """How a transient failure is tried again: `backoff_base_s * rate ** (n - 1)` before try n + 1."""

    max_tries: int
    backoff_base_s: float
    rate: float = 2.0

    def wait_s(self, *, failed_tries: int) -> float:
        """Return how long to wait after so many failed tries."""
        return float(self.backoff_base_s * self.rate ** (failed_tries - 1))


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage and its rules.

    `reads` names the payload fields that it works on: the same values and the same producer version need no second
    run. `always` marks the one stage that finds out whether anything changed.
    """

    name: str
    run: Callable[[StageInput, Services], StageResult]
    producer: Callable[[Payload], str]
    reads: tuple[str, ...]
    timeout_s: float
    retry: Retry
    always: bool = False

    def input_sha256(self, payload: Payload) -> str:
        """Return the hash of what the stage would work on."""
        basis: dict[str, Any] = {field: getattr(payload, field) for field in self.reads}
        return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()
