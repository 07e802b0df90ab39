"""Mails into threads: which messages of a realm may belong together, kept so that a reader need not look at all.

What is kept is never finer than what `shared.catalog.threads` works out for a viewer: that decides. A mail that links
two threads makes them one, whichever of them came last.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.catalog.threads import CLOCK_SKEW, REPLY_WINDOW, Message, answers, columns, message_of
from shared.db.tables.base import TextArray
from shared.db.tables.structure import thread_messages
from shared.ingest.locks import lock_key
from shared.text.converted import ConvertedText
from shared.text.normalise import single_line
from shared.types import VersionId

_MAILS = frozenset({"message/rfc822", "application/vnd.ms-outlook"})
_ID = re.compile(r"<([^<>\s]+)>")
# As mailers write them: German, English, Dutch, French, Spanish, Italian, Nordic; "[2]" and "^2" count replies.
_PREFIX = re.compile(
    r"^\s*(?:(?:AW|WG|RE|FW|FWD|ANTW|ANTWORT|WTR|TR|RV|RES|R|I|SV|VS|VB|DOORST|ENC)\s*(?:\[\d{1,3}\]|\^\d{1,3})?\s*:"
    r"|(?:\[(?:ext|extern|external)\]))\s*",
    re.IGNORECASE,
)
_MAX_PREFIXES = 20
_MAX_IDS = 100
_MAX_PEOPLE = 500
_MAX_KEY_CHARS = 200


@dataclass(frozen=True, slots=True)
class Mail:
    """What the headers of a mail say of its thread; `answers` is the id of the mail it answers."""

    message_id: str | None
    answers: str | None
    ids: tuple[str, ...]
    subject: str | None
    is_reply: bool
    sender: str | None
    people: tuple[str, ...]
    sent_at: datetime | None


def is_mail(mime: str) -> bool:
    """Return whether files of this kind are mails."""
    return mime in _MAILS


def mail_of(text: ConvertedText) -> Mail:
    """Return what the headers say; what is missing or cannot be read is not there."""
    own = _ids(_header(text, "message-id"))
    message_id = own[0] if own else _bare_id(_header(text, "message-id"))
    replied = _ids(_header(text, "in-reply-to"))
    referred = _ids(_header(text, "references"))
    # The last reference is the mail that is answered; long lists lose their middle, as RFC 5322 advises.
    kept = [*referred[:10], *referred[10:][-_MAX_IDS + 20 :], *replied[:9]]
    subject, is_reply = plain_subject(_header(text, "subject") or "")
    senders = _addresses(_header(text, "from"))
    people = [*senders, *(one for name in ("to", "cc", "bcc") for one in _addresses(_header(text, name)))]
    return Mail(
        message_id=message_id,
        answers=next(iter([*replied[:1], *referred[-1:]]), None),
        ids=tuple(dict.fromkeys([*([message_id] if message_id else []), *kept])),
        subject=subject,
        is_reply=is_reply,
        sender=senders[0] if senders else None,
        people=tuple(sorted(set(people[:_MAX_PEOPLE]))),
        sent_at=_moment(_header(text, "date")),
    )


def plain_subject(subject: str) -> tuple[str | None, bool]:
    """Return the subject without prefixes, and whether one of them says that it answers or forwards."""
    rest, is_reply = single_line(subject), False
    for _ in range(_MAX_PREFIXES):
        found = _PREFIX.match(rest)
        if found is None:
            break
        is_reply = is_reply or ":" in found.group(0)
        rest = rest[found.end() :]
    rest = rest.strip().casefold()
    return (_short(rest) if rest else None), is_reply


def settle_message(connection: sa.Connection, version_id: VersionId, realm: UUID, mail: Mail) -> None:
    """Put a mail into the threads of its realm; three statements, however many mails there are.

    The caller's transaction may hold locks of places; this one is taken after them, by everybody.
    """
    message = Message(
        version_id,
        realm,
        mail.message_id,
        mail.ids,
        mail.subject,
        mail.is_reply,
        mail.sender,
        mail.people,
        mail.sent_at,
    )
    put_message(connection, message)


def put_message(connection: sa.Connection, message: Message) -> None:
    """Write a message and make one of all threads that it links."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock_key("threads", str(message.realm)))))
    rows = connection.execute(_candidates(message)).all()
    linked = sorted({row.thread_id for row in rows if _belong_together(message, message_of(row))})
    # A thread is named by its first version: the same whoever comes first of those that are linked to nothing.
    thread_id = linked[0] if linked else message.version_id
    values = {name: getattr(message, name) for name in Message.__slots__} | {"thread_id": thread_id}
    values |= {"ids": list(message.ids), "people": list(message.people)}
    insert = pg.insert(thread_messages).values(values)
    changed = {name: insert.excluded[name] for name in values if name != "version_id"}
    differs = sa.or_(*(thread_messages.c[name].is_distinct_from(value) for name, value in changed.items()))
    merged = (
        sa.update(thread_messages)
        .where(thread_messages.c.thread_id.in_(linked[1:]), thread_messages.c.version_id != message.version_id)
        .values(thread_id=thread_id)
        .cte("merged")
    )
    upsert = insert.on_conflict_do_update(index_elements=[thread_messages.c.version_id], set_=changed, where=differs)
    connection.execute(upsert.add_cte(merged) if linked[1:] else upsert)


def move_messages(connection: sa.Connection, versions: list[VersionId], realm: UUID | None) -> None:
    """Take the mails among these versions out of their threads and into those of another realm, if there is one."""
    gone = sa.delete(thread_messages).where(thread_messages.c.version_id.in_(versions)).returning(*columns())
    for row in connection.execute(gone).all():
        if realm is not None:
            message = message_of(row)
            values = {name: getattr(message, name) for name in Message.__slots__} | {"realm": realm}
            put_message(connection, Message(**values))


def _candidates(message: Message) -> sa.Select[Any]:
    """Return every message of the realm that may be linked to this one, with its thread."""
    row = thread_messages.c
    by_id = row.ids.op("&&")(sa.cast(list(message.ids), TextArray))
    conditions: list[sa.ColumnElement[bool]] = [by_id] if message.ids else []
    if message.subject is not None and message.sent_at is not None:
        window = REPLY_WINDOW + CLOCK_SKEW
        conditions.append(
            sa.and_(
                row.subject == message.subject,
                row.sent_at.between(message.sent_at - window, message.sent_at + window),
                row.people.op("&&")(sa.cast(list(message.people), TextArray)),
            )
        )
    return sa.select(*columns(), row.thread_id).where(
        row.realm == message.realm, row.version_id != message.version_id, sa.or_(sa.false(), *conditions)
    )


def _belong_together(one: Message, other: Message) -> bool:
    return bool(set(one.ids) & set(other.ids)) or answers(one, other) or answers(other, one)


def _header(text: ConvertedText, name: str) -> str | None:
    value = text.meta.get(name)
    return value if isinstance(value, str) else None


def _ids(header: str | None) -> list[str]:
    return [_short(found) for found in _ID.findall(header or "")]


def _bare_id(header: str | None) -> str | None:
    """Return an id without brackets, as some mailers write it; words are none."""
    plain = (header or "").strip()
    return _short(plain) if "@" in plain and not re.search(r"\s|[<>]", plain) else None


def _addresses(header: str | None) -> list[str]:
    found = getaddresses([header]) if header else []
    return [_short(address.strip().casefold()) for _, address in found if "@" in address]


def _moment(header: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(re.sub(r"\([^()]*\)?", " ", header or "").strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _short(value: str) -> str:
    """Return a value that an index can hold."""
    return value if len(value) <= _MAX_KEY_CHARS else "#" + hashlib.sha256(value.encode()).hexdigest()
