"""Mail as a file: the headers that people read, the text, and every attachment as a member."""

from __future__ import annotations

import email
import mimetypes
import re
from collections.abc import Iterator
from email.errors import HeaderParseError, MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import default

from shared.errors import UnreadableFileError
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import decode
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.html import text_of

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_KEPT = ("message-id", "in-reply-to", "references")
# The signature itself; that there is one is kept, whether it is good is not said.
_SIGNATURES = frozenset({"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"})
_MAX_DEPTH = 50
# Parsing a header takes the square of its length: of longer ones only the encoded words are decoded.
_MAX_PARSED_CHARS = 5000
_LINE_FOLD = re.compile(r"\r?\n[ \t]+")


def convert(content: bytes) -> Conversion:
    """Return a mail's text: headers in a part of their own, then the body (plain text before HTML)."""
    message = email.message_from_bytes(content, policy=default)
    if not message.keys():
        raise UnreadableFileError("the file has no mail headers")
    headers = {name.lower(): value for name in (*_SHOWN, *_KEPT) if (value := header(message, name))}
    reader = _Reader()
    reader.read(message, depth=0)
    builder = TextBuilder()
    builder.page(None, locus="mail header")
    for name in _SHOWN:
        if name.lower() in headers:
            builder.add(f"{name}: {headers[name.lower()]}")
    builder.page(None, locus="body")
    for text in reader.texts:
        builder.add(text, gap=2)
    meta = {**headers, "signed": reader.signed} if reader.signed else dict(headers)
    return Conversion(builder.build(title=headers.get("subject"), meta=meta), tuple(reader.members))


def header(message: EmailMessage, name: str) -> str | None:
    """Return a header decoded, also when it holds raw bytes or is malformed; None when it is missing."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), None)
    if raw is None:
        return None
    # Bytes that are no ASCII come as surrogates: UTF-8 by RFC 6532, else what Western mailers send.
    readable = decode(raw.encode("utf-8", "surrogateescape")).text
    unfolded = _LINE_FOLD.sub(" ", readable)
    value = unfolded
    if name != "Date":
        try:
            is_short = len(unfolded) <= _MAX_PARSED_CHARS
            value = str(default.header_factory(name, unfolded) if is_short else make_header(decode_header(unfolded)))
        except (HeaderParseError, LookupError, ValueError, AttributeError, TypeError, RecursionError):
            value = unfolded
    if not value.strip():
        value = unfolded
    return value.strip() or None


class _Reader:
    """Sorts the parts of a mail into its text and its attachments, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.members: list[Member] = []
        self.signed = False

    def read(self, part: EmailMessage, *, depth: int) -> None:
        kind = part.get_content_type()
        if depth > _MAX_DEPTH:
            raise UnreadableFileError(f"the mail's parts are nested more than {_MAX_DEPTH} deep")
        if kind in _SIGNATURES:
            self.signed = True
        elif kind == "message/rfc822":
            self._add_message(part)
        elif kind == "multipart/alternative":
            self._read_alternative(part, depth)
        elif part.is_multipart():
            for inner in _parts(part):
                self.read(inner, depth=depth + 1)
        elif kind in {"text/plain", "text/html"} and not _file_name(part) and not _attached(part):
            text = _text(part)
            self.texts.append(text_of(text) if kind == "text/html" else text)
        else:
            self._add_file(part)

    def _read_alternative(self, part: EmailMessage, depth: int) -> None:
        """Take the plain text where there is any, else the HTML; what else is in there are attachments."""
        inner = _parts(part)
        plain = [p for p in inner if p.get_content_type() == "text/plain" and not _file_name(p) and _text(p).strip()]
        for child in inner:
            is_text = child.get_content_type() in {"text/plain", "text/html"} and not _file_name(child)
            if plain and is_text and child is not plain[0]:
                continue
            if plain and child.get_content_type() == "multipart/related":
                # The HTML with its pictures: the pictures are kept.
                kept = list(self.texts)
                self.read(child, depth=depth + 1)
                self.texts = kept
                continue
            self.read(child, depth=depth + 1)

    def _add_message(self, part: EmailMessage) -> None:
        inner = _parts(part)
        if not inner:
            return
        name = _file_name(part) or header(inner[0], "Subject") or "message"
        self.members.append(Member(name if name.lower().endswith(".eml") else f"{name}.eml", _message_bytes(inner[0])))

    def _add_file(self, part: EmailMessage) -> None:
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else str(part.get_payload()).encode("utf-8", "replace")
        ending = mimetypes.guess_extension(part.get_content_type()) or ".bin"
        self.members.append(Member(_file_name(part) or f"part {len(self.members) + 1}{ending}", content))


def _parts(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, EmailMessage)] if isinstance(payload, list) else []


def _file_name(part: EmailMessage) -> str | None:
    try:
        name = part.get_filename()
    except (MessageError, ValueError, LookupError, IndexError, AttributeError, TypeError):
        return None
    if not name:
        return None
    return decode(name.encode("utf-8", "surrogateescape")).text.strip() or None


def _attached(part: EmailMessage) -> bool:
    disposition = str(part.get("Content-Disposition", "")).strip().lower()
    return disposition.startswith("attachment")


def _text(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset()
    if charset and charset not in {"us-ascii", "unknown-8bit"}:
        try:
            return content.decode("cp1252" if charset in {"iso-8859-1", "latin-1"} else charset)
        except (LookupError, ValueError):  # a name that no codec has, that none can have, or the wrong one
            pass
    return decode(content).text


def _message_bytes(message: EmailMessage) -> bytes:
    """Return an attached mail as bytes; as close to what was sent as the parser kept it."""
    try:
        return message.as_bytes(unixfrom=False)
    except (MessageError, ValueError, LookupError, IndexError, AttributeError, TypeError, KeyError):
        lines = [f"{key}: {value}" for key, value in message.raw_items()]
        body = "\n\n".join(_text(part) for part in _leaves(message))
        return ("\n".join(lines) + "\n\n" + body).encode("utf-8", "surrogateescape")


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    for part in message.walk():
        if isinstance(part, EmailMessage) and part.get_content_maintype() == "text":
            yield part
