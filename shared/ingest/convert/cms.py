"""Signed files (.p7m): the mail or the text inside is the text, any other file inside is a member."""

from __future__ import annotations

from shared.ingest.convert.encoding import decode
from shared.ingest.convert.endings import ending_of
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.mail import Mail, conversion
from shared.ingest.convert.mime import entity, headers_of
from shared.ingest.convert.mime_reader import MimeReader
from shared.ingest.convert.signed_data import unwrap


def convert(content: bytes) -> Conversion:
    """Return what a signed file holds; that it is signed is noted, and nothing is said about the signature."""
    inner = unwrap(content)
    message = entity(inner)
    if message is not None:
        reader = MimeReader()
        reader.read(message)
        return conversion(Mail(headers_of(message), reader.texts, reader.members, is_signed=True))
    kind = kind_of(inner, "")
    if kind == "text/plain":
        return conversion(Mail({}, [decode(inner).text], [], is_signed=True))
    name = f"signed content{ending_of(kind)}"
    return conversion(Mail({}, [], [Member(name, inner)], is_signed=True))
