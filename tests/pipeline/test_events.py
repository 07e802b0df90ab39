"""What a bucket's events do: decoded keys, order by sequencer, folders, versions, ACLs beside objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

import pytest
import sqlalchemy as sa

from shared.db.tables.access import source_object_grants
from shared.db.tables.ingest import quarantine
from shared.db.tables.sources import object_events, source_objects
from shared.errors import InvalidRequestError
from shared.ingest import objects
from shared.ingest.events import Change, EventIntake, ObjectEvent, read_events
from shared.sources.config import PlaceRule, ProjectRef, SourceConfig
from shared.types import SourceId, SourceKind

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
AWKWARD = "Akte 12/Kündigung + Anlage (1).pdf"


@dataclass
class Bucket:
    """What lies in the bucket now."""

    content: dict[str, bytes] = field(default_factory=dict)
    name: str = "eingang"

    def exists(self, key: str) -> bool:
        return key in self.content

    def read(self, key: str, *, max_bytes: int) -> bytes | None:  # noqa: ARG002
        return self.content.get(key)


@dataclass
class Uploads:
    """A source in a bucket, and what takes its events."""

    engine: sa.Engine
    source_id: SourceId
    bucket: Bucket

    def take(self, path: str, change: Change = Change.CREATED, *, at: str, size: int | None = 3) -> Any:
        event = ObjectEvent("eingang", f"{self.source_id}/{path}", change, at, size, None)
        return EventIntake(self.engine, self.bucket).take(event, now=NOW)

    def rows(self, statement: sa.Select[Any] | None = None) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(sa.select(source_objects) if statement is None else statement))

    def put(self, path: str, content: bytes) -> None:
        self.bucket.content[f"{self.source_id}/{path}"] = content


@pytest.fixture
def uploads(engine: sa.Engine) -> Uploads:
    config = SourceConfig(
        kind=SourceKind.S3,
        project=ProjectRef(key="nord", title="Projekt Nord"),
        places=(PlaceRule(prefix="a"),),
        exclude=("*.tmp",),
    )
    with engine.begin() as connection:
        return Uploads(engine, objects.ensure_source(connection, "eingang", config), Bucket())


def eventbridge(key: str, kind: str = "Object Created", **detail: Any) -> dict[str, Any]:
    thing = {"key": key, "sequencer": "0A1B", **detail.pop("object", {})}
    return {
        "detail-type": kind,
        "source": "aws.s3",
        "detail": {"bucket": {"name": "eingang"}, "object": thing} | detail,
    }


def notification(key: str, name: str = "ObjectCreated:Put", **thing: Any) -> dict[str, Any]:
    about = {"bucket": {"name": "eingang"}, "object": {"key": key, "sequencer": "0A1B", **thing}}
    return {"Records": [{"eventSource": "aws:s3", "eventName": name, "s3": about}]}


def test_a_notification_s_key_is_decoded_once_and_eventbridge_s_not_at_all() -> None:
    [told] = read_events(notification(quote_plus(f"x/{AWKWARD}", safe="/")))
    [sent] = read_events(eventbridge(f"x/{AWKWARD}"))
    assert told.key == sent.key == f"x/{AWKWARD}"
    # A name that looks encoded is not decoded a second time, nor at all where it came as it is.
    assert read_events(notification("x/100%2525.pdf"))[0].key == "x/100%25.pdf"
    assert read_events(eventbridge("x/100%25+1.pdf"))[0].key == "x/100%25+1.pdf"


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (eventbridge("k"), Change.CREATED),
        (eventbridge("k", "Object Deleted", **{"deletion-type": "Permanently Deleted"}), Change.DELETED),
        (
            eventbridge(
                "k", "Object Deleted", object={"version-id": "v"}, **{"deletion-type": "Delete Marker Created"}
            ),
            Change.DELETED,
        ),
        (
            eventbridge("k", "Object Deleted", object={"version-id": "v"}, **{"deletion-type": "Permanently Deleted"}),
            Change.VERSION_DELETED,
        ),
        (notification("k", "s3:ObjectCreated:CompleteMultipartUpload"), Change.CREATED),
        (notification("k", "ObjectRemoved:Delete"), Change.DELETED),
        (notification("k", "ObjectRemoved:Delete", versionId="v"), Change.VERSION_DELETED),
        (notification("k", "ObjectRemoved:DeleteMarkerCreated", versionId="v"), Change.DELETED),
        (notification("k", "LifecycleExpiration:DeleteMarkerCreated", versionId="v"), Change.DELETED),
    ],
)
def test_both_shapes_say_what_happened(event: dict[str, Any], change: Change) -> None:
    [read] = read_events(event)
    assert (read.bucket, read.key, read.change, read.sequencer) == ("eingang", "k", change, "0A1B")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Records": [{}]},
        eventbridge("k", "Object Tags Added"),
        notification("k", "ObjectTagging:Put"),
        eventbridge("k", object={"sequencer": "latest"}),
        eventbridge("k", object={"sequencer": ""}),
    ],
)
def test_an_event_that_says_something_else_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        read_events(event)


def test_the_test_event_of_a_new_notification_says_nothing() -> None:
    assert read_events({"Service": "Amazon S3", "Event": "s3:TestEvent"}) == []


def test_the_same_event_has_the_same_execution_name_and_every_other_another() -> None:
    def name(key: str = "k", at: str = "0A1B") -> str:
        return ObjectEvent("eingang", key, Change.CREATED, at, 1, None).execution_name

    assert name() == name() == name(at="0a1b00")
    assert len({name(), name(at="0A1C"), name(key="l"), name(key="k0", at="A1B")}) == 4
    assert len(name()) <= 80


def test_late_and_doubled_events_leave_a_deleted_object_deleted(uploads: Uploads) -> None:
    v1, v2, deleted = "0055AED6DCD90281E5", "0055AED6DCD90281E6", "0055AED6DCD90281E601"
    first = uploads.take("a.txt", at=v1)
    assert uploads.take("a.txt", at=v2) == first
    assert uploads.take("a.txt", Change.DELETED, at=deleted) is None
    for late in (v2, v1, v2):
        assert uploads.take("a.txt", at=late) is None
    [row] = uploads.rows()
    assert (row.id, row.deleted_at is not None) == (first, True)


def test_sequencers_compare_after_padding_on_the_right_whatever_their_case_and_length(uploads: Uploads) -> None:
    assert uploads.take("a.txt", at="0b") is not None
    # As numbers these would be greater, as texts without padding smaller or equal.
    assert uploads.take("a.txt", at="0a99") is None
    assert uploads.take("a.txt", at="0B00") is not None
    assert uploads.take("a.txt", at="0C") is not None
    assert uploads.take("a.txt", at="0bff") is None


def test_a_deletion_that_is_heard_first_outlives_the_upload_before_it(uploads: Uploads) -> None:
    assert uploads.take("a.txt", Change.DELETED, at="02") is None
    assert uploads.take("a.txt", at="01") is None
    assert uploads.rows() == []


def test_order_counts_for_one_key_alone(uploads: Uploads) -> None:
    assert uploads.take("a.txt", at="09") is not None
    assert uploads.take("b.txt", at="01") is not None


def test_a_redelivered_event_does_the_same_again(uploads: Uploads) -> None:
    """A function that died after the first time must be able to start the execution the second time."""
    assert uploads.take("a.txt", at="01") == uploads.take("a.txt", at="01") is not None


def test_deleting_one_version_asks_the_bucket_what_lies_there_now(uploads: Uploads) -> None:
    uploads.put("a.txt", b"v1")
    first = uploads.take("a.txt", at="01")
    assert uploads.take("a.txt", Change.VERSION_DELETED, at="02") == first
    assert uploads.rows()[0].deleted_at is None
    uploads.bucket.content.clear()
    assert uploads.take("a.txt", Change.VERSION_DELETED, at="03") is None
    assert uploads.rows()[0].deleted_at is not None


def test_removing_the_marker_of_a_deletion_brings_the_same_object_back(uploads: Uploads) -> None:
    uploads.put("a.txt", b"v1")
    first = uploads.take("a.txt", at="01")
    uploads.take("a.txt", Change.DELETED, at="02")
    assert uploads.take("a.txt", Change.VERSION_DELETED, at="03") == first
    [row] = uploads.rows()
    assert (row.id, row.deleted_at) == (first, None)


def test_a_folder_leaves_no_record_and_an_empty_file_is_an_object(uploads: Uploads) -> None:
    assert uploads.take("Akte 12/", at="01", size=0) is None
    assert uploads.take("Akte 12/", Change.DELETED, at="02", size=None) is None
    assert uploads.rows() == uploads.rows(sa.select(object_events)) == []
    assert uploads.take("Akte 12/leer.txt", at="01", size=0) is not None


def test_an_awkward_name_is_kept_as_it_is(uploads: Uploads) -> None:
    object_id = uploads.take(AWKWARD, at="01")
    [row] = uploads.rows()
    assert (row.id, row.path, row.name) == (object_id, AWKWARD, "Kündigung + Anlage (1).pdf")


@pytest.mark.parametrize("key", ["a.txt", "nord/a.txt", f"{uuid4()}/a.txt", f"{uuid4()}", "/a.txt", ""])
def test_a_key_of_no_source_is_refused_and_nothing_is_stored(uploads: Uploads, key: str) -> None:
    event = ObjectEvent("eingang", key, Change.CREATED, "01", 1, None)
    with pytest.raises(InvalidRequestError, match="source"):
        EventIntake(uploads.engine, uploads.bucket).take(event, now=NOW)
    assert uploads.rows() == uploads.rows(sa.select(object_events)) == []


def test_an_event_of_another_bucket_is_refused(uploads: Uploads) -> None:
    event = ObjectEvent("ablage", f"{uploads.source_id}/a.txt", Change.CREATED, "01", 1, None)
    with pytest.raises(InvalidRequestError, match="uploads lie in eingang"):
        EventIntake(uploads.engine, uploads.bucket).take(event, now=NOW)
    assert uploads.rows() == uploads.rows(sa.select(object_events)) == []


def test_a_key_of_a_source_that_lies_elsewhere_is_refused(uploads: Uploads) -> None:
    with uploads.engine.begin() as connection:
        folder = objects.ensure_source(connection, "ablage", SourceConfig())
    event = ObjectEvent("eingang", f"{folder}/a.txt", Change.CREATED, "01", 1, None)
    with pytest.raises(InvalidRequestError, match="source"):
        EventIntake(uploads.engine, uploads.bucket).take(event, now=NOW)


def test_a_path_that_stands_for_a_file_in_a_file_is_refused(uploads: Uploads) -> None:
    with pytest.raises(InvalidRequestError, match="stands for a file in another file"):
        uploads.take("brief.eml!/1/a.txt", at="01")
    assert uploads.rows() == []


def test_what_the_source_does_not_take_leaves_no_record(uploads: Uploads) -> None:
    assert uploads.take("a.tmp", at="01") is None
    assert uploads.rows() == uploads.rows(sa.select(object_events)) == []


def grants(uploads: Uploads) -> set[tuple[str, str]]:
    return {
        (row.principal, row.effect)
        for row in uploads.rows(sa.select(source_object_grants.c.principal, source_object_grants.c.effect))
    }


ACL = b'[{"principal": "user:anna@nord.example"}, {"principal": "user:ben@nord.example", "effect": "deny"}]'


@pytest.mark.parametrize("object_first", [True, False])
def test_an_acl_beside_an_object_is_its_acl_whichever_comes_first(uploads: Uploads, object_first: bool) -> None:
    steps: list[Callable[[], Any]] = [
        lambda: uploads.take("a.txt", at="01"),
        lambda: uploads.take("a.txt.acl.json", at="01"),
    ]
    uploads.put("a.txt", b"text")
    uploads.put("a.txt.acl.json", ACL)
    for step in steps if object_first else reversed(steps):
        step()
    assert grants(uploads) == {("user:anna@nord.example", "allow"), ("user:ben@nord.example", "deny")}
    # It is no document of its own.
    assert [row.path for row in uploads.rows()] == ["a.txt"]


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"{}",
        b"null",
        b'[{"principal": "user:anna@nord.example", "effect": "maybe"}]',
        b'[{"principal": "user:anna@nord.example", "effect": "deny", "effect": "allow"}]',
        b'[{"principal": "user:anna@nord.example", "level": "read"}]',
        b"[" * 100_000,
    ],
)
def test_an_acl_that_cannot_be_read_closes_the_object(uploads: Uploads, content: bytes) -> None:
    uploads.put("a.txt.acl.json", ACL)
    uploads.take("a.txt", at="01")
    assert grants(uploads)
    uploads.put("a.txt.acl.json", content)
    uploads.take("a.txt.acl.json", at="02")
    [row] = uploads.rows()
    assert (row.acl_state, grants(uploads)) == ("known", set())
    assert "ACL unreadable" in row.acl_warning


def test_an_acl_that_is_taken_away_closes_the_object(uploads: Uploads) -> None:
    uploads.put("a.txt.acl.json", ACL)
    uploads.take("a.txt", at="01")
    uploads.bucket.content.clear()
    uploads.take("a.txt.acl.json", Change.DELETED, at="02")
    assert (uploads.rows()[0].acl_state, grants(uploads)) == ("known", set())


def test_a_deleted_object_leaves_quarantine(uploads: Uploads) -> None:
    object_id = uploads.take("a.txt", at="01")
    with uploads.engine.begin() as connection:
        connection.execute(
            sa.insert(quarantine).values(
                source_object_id=object_id, stage="fetch", error="E", reason="the file is gone", attempts=1
            )
        )
    uploads.take("a.txt", Change.DELETED, at="02")
    assert uploads.rows(sa.select(quarantine)) == []
