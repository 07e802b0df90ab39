"""Mail as a file: the headers that people read, the text, and every attachment as a member."""

from __future__ import annotations

from shared.errors import UnreadableFileError
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.mail import Mail, conversion
from shared.ingest.convert.mime import headers_of, parse
from shared.ingest.convert.mime_reader import MimeReader


def convert(content: bytes) -> Conversion:
    """Return a mail's text: headers in a part of their own, then the body (plain text before HTML)."""
    message = parse(content)
    if not message.keys():
        raise UnreadableFileError("the file has no mail headers")
    reader = MimeReader()
    reader.read(message)
    return conversion(Mail(headers_of(message), reader.texts, reader.members, is_signed=reader.is_signed))
