"""Hostile mails and RTF: a result or a reason, in bounded time and memory, whatever the bytes are."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator

import pytest
from compressed_rtf.crc32 import crc32

from shared.errors import LimitExceededError, PermanentError, UnreadableFileError
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.ole_writer import Storage, write
from shared.ingest.convert.process import ConversionProcess
from tests.ingest import mails
from tests.ingest.mails import BODY, DATA, METHOD, NAME, RTF, SUBJECT
from tests.ingest.test_mail import ENTITY, MBOX, opaque
from tests.ingest.test_outlook import PACKED, WINMAIL, inner_message
from tests.ingest.test_rtf import document

MESSAGE = mails.msg(
    {SUBJECT: "Kündigung", BODY: "Grüße"},
    mails.attachment("a.pdf", b"%PDF" * 2000),
    mails.attachment("innen", inner_message(1)),
    mails.storage(
        {NAME: "Skizze", METHOD: 6}, head=8, inner={"__substg1.0_3701000D": Storage({"CONTENTS": b"x" * 99})}
    ),
    recipients=[{NAME: "Jürgen"}],
)
SAMPLES = {
    "msg": [MESSAGE, mails.msg({SUBJECT: "x", RTF: PACKED})],
    "tnef": [WINMAIL],
    "cms": [mails.signed(ENTITY), mails.sealed()],
    "rtf": [
        document(
            r"{\info{\title T\'e4}}\trowd A\cell B\cell\row{\footnote x}{\*\annotation y}{\pict\bin3 abc}\u228 ?{\v h}"
            r"{\*\revtbl{A;}}{\deleted\revauthdel0 d}{\shp{\*\shpinst{\shptxt k}}}{\f4 \'93\'fa}"
        )
    ],
    "mbox": [MBOX],
    "eml": [opaque(mails.signed(ENTITY)), b"Subject: x\r\nFrom: y@z.example\r\n" + ENTITY],
}


def spoiled(whole: bytes) -> Iterator[bytes]:
    """Yield a file cut at every twentieth, and with bytes changed anywhere and in its head."""
    for part in range(20):
        yield whole[: len(whole) * part // 20]
    for seed in range(100):
        chance = random.Random(seed)
        content = bytearray(whole)
        reach = len(content) if seed % 3 else min(512, len(content))
        for _ in range(chance.choice((1, 3, 10, 50))):
            content[chance.randrange(reach)] = chance.choice((0, 255, chance.randrange(256)))
        yield bytes(content)


def outcome_of(converter: ConversionProcess, name: str, content: bytes) -> str:
    """Return "read", or the words of the error that says why not; neither may take long."""
    began = time.monotonic()
    try:
        converter.convert(name, content, timeout_s=10)
        outcome = "read"
    except PermanentError as error:
        outcome = error.message
    assert time.monotonic() - began < 5
    return outcome


@pytest.mark.parametrize(
    ("name", "position"), [(name, n) for name, files in SAMPLES.items() for n in range(len(files))]
)
def test_a_spoiled_file_has_a_text_or_a_reason(converter: ConversionProcess, name: str, position: int) -> None:
    outcomes = []
    for content in spoiled(SAMPLES[name][position]):
        kind_of(content, "x")
        outcomes.append(outcome_of(converter, name, content))
    assert len(outcomes) == 120
    assert set(outcomes) != {"read"}
    assert not [outcome for outcome in outcomes if "crashed" in outcome]


def test_a_message_that_is_cut_is_never_taken_for_a_whole_one(converter: ConversionProcess) -> None:
    whole = mails.msg({SUBJECT: "x", BODY: "y" * 9000}, mails.attachment("a.bin", bytes(range(256)) * 200))
    for part in range(20):
        with pytest.raises(UnreadableFileError):
            converter.convert("msg", whole[: len(whole) * part // 20], timeout_s=10)


def entries_of(content: bytes) -> Iterator[int]:
    """Yield where each entry of an OLE file's directory stands."""
    start = (struct.unpack_from("<I", content, 48)[0] + 1) * 512
    table = (struct.unpack_from("<I", content, 76)[0] + 1) * 512
    yield from range(start, table, 128)


def test_chains_that_run_in_a_ring_end(converter: ConversionProcess) -> None:
    whole = mails.msg({SUBJECT: "x", BODY: "y"}, mails.attachment("a.bin", b"z" * 60_000))
    table = (struct.unpack_from("<I", whole, 76)[0] + 1) * 512
    for target in (None, 0, 1):
        ring = bytearray(whole)
        for number in range(128):
            struct.pack_into("<I", ring, table + 4 * number, number if target is None else target)
        kind_of(bytes(ring), "a.msg")
        assert outcome_of(converter, "msg", bytes(ring))


def test_entries_that_point_at_one_another_end(converter: ConversionProcess) -> None:
    for offset in (68, 72, 76):
        ring = bytearray(MESSAGE)
        for at in entries_of(MESSAGE):
            struct.pack_into("<I", ring, at + offset, 0)
        kind_of(bytes(ring), "a.msg")
        assert outcome_of(converter, "msg", bytes(ring))


@pytest.mark.parametrize("size", [2**31 - 1, 2**32 - 1])
def test_streams_that_call_themselves_longer_than_the_file_are_not_believed(
    converter: ConversionProcess, size: int
) -> None:
    huge = bytearray(MESSAGE)
    for at in entries_of(MESSAGE):
        if huge[at + 66] == 2:
            struct.pack_into("<I", huge, at + 120, size)
    with pytest.raises(UnreadableFileError, match=r"longer than the file|broken"):
        converter.convert("msg", bytes(huge), timeout_s=10)


def test_streams_that_share_their_bytes_do_not_multiply_them(converter: ConversionProcess) -> None:
    shared = mails.msg(
        {SUBJECT: "x"},
        *[mails.attachment(f"{n}.bin", b"z" * 5000) for n in range(200)],
        mails.attachment("big", b"z" * 4_000_000),
    )
    many = bytearray(shared)
    [big] = [at for at in entries_of(shared) if struct.unpack_from("<I", shared, at + 120)[0] == 4_000_000]
    for at in entries_of(shared):
        if struct.unpack_from("<I", shared, at + 120)[0] == 5000:
            many[at + 116 : at + 128] = many[big + 116 : big + 128]
    began = time.monotonic()
    with pytest.raises(UnreadableFileError, match="longer than the file"):
        converter.convert("msg", bytes(many), timeout_s=20)
    assert time.monotonic() - began < 5


def test_messages_in_messages_end_at_a_limit(converter: ConversionProcess) -> None:
    inner = mails.message({SUBJECT: "innen"}, is_inner=True)
    for _ in range(1000):
        inner = mails.message({SUBJECT: "x"}, mails.attachment("y", inner), is_inner=True)
    deep = write(mails.message({SUBJECT: "außen"}, mails.attachment("y", inner)))
    with pytest.raises(LimitExceededError, match=r"deep|nesting"):
        converter.convert("msg", deep, timeout_s=20)


@pytest.mark.parametrize(
    "content",
    [
        mails.tnef((0x18010, b""))[:-10] + struct.pack("<BII", 1, 0x69003, 2**32 - 1) + b"x" * 20,
        mails.tnef((0x69003, struct.pack("<I", 2**32 - 1))),
        mails.tnef((0x69003, struct.pack("<IHHI", 1, 0x101E, 0x37, 2**32 - 1))),
        mails.tnef((0x69003, struct.pack("<IHHII", 1, 0x1E, 0x37, 1, 2**32 - 1))),
        mails.tnef((0x69003, struct.pack("<IHHI16xII", 1, 0x1E, 0x8000, 1, 1, 2**31))),
        mails.tnef((0x69004, struct.pack("<II", 100_000, 0))),
        mails.tnef((0x69003, struct.pack("<IHHI", 1, 0x77, 0x37, 0))),
        mails.tnef((0x69007, b"")),
    ],
)
def test_a_winmail_that_calls_its_parts_longer_than_they_are_is_refused(
    converter: ConversionProcess, content: bytes
) -> None:
    with pytest.raises(PermanentError, match=r"winmail\.dat"):
        converter.convert("tnef", content, timeout_s=10)


def test_a_winmail_within_a_thousand_is_read_one_level_at_a_time(converter: ConversionProcess) -> None:
    content = WINMAIL
    for _ in range(1000):
        values = mails.tnef_values({DATA: (mails.OBJECT, bytes(16) + content)})
        content = mails.tnef((0x18004, b"x\0"), (0x69002, bytes(14)), (0x69005, values))
    began = time.monotonic()
    [member] = converter.convert("tnef", content, timeout_s=20).members
    assert member.name == "x.dat"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "content",
    [
        bytes.fromhex("3080 06092a864886f70d010702 a080") + b"\x30\x80" * 100_000,
        bytes.fromhex("3080 06092a864886f70d010702 a080 3080 020101 3100 3080 06092a864886f70d010701 a080")
        + b"\x24\x80" * 50_000,
        bytes.fromhex("3084ffffffff 06092a864886f70d010702") + b"x" * 1000,
        bytes.fromhex("3080 06092a864886f70d010702 a080 3080 020101 3100 3080 06092a864886f70d010701 a080 2480")
        + b"\x04\x82\x03\xe8" + b"x" * 1000
        + (b"\x04\x82\x03\xe8" + b"x" * 1000) * 10_000,
    ],
    ids=["sequences", "strings", "length", "pieces"],
)  # fmt: skip
def test_a_signed_message_without_an_end_is_refused_in_bounded_time(
    converter: ConversionProcess, content: bytes
) -> None:
    assert kind_of(content, "x.p7m") == "application/pkcs7-mime"
    began = time.monotonic()
    with pytest.raises(PermanentError) as refused:
        converter.convert("cms", content, timeout_s=20)
    assert "took longer" not in refused.value.message
    assert time.monotonic() - began < 10


def grown(runs: int) -> bytes:
    """Return packed RTF that grows eight times: each two bytes repeat the seventeen characters before."""
    # The first 207 characters of what may be repeated are given.
    packed, at = bytearray(b"\x00{\\rtf1 x"), 207 + 8
    for _ in range(runs):
        packed += b"\xff"
        for _ in range(8):
            packed += struct.pack(">H", (at - 1) % 4096 << 4 | 15)
            at = (at + 17) % 4096
    return struct.pack("<II4sI", len(packed) + 12, 0, b"LZFu", crc32(bytes(packed))) + bytes(packed)


def test_a_packed_body_that_grows_is_read_in_bounded_time(converter: ConversionProcess) -> None:
    began = time.monotonic()
    found = converter.convert("msg", mails.msg({SUBJECT: "x", RTF: grown(20_000)}), timeout_s=30)
    assert len(found.text.text) > 20_000 * 8 * 17
    assert time.monotonic() - began < 10


def test_a_packed_body_beyond_any_mail_is_refused(converter: ConversionProcess) -> None:
    with pytest.raises(LimitExceededError, match="packed bytes"):
        converter.convert("msg", mails.msg({SUBJECT: "x", RTF: bytes(5 * 1024 * 1024)}), timeout_s=30)
