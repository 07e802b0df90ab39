"""Mails as Outlook and S/MIME write them, built for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from asn1crypto import algos, cms, core, x509

from shared.ingest.convert.ole_writer import Storage, write

STRING8, UNICODE, INTEGER, TIME, BINARY, OBJECT = 0x1E, 0x1F, 0x03, 0x40, 0x0102, 0x0D
SUBJECT, BODY, HTML, RTF, CODE_PAGE, LOCALE, CLASS = 0x0037, 0x1000, 0x1013, 0x1009, 0x3FFD, 0x3FF1, 0x001A
NAME, LONG_NAME, DATA, METHOD = 0x3001, 0x3707, 0x3701, 0x3705
SMTP, RECIPIENT_KIND, SENT_FOR, SENT_FOR_SMTP, SUBMITTED, HEADERS = 0x39FE, 0x0C15, 0x0042, 0x5D02, 0x0039, 0x007D
MESSAGE_ID, REFERENCES, IN_REPLY_TO = 0x1035, 0x1039, 0x1042

Values = Mapping[int, str | bytes | int | datetime]


def ticks(moment: datetime) -> bytes:
    return struct.pack("<Q", int((moment - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds() * 10_000_000))


def storage(
    values: Values, *, head: int, codec: str | None = None, inner: Mapping[str, Storage] | None = None
) -> Storage:
    """Return properties as an Outlook storage; texts in `codec` when it is given, else in Unicode."""
    streams: dict[str, bytes] = {}
    rows = bytearray(head)
    for number, value in values.items():
        if isinstance(value, int):
            rows += struct.pack("<HHIq", INTEGER, number, 6, value)
        elif isinstance(value, datetime):
            rows += struct.pack("<HHI", TIME, number, 6) + ticks(value)
        else:
            kind = BINARY if isinstance(value, bytes) else STRING8 if codec else UNICODE
            content = value if isinstance(value, bytes) else value.encode(codec or "utf-16-le")
            streams[f"__substg1.0_{number:04X}{kind:04X}"] = content
            rows += struct.pack("<HHIII", kind, number, 6, len(content), 0)
    return Storage({"__properties_version1.0": bytes(rows), **streams}, dict(inner or {}))


def attachment(name: str, content: bytes | Storage, *, codec: str | None = None, number: int = LONG_NAME) -> Storage:
    if isinstance(content, bytes):
        return storage({number: name, METHOD: 1, DATA: content}, head=8, codec=codec)
    return storage({number: name, METHOD: 5}, head=8, codec=codec, inner={"__substg1.0_3701000D": content})


def message(
    values: Values,
    *attachments: Storage,
    recipients: Sequence[Values] = (),
    codec: str | None = None,
    is_inner: bool = False,
) -> Storage:
    inner = {f"__attach_version1.0_#{n:08X}": a for n, a in enumerate(attachments)}
    inner |= {f"__recip_version1.0_#{n:08X}": storage(r, head=8, codec=codec) for n, r in enumerate(recipients)}
    return storage(values, head=24 if is_inner else 32, codec=codec, inner=inner)


def msg(values: Values, *attachments: Storage, recipients: Sequence[Values] = (), codec: str | None = None) -> bytes:
    return write(message(values, *attachments, recipients=recipients, codec=codec))


def tnef(*attributes: tuple[int, bytes]) -> bytes:
    """Return a winmail.dat of attributes, in order."""
    body = b"\x78\x9f\x3e\x22\x01\x00"
    for number, data in attributes:
        level = 2 if number in {0x69002, 0x69005, 0x18010, 0x6800F} else 1
        body += struct.pack("<BII", level, number, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)
    return body


def tnef_values(values: Mapping[int, tuple[int, bytes]]) -> bytes:
    """Return properties as a winmail.dat packs them."""
    packed = struct.pack("<I", len(values))
    for number, (kind, value) in values.items():
        packed += struct.pack("<HH", kind, number)
        if kind in {INTEGER, TIME}:
            packed += value
        else:
            packed += struct.pack("<II", 1, len(value)) + value + bytes(-len(value) % 4)
    return packed


def signed(content: bytes | None, *, certificates: bool = False) -> bytes:
    """Return a CMS message of signed data; without content it is a detached signature."""
    signer = cms.SignerInfo(
        {
            "version": "v1",
            "sid": cms.SignerIdentifier(
                {
                    "issuer_and_serial_number": cms.IssuerAndSerialNumber(
                        {"issuer": x509.Name.build({"common_name": "Kanzlei"}), "serial_number": 1}
                    )
                }
            ),
            "digest_algorithm": algos.DigestAlgorithm({"algorithm": "sha256"}),
            "signature_algorithm": algos.SignedDigestAlgorithm({"algorithm": "sha256_rsa"}),
            "signature": b"no signature at all",
        }
    )
    data = cms.SignedData(
        {
            "version": "v1",
            "digest_algorithms": [],
            "encap_content_info": {"content_type": "data", **({} if content is None else {"content": content})},
            "signer_infos": [] if certificates else [signer],
        }
    )
    return bytes(cms.ContentInfo({"content_type": "signed_data", "content": data}).dump())


def sealed() -> bytes:
    data = cms.EnvelopedData(
        {
            "version": "v0",
            "recipient_infos": [],
            "encrypted_content_info": {
                "content_type": "data",
                "content_encryption_algorithm": {"algorithm": "aes256_cbc", "parameters": b"0" * 16},
                "encrypted_content": b"verschlossen",
            },
        }
    )
    return bytes(cms.ContentInfo({"content_type": "enveloped_data", "content": data}).dump())


def octets(content: bytes) -> bytes:
    return bytes(core.OctetString(content).dump())
