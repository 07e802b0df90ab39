"""What a signed or encrypted message (CMS, RFC 5652) begins with."""

from __future__ import annotations

_SEQUENCE = b"\x30"
# The arcs of PKCS #7, and of the content types that S/MIME added.
_OIDS = (bytes.fromhex("06092a864886f70d0107"), bytes.fromhex("060b2a864886f70d01091001"))
_OID_BYTES = 64


def is_cms(content: bytes) -> bool:
    """Return whether bytes begin as a CMS message does."""
    head = content[:_OID_BYTES]
    return head.startswith(_SEQUENCE) and any(oid in head for oid in _OIDS)
