"""What a signed or encrypted message (CMS, RFC 5652) begins with."""

from __future__ import annotations

_SEQUENCE, _LONG_LENGTH = 0x30, 0x80
# The arcs of PKCS #7, and of the content types that S/MIME added.
_OIDS = (bytes.fromhex("06092a864886f70d0107"), bytes.fromhex("060b2a864886f70d01091001"))


def is_cms(content: bytes) -> bool:
    """Return whether bytes begin as a CMS message does: a sequence whose first part is the type of a content."""
    if len(content) < 2 or content[0] != _SEQUENCE:  # noqa: PLR2004 - a tag and a length
        return False
    length = content[1]
    start = 2 + (length - _LONG_LENGTH if length > _LONG_LENGTH else 0)
    return content.startswith(_OIDS, start)
