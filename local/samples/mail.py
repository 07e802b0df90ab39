"""A mail with its attachments as RFC 5322 bytes, the same on every machine.

Headers are encoded here, not by the standard library, whose folding differs between Python versions.
"""

import base64
import quopri
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from enum import StrEnum
from urllib.parse import quote

from local.samples.plain import html, text
from local.samples.prose import Prose

_MIME = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eml": "message/rfc822",
}
_ADDRESS = re.compile(r"(?P<name>[^<>,]+?) <(?P<address>[^<>]+)>")
_BASE64_LINE = 76


class NameStyle(StrEnum):
    """How an attachment's file name is written: as the standard says, or as some mail programs do."""

    RFC2231 = "rfc2231"
    RFC2047 = "rfc2047"


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attached file."""

    name: str
    content: bytes
    disposition: str = "attachment"
    name_style: NameStyle = NameStyle.RFC2231


def eml(prose: Prose, attachments: Sequence[Attachment]) -> bytes:
    """Return the mail whose headers are the facts of `prose` and whose body is its text.

    The fact `format: html` adds an HTML alternative; `charset` (UTF-8) is that of the plain body.
    """
    facts = prose.facts
    boundary = f"=_lindqvist_{facts['message_id'].split('@')[0]}"
    body = _alternatives(prose, boundary + "_alt") if facts.get("format") == "html" else _plain(prose)
    if attachments:
        body = _multipart("mixed", boundary, [body, *map(_attachment, attachments)])
    return "".join(f"{line}\r\n" for line in _headers(facts)).encode("ascii") + body


def _headers(facts: Mapping[str, str]) -> list[str]:
    lines = [
        f"From: {_addresses(facts['from'])}",
        f"To: {_addresses(facts['to'])}",
        f"Subject: {_encoded(facts['title'])}",
        f"Date: {format_datetime(datetime.fromisoformat(facts['sent']))}",
        f"Message-ID: <{facts['message_id']}>",
    ]
    if "cc" in facts:
        lines.insert(2, f"Cc: {_addresses(facts['cc'])}")
    if "references" in facts:
        references = facts["references"].split()
        lines.append(f"In-Reply-To: <{references[-1]}>")
        lines.append("References: " + "\r\n ".join(f"<{reference}>" for reference in references))
    return [*lines, "MIME-Version: 1.0"]


def _addresses(value: str) -> str:
    return ", ".join(f"{_encoded(match['name'].strip())} <{match['address']}>" for match in _ADDRESS.finditer(value))


def _encoded(value: str) -> str:
    """Return RFC 2047 encoded words of at most 75 characters, or the value itself when it is ASCII."""
    if value.isascii():
        return value
    chunks = [value[start : start + 20] for start in range(0, len(value), 20)]
    return "\r\n ".join(f"=?utf-8?B?{base64.b64encode(chunk.encode()).decode('ascii')}?=" for chunk in chunks)


def _plain(prose: Prose) -> bytes:
    charset = prose.facts.get("charset", "utf-8")
    words = text(prose).decode()
    encoded = quopri.encodestring(words.encode(charset)).replace(b"\n", b"\r\n")
    return _part(f'text/plain; charset="{charset}"', "quoted-printable", encoded)


def _alternatives(prose: Prose, boundary: str) -> bytes:
    page = _part('text/html; charset="utf-8"', "base64", _base64(html(prose)))
    return _multipart("alternative", boundary, [_plain(prose), page])


def _attachment(item: Attachment) -> bytes:
    kind = _MIME[item.name.rpartition(".")[2]]
    disposition = f"{item.disposition};\r\n {_file_name(item)}"
    if kind == "message/rfc822":  # RFC 2046, 5.2.1: never in base64
        return _part(kind, "7bit", item.content, disposition)
    return _part(kind, "base64", _base64(item.content), disposition)


def _file_name(item: Attachment) -> str:
    if item.name.isascii():
        return f'filename="{item.name}"'
    if item.name_style is NameStyle.RFC2047:
        return f'filename="{_encoded(item.name)}"'
    return f"filename*=utf-8''{quote(item.name, safe='')}"


def _part(kind: str, encoding: str, content: bytes, disposition: str = "") -> bytes:
    head = f"Content-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n"
    if disposition:
        head += f"Content-Disposition: {disposition}\r\n"
    return head.encode("ascii") + b"\r\n" + content


def _multipart(kind: str, boundary: str, parts: Sequence[bytes]) -> bytes:
    head = f'Content-Type: multipart/{kind};\r\n boundary="{boundary}"\r\n\r\n'.encode("ascii")
    mark = f"--{boundary}".encode("ascii")
    return head + b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + b"--\r\n"


def _base64(content: bytes) -> bytes:
    words = base64.b64encode(content)
    return b"\r\n".join(words[start : start + _BASE64_LINE] for start in range(0, len(words), _BASE64_LINE))
