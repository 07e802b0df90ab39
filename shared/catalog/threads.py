"""Which mails belong together: by their ids first, by subject only where a reply, its people and its time agree.

Worked out among the mails that a viewer may see. Two of them that only a third one joins are apart for whoever may not
see the third: otherwise a thread would tell of it. Ingest asks the same question of all mails of a realm, to know
which ones to look at.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access.predicate import Standing, Viewer, visible_versions
from shared.db.tables.base import TextArray, Uuid
from shared.db.tables.catalog import document_versions
from shared.db.tables.structure import thread_messages
from shared.types import AclMode, VersionId

REPLY_WINDOW = timedelta(days=90)
# Clocks of two mail servers differ.
CLOCK_SKEW = timedelta(hours=2)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """A mail: `ids` are its own id and those that it answers, `people` all addresses of its headers, lower case."""

    version_id: VersionId
    realm: UUID
    message_id: str | None
    ids: tuple[str, ...]
    subject: str | None
    is_reply: bool
    sender: str | None
    people: tuple[str, ...]
    sent_at: datetime | None

    @property
    def answers_by_id(self) -> bool:
        """Whether its headers say what it answers; then its subject says nothing more."""
        return any(one != self.message_id for one in self.ids)


@dataclass(frozen=True, slots=True)
class Thread:
    """Messages that belong together, in the order of their time; copies of one message are several versions."""

    id: UUID
    messages: tuple[Message, ...]

    @property
    def count(self) -> int:
        """How many messages there are: the same Message-ID at two places is one message."""
        return len({message.message_id or str(message.version_id) for message in self.messages})


def visible_threads(connection: sa.Connection, viewer: Viewer, versions: Collection[VersionId]) -> list[Thread]:
    """Return the threads of these mails that have another message for the viewer; one statement.

    The id of a thread is that of its first visible message: it says nothing of what the viewer may not see.
    """
    statement = _statement(viewer.mode, is_administrator=viewer.is_administrator)
    body = {"viewer": sorted(viewer.principals), "versions": list(versions)}
    rows = connection.execute(statement, body).all()
    wanted = set(versions)
    groups = components([message_of(row) for row in rows])
    threads = [Thread(uuid5(group[0].realm, _name(group[0])), tuple(group)) for group in groups]
    return [one for one in threads if one.count > 1 and wanted & {message.version_id for message in one.messages}]


@cache
def _statement(mode: AclMode, *, is_administrator: bool) -> sa.Select[Any]:
    """Return the visible messages that may belong together with those asked for; built once a process."""
    standing = Standing(sa.bindparam("viewer", type_=TextArray), mode, is_administrator)
    among = document_versions.c.id == sa.any_(sa.bindparam("versions", type_=pg.ARRAY(Uuid)))
    asked = visible_versions(standing, among=among, name="asked")
    mine = sa.select(thread_messages.c.thread_id).join(asked, asked.c.version_id == thread_messages.c.version_id)
    members = sa.select(thread_messages.c.version_id).where(thread_messages.c.thread_id.in_(mine))
    shown = visible_versions(standing, among=document_versions.c.id.in_(members), name="shown")
    return sa.select(*columns()).join(shown, shown.c.version_id == thread_messages.c.version_id)


def components(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages in threads, each in the order of its time; the same whatever order they came in."""
    ordered = sorted(messages, key=_order)
    sets = _Sets(len(ordered))
    by_id: dict[tuple[UUID, str], int] = {}
    by_subject: dict[tuple[UUID, str], tuple[list[int], list[int]]] = {}
    for node, message in enumerate(ordered):
        for one in message.ids:
            sets.join(node, by_id.setdefault((message.realm, one), node))
        if message.subject is None or message.sent_at is None:
            continue
        earlier, replies = by_subject.setdefault((message.realm, message.subject), ([], []))
        # A mail that answers nothing by its subject can only be answered, and at most a clock's error before.
        is_reply = message.is_reply and not message.answers_by_id
        for other in reversed(earlier if is_reply else replies):
            since = message.sent_at - (ordered[other].sent_at or _EARLIEST)
            if since > (REPLY_WINDOW if is_reply else CLOCK_SKEW):
                break
            if answers(message, ordered[other]) or answers(ordered[other], message):
                sets.join(node, other)
        earlier.append(node)
        if is_reply:
            replies.append(node)
    groups: dict[int, list[Message]] = {}
    for node, message in enumerate(ordered):
        groups.setdefault(sets.find(node), []).append(message)
    return sorted(groups.values(), key=lambda group: _order(group[0]))


class _Sets:
    """Disjoint sets of numbers (union-find with path halving, Tarjan and van Leeuwen 1984)."""

    def __init__(self, size: int) -> None:
        self._root = list(range(size))

    def find(self, node: int) -> int:
        while self._root[node] != node:
            self._root[node] = self._root[self._root[node]]
            node = self._root[node]
        return node

    def join(self, one: int, other: int) -> None:
        self._root[self.find(one)] = self.find(other)


def answers(reply: Message, earlier: Message) -> bool:
    """Return whether a mail without ids of others answers another one by its subject, its people and its time."""
    if reply.realm != earlier.realm or not reply.is_reply or reply.answers_by_id:
        return False
    if reply.subject is None or reply.subject != earlier.subject or reply.sent_at is None or earlier.sent_at is None:
        return False
    if not -CLOCK_SKEW <= reply.sent_at - earlier.sent_at <= REPLY_WINDOW:
        return False
    # Who answers was written to, and writes to somebody of the same circle.
    return reply.sender in earlier.people and len(set(reply.people) & set(earlier.people)) > 1


def message_of(row: Any) -> Message:
    """Return the message in a row of `columns`."""
    return Message(
        VersionId(row.version_id),
        row.realm,
        row.message_id,
        tuple(row.ids),
        row.subject,
        row.is_reply,
        row.sender,
        tuple(row.people),
        row.sent_at,
    )


def columns() -> list[sa.Column[Any]]:
    """Return the columns of a `Message`, in its order."""
    return [thread_messages.c[name] for name in Message.__slots__]


def _order(message: Message) -> tuple[datetime, str, str]:
    return message.sent_at or _EARLIEST, message.message_id or "", str(message.version_id)


def _name(message: Message) -> str:
    return message.message_id or str(message.version_id)
