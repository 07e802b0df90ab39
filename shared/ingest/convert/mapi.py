"""A message as Outlook keeps it: properties with numbers, recipients and attachments ([MS-OXPROPS], [MS-OXCMSG])."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import compressed_rtf

from shared.errors import LimitExceededError, UnreadableFileError
from shared.ingest.convert import html, mail, rtf
from shared.ingest.convert.code_pages import codec_of, codec_of_locale
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.endings import ending_of
from shared.ingest.convert.formats import Member
from shared.ingest.convert.mail import Mail
from shared.ingest.convert.mime import headers_of, parse

INTEGER, BOOLEAN, OBJECT, STRING8, UNICODE, TIME, BINARY = 0x03, 0x0B, 0x0D, 0x1E, 0x1F, 0x40, 0x0102

CLASS, SUBJECT, SUBMITTED, HEADERS = 0x001A, 0x0037, 0x0039, 0x007D
SENT_FOR, SENT_FOR_TYPE, SENT_FOR_ADDRESS, SENT_FOR_SMTP = 0x0042, 0x0064, 0x0065, 0x5D02
SENDER, SENDER_TYPE, SENDER_ADDRESS, SENDER_SMTP = 0x0C1A, 0x0C1E, 0x0C1F, 0x5D01
SHOWN_BCC, SHOWN_CC, SHOWN_TO = 0x0E02, 0x0E03, 0x0E04
BODY, BODY_RTF, BODY_HTML = 0x1000, 0x1009, 0x1013
MESSAGE_ID, REFERENCES, IN_REPLY_TO = 0x1035, 0x1039, 0x1042
CODE_PAGE, INTERNET_CODE_PAGE, LOCALE = 0x3FFD, 0x3FDE, 0x3FF1
NAME, ADDRESS_TYPE, ADDRESS, SMTP, RECIPIENT_KIND, RECIPIENT_NAME = 0x3001, 0x3002, 0x3003, 0x39FE, 0x0C15, 0x5FF6
DATA, SHORT_NAME, LONG_NAME, ENDING = 0x3701, 0x3704, 0x3707, 0x3703
MIME_TYPE = 0x370E

OF_MESSAGE = frozenset((
    CLASS, SUBJECT, SUBMITTED, HEADERS, SENT_FOR, SENT_FOR_TYPE, SENT_FOR_ADDRESS, SENT_FOR_SMTP, SENDER, SENDER_TYPE,
    SENDER_ADDRESS, SENDER_SMTP, SHOWN_BCC, SHOWN_CC, SHOWN_TO, BODY, BODY_RTF, BODY_HTML, MESSAGE_ID, REFERENCES,
    IN_REPLY_TO, CODE_PAGE, INTERNET_CODE_PAGE, LOCALE,
))  # fmt: skip
OF_RECIPIENT = frozenset((NAME, ADDRESS_TYPE, ADDRESS, SMTP, RECIPIENT_KIND, RECIPIENT_NAME))
OF_ATTACHMENT = frozenset((NAME, SHORT_NAME, LONG_NAME, ENDING, MIME_TYPE))

_RECIPIENT_HEADERS = {1: "to", 2: "cc", 3: "bcc"}
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
# In these an 8-bit text can be valid UTF-8 by chance; in Western code pages it cannot.
_MULTIBYTE = frozenset({"cp932", "cp936", "cp949", "cp950", "cp1361", "gbk", "big5", "gb18030", "euc_jp", "euc_kr"})
_PREFIX_MARK = "\x01"
_OUTLOOK_LINE = re.compile(r"\AMicrosoft Mail Internet Headers Version [\d.]+\s*")
# The packer takes two bytes for up to seventeen; unpacking is slow, and nobody writes a mail of this length.
_MAX_PACKED_RTF_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Properties:
    """Values by property number, each with its type, and the codecs to try for texts of 8 bits."""

    values: Mapping[int, tuple[int, bytes]]
    codecs: Sequence[str] = ()

    def text(self, number: int) -> str | None:
        """Return a text property, None where it is missing or blank."""
        kind, value = self.values.get(number, (0, b""))
        if kind == UNICODE:
            text = value.decode("utf-16-le", "replace")
        elif kind == STRING8:
            text = self._decoded(value)
        else:
            return None
        return text.rstrip("\0").strip() or None

    def number(self, number: int) -> int | None:
        """Return an integer property."""
        kind, value = self.values.get(number, (0, b""))
        return struct.unpack_from("<i", value)[0] if kind == INTEGER and len(value) >= 4 else None  # noqa: PLR2004

    def moment(self, number: int) -> datetime | None:
        """Return a time property in UTC; None also where it is no time that a calendar has."""
        kind, value = self.values.get(number, (0, b""))
        if kind != TIME or len(value) < 8:  # noqa: PLR2004 - a time has 64 bits
            return None
        ticks = struct.unpack_from("<Q", value)[0]
        try:
            return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None
        except OverflowError:
            return None

    def content(self, number: int) -> bytes | None:
        """Return a binary property."""
        kind, value = self.values.get(number, (0, b""))
        return value if kind == BINARY else None

    def _decoded(self, value: bytes) -> str:
        utf8_first = not self.codecs or self.codecs[0] not in _MULTIBYTE
        for codec in (["utf-8"] if utf8_first else []) + list(self.codecs):
            try:
                return value.decode(codec)
            except (UnicodeDecodeError, LookupError):
                continue
        return decode(value).text


def codecs_of(message: Mapping[int, tuple[int, bytes]], *others: int | None) -> tuple[str, ...]:
    """Return the codecs for a message's 8-bit texts: its own code page, that of its locale, that of its transport."""
    numbers = Properties(message)
    named = [codec_of(numbers.number(CODE_PAGE)), *(codec_of(other) for other in others)]
    named += [codec_of_locale(numbers.number(LOCALE)), codec_of(numbers.number(INTERNET_CODE_PAGE))]
    return tuple(dict.fromkeys(codec for codec in named if codec is not None))


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file at a message. `content` is None where the message only points at a file elsewhere."""

    properties: Properties
    content: bytes | None
    # A message in a message is named by its own subject, with this ending.
    subject: str | None = None
    ending: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message with what belongs to it."""

    properties: Properties
    recipients: Sequence[Properties]
    attachments: Sequence[Attachment]


def mail_of(message: Message, *, date: str | None = None) -> Mail:
    """Return a message as a mail; `date` is used where neither a header nor the time of sending is kept."""
    headers = _headers(message)
    if "date" not in headers and date:
        headers["date"] = date
    members = [
        Member(_file_name(attachment, position), attachment.content)
        for position, attachment in enumerate(message.attachments, start=1)
        if attachment.content is not None
    ]
    missing = [
        _file_name(attachment, position)
        for position, attachment in enumerate(message.attachments, start=1)
        if attachment.content is None
    ]
    text = body_of(message.properties)
    return Mail(headers, [text] if text else [], members, notes={"attachments_elsewhere": missing})


def subject_of(properties: Properties) -> str | None:
    """Return the subject; a mark and a length stand before one with a prefix ("AW: ")."""
    subject = properties.text(SUBJECT) or ""
    return (subject[2:] if subject.startswith(_PREFIX_MARK) else subject) or None


def body_of(properties: Properties) -> str | None:
    """Return what was written: plain text before HTML before RTF."""
    plain = properties.text(BODY)
    if plain:
        return plain
    page = _html(properties)
    if page and (text := html.text_of(page)).strip():
        return text
    packed = properties.content(BODY_RTF)
    return rtf.text_of(unpacked(packed)) if packed else None


def unpacked(packed: bytes) -> bytes:
    """Return RTF out of its packed form ([MS-OXRTFCP])."""
    if len(packed) > _MAX_PACKED_RTF_BYTES:
        raise LimitExceededError(f"the RTF body of the mail has more than {_MAX_PACKED_RTF_BYTES} packed bytes")
    try:
        return bytes(compressed_rtf.decompress(packed))
    except Exception as error:  # the library raises nothing more special
        raise UnreadableFileError(f"the RTF body of the mail is broken: {error}") from error


def _html(properties: Properties) -> str | None:
    content = properties.content(BODY_HTML)
    if content is None:
        return properties.text(BODY_HTML)
    decoded = decode(content)
    codec = codec_of(properties.number(INTERNET_CODE_PAGE))
    if decoded.confidence == "assumed" and codec is not None:
        return content.decode(codec, "replace")
    return decoded.text


def _headers(message: Message) -> dict[str, str]:
    """Return the headers as they travelled, else as the properties keep them."""
    about = message.properties
    headers = _kept_headers(message)
    travelled = about.text(HEADERS)
    if travelled:
        sent = parse(_OUTLOOK_LINE.sub("", travelled).encode("utf-8", "surrogatepass"))
        headers |= headers_of(sent)
    if subject := subject_of(about):
        headers["subject"] = subject
    return headers


def _kept_headers(message: Message) -> dict[str, str]:
    about = message.properties
    people: dict[str, list[str]] = {}
    for recipient in message.recipients:
        kind = _RECIPIENT_HEADERS.get((recipient.number(RECIPIENT_KIND) or 1) & 0xF)
        name = recipient.text(NAME) or recipient.text(RECIPIENT_NAME)
        person = _person(name, _address(recipient, SMTP, ADDRESS_TYPE, ADDRESS))
        if kind and person:
            people.setdefault(kind, []).append(person)
    sent = about.moment(SUBMITTED)
    found = {
        "from": _person(about.text(SENT_FOR), _address(about, SENT_FOR_SMTP, SENT_FOR_TYPE, SENT_FOR_ADDRESS))
        or _person(about.text(SENDER), _address(about, SENDER_SMTP, SENDER_TYPE, SENDER_ADDRESS)),
        "to": ", ".join(people.get("to", ())) or about.text(SHOWN_TO),
        "cc": ", ".join(people.get("cc", ())) or about.text(SHOWN_CC),
        "bcc": ", ".join(people.get("bcc", ())) or about.text(SHOWN_BCC),
        "date": format_datetime(sent) if sent is not None else None,
        "message-id": about.text(MESSAGE_ID),
        "in-reply-to": about.text(IN_REPLY_TO),
        "references": about.text(REFERENCES),
    }
    return {name: value for name, value in found.items() if value}


def _address(about: Properties, smtp: int, kind: int, address: int) -> str | None:
    """Return the Internet address; the long name of a directory entry is none."""
    if found := about.text(smtp):
        return found
    return about.text(address) if (about.text(kind) or "").upper() == "SMTP" else None


def _person(name: str | None, address: str | None) -> str | None:
    if not address:
        return name
    return f"{name} <{address}>" if name and name != address else address


def _file_name(attachment: Attachment, position: int) -> str:
    about = attachment.properties
    if attachment.ending is not None:
        return mail.file_name(attachment.subject or about.text(LONG_NAME) or about.text(NAME), attachment.ending)
    given = about.text(LONG_NAME) or about.text(SHORT_NAME) or about.text(NAME)
    if given:
        return given
    return f"part {position}{about.text(ENDING) or ending_of(about.text(MIME_TYPE))}"
