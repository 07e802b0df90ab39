"""What a signed message holds (CMS, RFC 5652), without asking whether its signature is good or whose it is."""

from __future__ import annotations

import base64
import binascii
import re
import zlib

from asn1crypto import cms, core

from shared.errors import EncryptedFileError, LimitExceededError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.cms_mark import is_cms

_MAX_LAYERS = 10
_MAX_INFLATED_BYTES = 256 * 1024 * 1024
_ARMOUR = re.compile(rb"-----(?:BEGIN|END) (?:PKCS7|CMS)-----")
_PRIMITIVE = 0
_OCTET_STRING, _LENGTH_LATER, _END_OF_PIECES = 0x04, 0x80, b"\0\0"
_SEALED = frozenset({"enveloped_data", "signed_and_enveloped_data", "encrypted_data", "authenticated_enveloped_data"})


def unwrap(content: bytes) -> bytes:
    """Return the innermost content of signed and compressed layers; DER, BER or the same in base64."""
    inner = content
    for layer in range(_MAX_LAYERS + 1):
        plain = _binary(inner)
        if not is_cms(plain):
            if layer == 0:
                raise UnreadableFileError("the file is no signed message")
            return inner
        inner = _content(plain)
    raise LimitExceededError(f"signed messages lie in one another more than {_MAX_LAYERS} deep")


def _content(content: bytes) -> bytes:
    try:
        message = cms.ContentInfo.load(content)
        kind = message["content_type"].native
        if kind in _SEALED:
            raise EncryptedFileError("the message is encrypted for its recipients; store a decrypted copy")
        if kind == "compressed_data":
            return _inflated(_octets(message["content"]["encap_content_info"]["content"]))
        if kind == "data":
            return _octets(message["content"])
        if kind not in {"signed_data", "authenticated_data"}:
            raise UnsupportedFileError(f"no converter reads messages of the type {kind}")
        wrapped = message["content"]["encap_content_info"]["content"]
        held = None if isinstance(wrapped, core.Void) else _octets(wrapped)
        has_signers = kind == "authenticated_data" or len(message["content"]["signer_infos"]) > 0
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise UnreadableFileError(f"the signed message is broken: {error}"[:300]) from error
    if held is None:
        if has_signers:
            raise UnsupportedFileError("the file is the signature of another file and holds no content of its own")
        raise UnsupportedFileError("the file holds certificates only and no content")
    return held


def _octets(value: core.Asn1Value) -> bytes:
    """Return the bytes of a string, also of one that was written in pieces before its length was known.

    The library appends piece to piece, which takes the square of their number: a minute for 20 MB as they are common.
    """
    if value.method == _PRIMITIVE:
        return bytes(value)
    pieces: list[bytes] = []
    content, at = value.contents, 0
    while at + 2 <= len(content) and content[at : at + 2] != _END_OF_PIECES:
        length, at = content[at + 1], at + 2
        if content[at - 2] != _OCTET_STRING or length == _LENGTH_LATER:
            # Pieces of pieces: nobody writes them, and the library knows them.
            return bytes(value)
        if length > _LENGTH_LATER:
            more = length - _LENGTH_LATER
            length, at = int.from_bytes(content[at : at + more], "big"), at + more
        if length > len(content) - at:
            raise UnreadableFileError("the signed message breaks off")
        pieces.append(content[at : at + length])
        at += length
    return b"".join(pieces)


def _inflated(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(content, _MAX_INFLATED_BYTES)
    except zlib.error as error:
        raise UnreadableFileError(f"the compressed message is broken: {error}") from error
    if inflater.unconsumed_tail:
        raise LimitExceededError(f"the message unpacks to more than {_MAX_INFLATED_BYTES} bytes")
    if not inflater.eof:
        raise UnreadableFileError("the compressed message breaks off")
    return inflated


def _binary(content: bytes) -> bytes:
    """Return the bytes of a message that is written in base64, with or without lines around it."""
    if is_cms(content):
        return content
    bare = _ARMOUR.sub(b"", content).strip()
    if not bare.startswith(b"MI"):
        return content
    try:
        return base64.b64decode(b"".join(bare.split()), validate=True)
    except (binascii.Error, ValueError):
        return content
