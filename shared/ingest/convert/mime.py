"""MIME by the standard library's parser, within limits: mails as strangers write them, headers in readable text."""

from __future__ import annotations

import contextlib
import re
from email.errors import HeaderParseError, MessageError
from email.feedparser import BytesFeedParser
from email.header import decode_header, make_header
from email.message import Message
from email.policy import Compat32, Policy, default
from typing import Any, TypeAlias

from shared.errors import LimitExceededError
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.mail import KEPT, SHOWN

Part: TypeAlias = "Message[str, str]"

MAX_PARTS = 12_000
MAX_DEPTH = 50
MAX_HEADERS = 10_000
# Of the headers that the parser itself needs; its time grows with the square of their length.
MAX_STRUCTURE_CHARS = 64 * 1024
_PIECE = 64 * 1024
# Parsing a header takes the square of its length: of longer ones only the encoded words are decoded.
_MAX_PARSED_CHARS = 5000
_LINE_END = re.compile(r"\r?\n")
_LINE_FOLD = re.compile(r"\r?\n[ \t]+")
_HEADER_LINE = re.compile(rb"\s*[!-9;-~]{1,100}:")
_SAFE_ERRORS = (
    MessageError,
    HeaderParseError,
    LookupError,
    ValueError,
    AttributeError,
    TypeError,
    IndexError,
    KeyError,
)


class _AsSent(Compat32):
    """Headers are read as text without parsing them, and written back byte for byte.

    The parsing policy of the library takes about a millisecond a part and the square of a header's length.
    """

    def header_fetch_parse(self, name: str, value: str) -> str:
        if len(value) > MAX_STRUCTURE_CHARS:
            raise LimitExceededError(f"the mail's header {name[:40]} is longer than {MAX_STRUCTURE_CHARS} characters")
        return readable(value).strip()

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, _, value = sourcelines[0].partition(":")
        return name, (value + "".join(sourcelines[1:])).rstrip("\r\n")

    def fold_binary(self, name: str, value: str) -> bytes:
        lines = _LINE_END.sub(self.linesep, value)
        return f"{name}:{lines}{self.linesep}".encode("utf-8", "surrogateescape")


class _Counted(Message):
    """A part with a limit on its headers; each look at one goes through all of them."""

    def set_raw(self, name: str, value: str) -> None:
        if len(self) >= MAX_HEADERS:
            raise LimitExceededError(f"a part of the mail has more than {MAX_HEADERS} headers")
        super().set_raw(name, value)


def parse(content: bytes) -> Part:
    """Return a mail or a MIME entity as its parts."""
    count = 0

    def make(policy: Policy[Any]) -> Part:
        nonlocal count
        count += 1
        if count > MAX_PARTS:
            raise LimitExceededError(f"the mail has more than {MAX_PARTS} parts")
        return _Counted(policy=policy)

    # The parser hands its policy to what makes the parts; the stubs do not know.
    policy = _AsSent(linesep="\r\n" if b"\r\n" in content[:_PIECE] else "\n")
    parser = BytesFeedParser(make, policy=policy)  # type: ignore[arg-type] # see above
    for start in range(0, len(content), _PIECE):
        parser.feed(content[start : start + _PIECE])
    return parser.close()


def entity(content: bytes) -> Part | None:
    """Return bytes as the MIME entity that they are; None when they are anything else, a text or another file."""
    if not _HEADER_LINE.match(content):
        return None
    found = parse(content)
    return found if "content-type" in found or "mime-version" in found else None


def readable(value: str) -> str:
    """Return a header as text: bytes that are no ASCII are UTF-8 by RFC 6532, else what Western mailers send."""
    if value.isascii():
        return value
    return decode(value.encode("utf-8", "surrogateescape")).text


def headers_of(message: Part) -> dict[str, str]:
    """Return the headers that a mail is known by, by lower-case name."""
    return {name.lower(): value for name in (*SHOWN, *KEPT) if (value := header(message, name))}


def header(message: Part, name: str) -> str | None:
    """Return a header decoded, also when it holds raw bytes or is malformed; None when it is missing."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), None)
    if raw is None:
        return None
    unfolded = _LINE_FOLD.sub(" ", readable(raw)).strip()
    value = unfolded if name == "Date" else _decoded(name, unfolded)
    return value.strip() or unfolded or None


def _decoded(name: str, value: str) -> str:
    try:
        if len(value) <= _MAX_PARSED_CHARS:
            return str(default.header_factory(name, value))
        return str(make_header(decode_header(value)))
    except (*_SAFE_ERRORS, RecursionError):
        return value


def parts_of(part: Part) -> list[Part]:
    """Return the parts right below a part."""
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, Message)] if isinstance(payload, list) else []


def file_name(part: Part) -> str | None:
    """Return the file name that a part gives itself, in whichever way it is written."""
    try:
        name = part.get_filename()
    except _SAFE_ERRORS:
        return None
    if not name:
        return None
    name = readable(_LINE_FOLD.sub(" ", name))
    if "=?" in name and len(name) <= _MAX_PARSED_CHARS:
        # No standard allows encoded words here, and many mailers send them.
        with contextlib.suppress(*_SAFE_ERRORS):
            name = str(make_header(decode_header(name)))
    return name.strip() or None


def is_attached(part: Part) -> bool:
    """Return whether a part says that it is an attachment."""
    return str(part.get("Content-Disposition", "")).strip().lower().startswith("attachment")


def content_of(part: Part) -> bytes:
    """Return the bytes that a part carries."""
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else str(part.get_payload()).encode("utf-8", "surrogateescape")


def text_of(part: Part) -> str:
    """Return the text of a part in the encoding that it names, or in the one that it must be."""
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset()
    if charset and charset not in {"us-ascii", "unknown-8bit"}:
        try:
            return content.decode("cp1252" if charset in {"iso-8859-1", "latin-1"} else charset)
        except (LookupError, ValueError):  # a name that no codec has, that none can have, or the wrong one
            pass
    return decode(content).text


def bytes_of(message: Part) -> bytes:
    """Return an attached mail as bytes; as close to what was sent as the parser kept it."""
    try:
        return message.as_bytes(unixfrom=False)
    except _SAFE_ERRORS:
        lines = [f"{key}: {value}" for key, value in message.raw_items()]
        texts = (text_of(part) for part in message.walk() if part.get_content_maintype() == "text")
        return ("\n".join(lines) + "\n\n" + "\n\n".join(texts)).encode("utf-8", "surrogateescape")
