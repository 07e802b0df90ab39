"""Archives: every file in them comes out under its name, or is there with the reason why it does not."""

from __future__ import annotations

import gzip
import io
import random
import struct
import time
import zipfile

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.ingest import quarantine
from shared.db.tables.sources import source_objects
from shared.errors import LimitExceededError, PermanentError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.formats import Conversion, format_of
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.report import Outcome
from shared.ingest.stages.convert import MAX_DEPTH, member_folder
from tests.ingest.archives import ENCRYPTED, UTF8, Entry, archive, unicode_path
from tests.ingest.conftest import World
from tests.ingest.test_realfiles import path_of

NAMES = ["Schriftsätze/Übersicht.pdf", "Straße.pdf"]


def zipped(files: dict[str, bytes | str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in files.items():
            package.writestr(name, content)
    return made.getvalue()


def places(conversion: Conversion) -> list[str]:
    return [f"{member.folder}/{member.name}".lstrip("/") for member in conversion.members]


def outcomes(world: World, content: bytes, name: str = "a/akte.zip") -> dict[str, str]:
    return {file.path: file.error or file.outcome for file in world.ingest({name: content}).files}


@pytest.mark.parametrize(
    "written",
    [
        lambda name: Entry(name.encode(), flags=UTF8),
        lambda name: Entry(name.encode()),
        lambda name: Entry(name.encode("cp437")),
        lambda name: Entry(name.encode("cp850")),
        lambda name: Entry(name.encode("cp1252")),
        lambda name: Entry(name.encode("cp437"), extra=unicode_path(name.encode("cp437"), name)),
        lambda name: Entry(name.encode("cp1252"), flags=UTF8),
    ],
    ids=["utf-8 marked", "utf-8 unmarked", "cp437", "cp850", "cp1252", "unicode path", "wrongly marked"],
)
def test_a_name_is_the_same_however_it_is_written(converter: ConversionProcess, written) -> None:
    entries = [written(name) for name in NAMES]
    found = converter.convert("archive", archive(entries), timeout_s=30)
    assert places(found) == NAMES
    assert [member.content for member in found.members] == [b"Ein Schreiben."] * 2
    for entry, member in zip(entries, found.members, strict=True):
        assert (member.raw_name or f"{member.folder}/{member.name}".lstrip("/").encode()) == entry.name


def test_names_written_in_different_ways_lie_in_one_archive(converter: ConversionProcess) -> None:
    entries = [
        Entry("1 Übersicht.pdf".encode(), flags=UTF8),
        Entry("2 Übersicht.pdf".encode()),
        Entry("3 Übersicht.pdf".encode("cp850")),
        Entry("4 Übersicht \u2013 Anlage.pdf".encode("cp1252")),
        Entry("5 K\u0075\u0308ndigung.pdf".encode()),
    ]
    found = converter.convert("archive", archive(entries), timeout_s=30)
    assert [member.name for member in found.members] == [
        "1 Übersicht.pdf", "2 Übersicht.pdf", "3 Übersicht.pdf", "4 Übersicht \u2013 Anlage.pdf", "5 Ku\u0308ndigung.pdf"
    ]  # fmt: skip


def test_a_name_of_which_nothing_is_known_is_read_as_the_others_are(converter: ConversionProcess) -> None:
    entries = [Entry(b"\xb6\xb6.txt"), Entry("Größe.txt".encode("cp1252"))]
    found = converter.convert("archive", archive(entries), timeout_s=30)
    assert [member.name for member in found.members] == ["¶¶.txt", "Größe.txt"]


def test_a_unicode_path_of_another_name_does_not_count(converter: ConversionProcess) -> None:
    entry = Entry(b"neu.txt", extra=unicode_path(b"alt.txt", "alt.txt"))
    assert places(converter.convert("archive", archive([entry]), timeout_s=30)) == ["neu.txt"]


def test_chinese_names_are_read_and_their_bytes_kept(converter: ConversionProcess) -> None:
    raw = "审计/集团邮件审计.doc".encode("gbk")
    [member] = converter.convert("archive", archive([Entry(raw)]), timeout_s=30).members
    assert (member.folder, member.name, member.raw_name) == ("审计", "集团邮件审计.doc", raw)


def test_a_member_whose_own_header_names_it_otherwise_is_read(converter: ConversionProcess) -> None:
    entry = Entry("Übersicht.txt".encode("cp850"), header_name="Übersicht.txt".encode())
    [member] = converter.convert("archive", archive([entry]), timeout_s=30).members
    assert (member.name, member.content) == ("Übersicht.txt", b"Ein Schreiben.")


def test_an_archive_behind_other_bytes_is_read(converter: ConversionProcess) -> None:
    entry = Entry("Übersicht.txt".encode("cp1252"), flags=UTF8)
    found = converter.convert("archive", archive([entry], before=b"MZ" * 100), timeout_s=30)
    assert [(member.name, member.content) for member in found.members] == [("Übersicht.txt", b"Ein Schreiben.")]


def test_a_member_lies_below_its_archive_in_its_folder_and_in_the_same_matter(world: World) -> None:
    report = world.ingest({"a/akte.zip": zipped({"Schriftsätze/2024/Klage.txt": "Die Klage.", "x.txt": "Ein Text."})})
    paths = {file.path: file.outcome for file in report.files}
    assert paths == {
        "a/akte.zip": Outcome.NEW,
        "a/akte.zip/Schriftsätze/2024/Klage.txt": Outcome.NEW,
        "a/akte.zip/x.txt": Outcome.NEW,
    }
    rows = {row.path: row for row in world.rows(sa.select(source_objects))}
    assert rows["a/akte.zip/x.txt"].parent_id == rows["a/akte.zip"].id
    assert rows["a/akte.zip/Schriftsätze/2024/Klage.txt"].parent_id == rows["a/akte.zip"].id
    assert len({row.matter_id for row in world.rows(sa.select(documents))}) == 1


def test_names_that_lead_out_stay_in_and_two_that_become_one_are_both_kept(world: World) -> None:
    entries = [
        Entry(b"../../etc/touch.pl", b"print 'eins';"),
        Entry(b"/etc/touch.pl", b"print 'zwei';"),
        Entry(b"..\\..\\etc\\touch.pl", b"print 'drei';"),
        Entry(b"etc/./touch.pl", b"print 'vier';"),
    ]
    report = world.ingest({"a/akte.zip": archive(entries)})
    assert [file.path for file in report.files[1:]] == ["a/akte.zip/etc/touch.pl"] * 4
    assert world.scalar(sa.select(sa.func.count()).select_from(documents)) == 5


@pytest.mark.parametrize(
    ("folder", "clean"),
    [("../..", ""), ("a//b/", "a/b"), ("C:\\Akten\\..\\x", "C:/Akten/x"), ("a!/1", "a!/1"), ("x" * 300, "x" * 200)],
)
def test_a_members_folder_leads_nowhere_else(folder: str, clean: str) -> None:
    assert member_folder(folder) == clean


def test_members_with_very_long_names_are_all_there(world: World) -> None:
    folder = "/".join("Ordner mit einem überlangen Namen" * 6 for _ in range(20))
    entries = [Entry(f"{folder}/{'漢字' * 400}{number}.txt".encode(), flags=UTF8) for number in range(3)]
    report = world.ingest({"a/akte.zip": archive(entries)})
    assert [file.error for file in report.files] == [None] * 4
    assert world.scalar(sa.select(sa.func.count()).select_from(source_objects)) == 4


def test_a_folder_that_looks_like_a_mark_is_a_folder(world: World) -> None:
    report = world.ingest({"a/akte.zip": zipped({"Achtung!/1/x.txt": "Ein Text."})})
    assert [file.path for file in report.files] == ["a/akte.zip", "a/akte.zip/Achtung!/1/x.txt"]
    assert [row.external_id.count("!/") for row in world.rows(sa.select(source_objects))] == [0, 1]


def test_folders_and_what_systems_leave_behind_are_no_documents(converter: ConversionProcess) -> None:
    files = {"Akte/": b"", "Akte/x.txt": b"Text", "__MACOSX/Akte/._x.txt": b"\0", "Akte/.DS_Store": b"\0"}
    found = converter.convert("archive", zipped(files), timeout_s=30)
    assert places(found) == ["Akte/x.txt"]
    assert found.text.meta["members_left_out"] == 2


def test_an_archives_text_is_the_list_of_its_files(converter: ConversionProcess) -> None:
    found = converter.convert("archive", zipped({"Anlagen/K1.txt": "x", "Klage.txt": "y"}), timeout_s=30)
    assert found.text.text == "Anlagen/K1.txt\nKlage.txt"
    assert converter.convert("archive", zipped({}), timeout_s=30).text.text == ""


def test_an_encrypted_or_damaged_member_has_its_reason_and_the_others_are_read(world: World) -> None:
    whole = archive(
        [
            Entry(b"gut.txt"),
            Entry(b"geheim.txt", flags=ENCRYPTED, stored=bytes(40)),
            Entry(b"kaputt.txt", crc=1),
            Entry(b"fremd.txt", method=97),
            Entry(b"gelogen.txt", b"Der Zeuge blieb dabei.", size=2**31),
        ]
    )
    assert outcomes(world, whole) == {
        "a/akte.zip": Outcome.NEW,
        "a/akte.zip/gut.txt": Outcome.NEW,
        "a/akte.zip/geheim.txt": "EncryptedFileError",
        "a/akte.zip/kaputt.txt": "UnreadableFileError",
        "a/akte.zip/fremd.txt": "UnreadableFileError",
        # A size is a claim, and this one came out whole.
        "a/akte.zip/gelogen.txt": Outcome.NEW,
    }
    rows = world.rows(sa.select(source_objects.c.name, quarantine.c.reason).join(quarantine))
    reasons = {row.name: row.reason for row in rows}
    assert reasons.keys() == {"geheim.txt", "kaputt.txt", "fremd.txt"}
    assert "without a password" in reasons["geheim.txt"]
    assert "method" in reasons["fremd.txt"]


def test_the_reasons_of_many_refused_members_are_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Entry(f"geheim {number}.txt".encode(), flags=ENCRYPTED, stored=bytes(40)) for number in range(30)]
    read: list[str] = []
    get = world.store.get
    monkeypatch.setattr(world.store, "get", lambda key: (read.append(key), get(key))[1])
    found = outcomes(world, archive(entries))
    assert list(found.values()).count("EncryptedFileError") == 30
    # By those who register and relate them, and once for all their reasons.
    assert len([key for key in read if "members" in key]) <= 3


def test_a_member_that_is_mended_leaves_quarantine(world: World) -> None:
    outcomes(world, archive([Entry(b"x.txt", flags=ENCRYPTED)]))
    assert world.scalar(sa.select(sa.func.count()).select_from(quarantine)) == 1
    assert outcomes(world, archive([Entry(b"x.txt")]))["a/akte.zip/x.txt"] == Outcome.NEW
    assert world.scalar(sa.select(sa.func.count()).select_from(quarantine)) == 0
    assert outcomes(world, archive([Entry(b"x.txt", crc=1)]))["a/akte.zip/x.txt"] == "UnreadableFileError"


def test_a_member_stays_the_same_object_when_others_come_before_it(world: World) -> None:
    world.ingest({"a/akte.zip": zipped({"Vertrag.txt": "Der Vertrag."})})
    before = {row.path: row.id for row in world.rows(sa.select(source_objects))}
    report = world.ingest({"a/akte.zip": zipped({"Anlage.txt": "Neu.", "Vertrag.txt": "Der neue Vertrag."})})
    after = {row.path: row.id for row in world.rows(sa.select(source_objects))}
    assert after["a/akte.zip/Vertrag.txt"] == before["a/akte.zip/Vertrag.txt"]
    assert {file.path: file.outcome for file in report.files}["a/akte.zip/Vertrag.txt"] is Outcome.CHANGED


def test_archives_in_one_another_stop_at_the_depth_limit(world: World) -> None:
    content = zipped({"x.txt": "Ganz innen."})
    for _ in range(MAX_DEPTH + 1):
        content = zipped({"innen.zip": content})
    report = world.ingest({"a/akte.zip": content})
    assert len(report.files) == MAX_DEPTH + 1
    assert report.files[-1].error == "LimitExceededError"
    assert f"more than {MAX_DEPTH} deep" in (report.files[-1].reason or "")


def test_an_archive_that_holds_itself_stops_at_the_depth_limit(world: World) -> None:
    report = world.ingest({"a/droste.zip": path_of("F75").read_bytes()})
    assert len(report.files) == 2 * MAX_DEPTH + 1
    assert [file.error for file in report.files if file.error == "LimitExceededError"] == ["LimitExceededError"]


def test_a_partly_encrypted_archive_is_partly_read(world: World) -> None:
    assert outcomes(world, path_of("F74").read_bytes()) == {
        "a/akte.zip": Outcome.NEW,
        "a/akte.zip/unencrypted.txt": Outcome.NEW,
        "a/akte.zip/encrypted.txt": "EncryptedFileError",
    }
    notes = document_versions.c.facts["notes"]
    said = world.rows(sa.select(document_versions.c.title, notes.label("notes")).order_by(document_versions.c.title))
    assert {row.title: row.notes for row in said} == {
        "akte": ["partially processed: 1 of 2 files in it could not be taken out"],
        "unencrypted": [],
    }


def test_a_name_from_a_real_archive_that_leads_out_leads_nowhere(world: World) -> None:
    report = world.ingest({"a/akte.zip": path_of("F71").read_bytes()})
    assert [file.path for file in report.files] == ["a/akte.zip", "a/akte.zip/dangerous/dont/touch.pl"]


def test_many_archives_in_one_another_are_bounded_in_all(world: World) -> None:
    inner = zipped({f"{number}.txt": f"Text {number}" for number in range(10)})
    middle = zipped({f"{number}.zip": inner for number in range(10)})
    ingest = world.settings.ingest.model_copy(update={"max_members": 35})
    settings = world.settings.model_copy(update={"ingest": ingest})
    report = world.ingest({"a/akte.zip": middle}, settings=settings)
    refused = [file for file in report.files if file.error == "LimitExceededError"]
    # Ten archives, and two times ten texts in them.
    assert len(report.files) == 1 + 10 + 20
    assert len(refused) == 8
    assert world.scalar(sa.select(sa.func.count()).select_from(source_objects)) == 31


@pytest.fixture(scope="module")
def narrow():
    """A converter with the memory and the output that 64 MiB files are allowed."""
    with ConversionProcess(memory_bytes=2**30, output_bytes=2**27, member_bytes=2**26, members=1000) as process:
        yield process


def test_two_megabytes_that_unpack_to_two_gigabytes_are_stopped(narrow: ConversionProcess) -> None:
    piece = zipped({"x": bytes(2**24)})
    with zipfile.ZipFile(io.BytesIO(piece)) as package:
        [info] = package.infolist()
        packed = piece[info.header_offset + 31 : info.header_offset + 31 + info.compress_size]
    bomb = archive([Entry(b"%d" % n, stored=packed, crc=info.CRC, size=2**24) for n in range(128)])
    assert len(bomb) < 2.2 * 2**20
    with pytest.raises(LimitExceededError, match="unpacks to more than"):
        narrow.convert("archive", bomb, timeout_s=60)


def test_one_member_that_is_too_large_stops_no_other(narrow: ConversionProcess) -> None:
    noise = random.Random(1).randbytes(2**20)
    found = narrow.convert("archive", zipped({"gross.bin": noise * 70, "gut.txt": "Text"}), timeout_s=60)
    assert [member.refused.error if member.refused else member.content for member in found.members] == [
        "LimitExceededError",
        b"Text",
    ]


def test_an_archive_of_too_many_files_is_refused(narrow: ConversionProcess) -> None:
    assert len(narrow.convert("archive", zipped({str(n): "x" for n in range(1000)}), timeout_s=60).members) == 1000
    with pytest.raises(LimitExceededError, match="1001 files; 1000 are allowed"):
        narrow.convert("archive", zipped({str(n): "x" for n in range(1001)}), timeout_s=60)


def test_members_that_lie_over_one_another_are_a_bomb(narrow: ConversionProcess) -> None:
    entry = Entry(b"a", bytes(1000))
    with pytest.raises(LimitExceededError, match="over one another"):
        narrow.convert("archive", archive([entry, Entry(b"a", bytes(1000), offset=0)]), timeout_s=60)


def test_a_directory_of_very_many_files_is_not_read_to_tell_the_kind(narrow: ConversionProcess) -> None:
    many = archive([Entry(b"%d" % n, b"") for n in range(60_000)])
    began = time.monotonic()
    assert kind_of(many, "x.bin") == "application/zip"
    assert time.monotonic() - began < 0.5
    with pytest.raises(LimitExceededError, match="60000 files; 1000 are allowed"):
        narrow.convert("archive", many, timeout_s=60)


def test_sizes_beyond_32_bits_that_are_not_there_are_claims(narrow: ConversionProcess) -> None:
    zip64 = struct.pack("<HHQQ", 1, 16, 2**60, 2**60)
    entry = Entry(b"x.txt", extra=zip64, size=0xFFFFFFFF)
    try:
        found = narrow.convert("archive", archive([entry, Entry(b"gut.txt")]), timeout_s=60)
    except PermanentError:
        return
    assert all(member.refused or member.content == b"Ein Schreiben." for member in found.members)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "save it as DOCX or PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "Workbook".encode("utf-16-le"), "save it as XLSX or PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "PowerPoint Document".encode("utf-16-le"), "save it as PPTX or PDF"),
        (bytes(257) + b"ustar", "tar archive; unpack it"),
        (zipped({"[Content_Types].xml": "<Types><Override ContentType='x-visio'/></Types>"}), "save it as PDF"),
        (zipped({"Index/Document.iwa": b"\0", "preview.jpg": b"\0"}), "Pages, Numbers or Keynote; save it as PDF"),
        (gzip.compress(b"x"), "gzip archive; unpack it"),
        (b"7z\xbc\xaf\x27\x1c", "7z archive; unpack it"),
        (b"Rar!\x1a\x07", "RAR archive; unpack it"),
    ],
)
def test_what_is_not_read_says_what_to_do(content: bytes, advice: str) -> None:
    with pytest.raises(UnsupportedFileError, match=advice):
        format_of(kind_of(content, "x"))


def test_an_archive_cut_off_anywhere_has_a_reason(narrow: ConversionProcess) -> None:
    whole = zipped({f"Ordner/{n}.txt": "Text " * n for n in range(20)})
    for part in range(20):
        with pytest.raises(UnreadableFileError):
            narrow.convert("archive", whole[: len(whole) * part // 20], timeout_s=30)


def test_an_archive_with_broken_bytes_has_members_or_a_reason(narrow: ConversionProcess) -> None:
    whole = zipped({f"Ordner/Übersicht {n}.txt": f"Text {n} " * n for n in range(10)})
    for seed in range(100):
        chance, broken = random.Random(seed), bytearray(whole)
        for _ in range(5):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            found = narrow.convert("archive", bytes(broken), timeout_s=30)
        except PermanentError:
            continue
        assert all((member.content is None) == (member.refused is not None) for member in found.members)
