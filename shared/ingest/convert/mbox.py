"""A folder of mails in one file (mbox, RFC 4155): every mail is a member, and none of them is the file's own text."""

from __future__ import annotations

import re

from shared.errors import UnreadableFileError
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.mail import file_name
from shared.ingest.convert.mbox_mark import beginnings
from shared.ingest.convert.mime import MAX_HEADERS, header, parse

_HEAD_END = re.compile(rb"\r?\n\r?\n")
# Lines of a text that would look like the beginning of a mail carry a sign before them.
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_MAX_HEAD_BYTES = MAX_HEADERS * 100


def convert(content: bytes) -> Conversion:
    """Return the mails, each under its subject."""
    lines = list(beginnings(content))
    if not lines:
        raise UnreadableFileError("the file holds no mails")
    ends = [*(start for start, _ in lines[1:]), len(content)]
    mails = [_QUOTED.sub(rb"\1", content[start:end]) for (_, start), end in zip(lines, ends, strict=True)]
    return Conversion(TextBuilder().build(), tuple(Member(_name(mail), mail) for mail in mails))


def _name(mail: bytes) -> str:
    head = _HEAD_END.split(mail[:_MAX_HEAD_BYTES], maxsplit=1)[0]
    return file_name(header(parse(head + b"\n\n"), "Subject"), ".eml")
