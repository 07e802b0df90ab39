"""What a bucket tells of its objects, and what it means for the source that keeps its files there.

Events come at least once and in any order. What counts is the order of their sequencers, for one key at a time: an
event that is older than one that was heard already changes nothing, the same one again does the same again. The key of
an object is `<source id>/<path>`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol
from urllib.parse import unquote_plus
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.mirror import UnreadableAcl, replace_object_acl
from shared.db.tables.sources import object_events, source_objects, sources
from shared.errors import InvalidRequestError, LimitExceededError
from shared.ingest import deletions, objects, places, state
from shared.ingest.sidecars import entries_of
from shared.sources.base import FoundObject
from shared.sources.config import SourceConfig
from shared.sources.s3 import SIDECAR, external_id_of
from shared.text.normalise import stored
from shared.types import SourceId, SourceKind, SourceObjectId

ACLS: Final = "_acl/"
"""Begins the keys of files of ACLs and memberships, which are no objects of a source: shared.ingest.acl_uploads."""

_LOG = logging.getLogger(__name__)
_EVENTBRIDGE: Final = {"Object Created": "created", "Object Deleted": "deleted"}
_NOTIFICATIONS: Final = {"ObjectCreated": "created", "ObjectRemoved": "deleted", "LifecycleExpiration": "deleted"}
_NOT_KNOWN: Final = "not an event about an object that was created or deleted"


class Change(StrEnum):
    """What happened to the object."""

    CREATED = "created"
    # Nothing lies under the key now.
    DELETED = "deleted"
    # One version of several went, a marker of a deletion perhaps: only the bucket knows what lies there now.
    VERSION_DELETED = "version_deleted"


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One change of one object. `key` is as the bucket knows it; `sequencer` is hexadecimal, of any length."""

    bucket: str
    key: str
    change: Change
    sequencer: str
    size_bytes: int | None
    version_id: str | None

    @property
    def is_folder(self) -> bool:
        """Whether this is the mark of a folder that a console makes: nothing that holds anything."""
        return self.key.endswith("/") and not self.size_bytes

    @property
    def execution_name(self) -> str:
        """A name that this event has alone and has each time it comes: it starts one execution."""
        parts = json.dumps([self.bucket, self.key, self.sequencer.lower().rstrip("0")])
        return hashlib.sha256(parts.encode()).hexdigest()


class UploadBucket(Protocol):
    """The bucket that sources keep their files in, as it is now."""

    @property
    def name(self) -> str:
        """The bucket's name."""

    def exists(self, key: str) -> bool:
        """Return whether something lies under the key."""

    def read(self, key: str, *, max_bytes: int) -> bytes | None:
        """Return the bytes, None if nothing lies there; `LimitExceededError` if there are too many."""


def read_events(event: Mapping[str, Any]) -> list[ObjectEvent]:
    """Return the changes in an event of EventBridge (one) or in a notification of S3 (any number).

    A notification's keys are encoded as in a form and decoded once here; EventBridge sends keys as they are. Raises
    `InvalidRequestError` for anything else, but for the test event of a new notification, which says nothing.
    """
    if event.get("Event") == "s3:TestEvent":
        return []
    try:
        if "detail-type" in event:
            return [_of_eventbridge(event["detail-type"], event["detail"])]
        return [_of_notification(str(record["eventName"]), record["s3"]) for record in event["Records"]]
    except (KeyError, TypeError) as error:
        raise InvalidRequestError(f"{_NOT_KNOWN}: {error} is missing") from error


def _of_eventbridge(kind: str, detail: Mapping[str, Any]) -> ObjectEvent:
    if kind not in _EVENTBRIDGE:
        raise InvalidRequestError(f"{_NOT_KNOWN}: {kind}")
    about, version_id = detail["object"], detail["object"].get("version-id")
    change = Change(_EVENTBRIDGE[kind])
    if change is Change.DELETED and version_id and detail.get("deletion-type") != "Delete Marker Created":
        change = Change.VERSION_DELETED
    return ObjectEvent(
        str(detail["bucket"]["name"]),
        str(about["key"]),
        change,
        _sequencer(about["sequencer"]),
        about.get("size"),
        version_id,
    )


def _of_notification(name: str, about: Mapping[str, Any]) -> ObjectEvent:
    kind, _, how = name.removeprefix("s3:").partition(":")
    if kind not in _NOTIFICATIONS:
        raise InvalidRequestError(f"{_NOT_KNOWN}: {name}")
    thing, version_id = about["object"], about["object"].get("versionId")
    change = Change(_NOTIFICATIONS[kind])
    if change is Change.DELETED and version_id and how != "DeleteMarkerCreated":
        change = Change.VERSION_DELETED
    return ObjectEvent(
        str(about["bucket"]["name"]),
        unquote_plus(str(thing["key"])),
        change,
        _sequencer(thing["sequencer"]),
        thing.get("size"),
        version_id,
    )


def _sequencer(given: object) -> str:
    text = str(given)
    if not text or set(text.lower()) - set("0123456789abcdef"):
        raise InvalidRequestError(f"{_NOT_KNOWN}: {text[:40]!r} is no sequencer")
    return text


class EventIntake:
    """Makes what a bucket tells true in the database. Safe to call twice, and from many at once."""

    def __init__(self, engine: sa.Engine, bucket: UploadBucket, *, max_sidecar_bytes: int = 4 * 1024 * 1024) -> None:
        self._engine = engine
        self._bucket = bucket
        self._max_sidecar_bytes = max_sidecar_bytes

    def take(self, event: ObjectEvent, *, now: datetime) -> SourceObjectId | None:
        """Return the object that is to be taken in now, None if there is nothing to do.

        Raises `InvalidRequestError` if the event is of another bucket, or if the key names no source that keeps its
        files in a bucket, or a path that no object can have; nothing is stored then.
        """
        if event.bucket != self._bucket.name:
            # What the product itself stores must never come in as a file.
            raise InvalidRequestError(f"uploads lie in {self._bucket.name}, not in {event.bucket}", field="bucket")
        if event.is_folder or event.key.startswith(ACLS):
            return None
        source_id, found, config = self._place(event)
        if event.key.endswith(SIDECAR):
            self._mirror(source_id, event, now=now)
            return None
        if not config.takes(found.path):
            return None
        there = event.change is Change.CREATED or (
            event.change is Change.VERSION_DELETED and self._bucket.exists(event.key)
        )
        with self._engine.begin() as connection:
            if not _note(connection, source_id, event):
                _LOG.info("object event is older than what is known", extra={"source_id": str(source_id)})
                return None
            if not there:
                _bury(connection, source_id, found.external_id)
                return None
            places.ensure(connection, {config.place_of(found.path)} | config.numbered_places())
            object_id = objects.register(connection, source_id, [found])[found.external_id]
            _lock(connection, object_id)
            acl = self._sidecar(event.key + SIDECAR)
            if acl is not None:
                replace_object_acl(connection, object_id, acl, as_of=now)
        return object_id

    def _place(self, event: ObjectEvent) -> tuple[SourceId, FoundObject, SourceConfig]:
        """Return the source of a key, the object as a listing of the source would show it, and the configuration."""
        name, slash, rest = event.key.partition("/")
        shown = event.key[:200]
        unknown = f"the key {shown!r} does not begin with the id of a source that keeps its files in a bucket"
        try:
            source_id = SourceId(UUID(name))
        except ValueError as error:
            raise InvalidRequestError(unknown, field="key") from error
        with self._engine.connect() as connection:
            held = connection.execute(sa.select(sources.c.kind, sources.c.config).where(sources.c.id == source_id))
            row = held.one_or_none()
        if row is None or row.kind != SourceKind.S3 or not slash or not rest or name != str(source_id):
            raise InvalidRequestError(unknown, field="key")
        path = stored(rest)
        found = FoundObject(
            external_id_of(event.key),
            path,
            path.rpartition("/")[2],
            event.size_bytes,
            source_version=event.version_id,
        )
        if reason := objects.unusable(found):
            raise InvalidRequestError(f"the key {shown!r} cannot be taken in: {reason}", field="key")
        return source_id, found, SourceConfig.model_validate(row.config)

    def _mirror(self, source_id: SourceId, event: ObjectEvent, *, now: datetime) -> None:
        """Take the ACL that lies beside an object, if the object is known; else it is read when the object comes.

        A sidecar that has gone closes its object: what it said before is not in force, and nobody said anything else.
        """
        with self._engine.begin() as connection:
            if not _note(connection, source_id, event):
                return
            beside = external_id_of(event.key.removesuffix(SIDECAR))
            object_id = connection.execute(_object(source_id, beside)).scalar_one_or_none()
            if object_id is None:
                return
            _lock(connection, SourceObjectId(object_id))
            acl = self._sidecar(event.key)
            gone = UnreadableAcl("the file that gave the ACL has gone")
            replace_object_acl(connection, SourceObjectId(object_id), gone if acl is None else acl, as_of=now)

    def _sidecar(self, key: str) -> list[Any] | UnreadableAcl | None:
        """Return the ACL under a key, None if there is none."""
        try:
            content = self._bucket.read(key, max_bytes=self._max_sidecar_bytes)
        except LimitExceededError as error:
            return UnreadableAcl(error.message)
        return None if content is None else entries_of(content)


def _note(connection: sa.Connection, source_id: SourceId, event: ObjectEvent) -> bool:
    """Return whether nothing newer was heard of the object, and remember the event if so.

    The shorter of two sequencers is padded with zeros on the right; then they compare as texts. Whoever notes an event
    of the same object meanwhile waits for this transaction.
    """
    insert = pg.insert(object_events).values(
        source_id=source_id, external_id=external_id_of(event.key), sequencer=event.sequencer
    )
    held, heard = object_events.c.sequencer, insert.excluded.sequencer
    length = sa.func.greatest(sa.func.length(held), sa.func.length(heard))
    padded = (sa.collate(sa.func.rpad(sa.func.lower(one), length, "0"), "C") for one in (heard, held))
    noted = insert.on_conflict_do_update(
        index_elements=[object_events.c.source_id, object_events.c.external_id],
        set_={"sequencer": heard, "updated_at": sa.func.now()},
        where=next(padded) >= next(padded),
    )
    return connection.execute(noted.returning(object_events.c.source_id)).first() is not None


def _bury(connection: sa.Connection, source_id: SourceId, external_id: str) -> None:
    """Bury the object, and forget what it failed at: what is gone need not be mended."""
    gone = _object(source_id, external_id)
    deletions.tombstone(connection, gone)
    for object_id in connection.execute(gone).scalars():
        state.forget(connection, SourceObjectId(object_id))


def _object(source_id: SourceId, external_id: str) -> sa.Select[Any]:
    columns = source_objects.c
    return sa.select(columns.id).where(columns.source_id == source_id, columns.external_id == external_id)


def _lock(connection: sa.Connection, object_id: SourceObjectId) -> None:
    """Hold the object, so that of two who read its ACL the later one writes what was read later."""
    connection.execute(sa.select(source_objects.c.id).where(source_objects.c.id == object_id).with_for_update())
