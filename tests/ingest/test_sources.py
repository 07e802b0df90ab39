"""Sources, their configuration, and the object stores."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
import sqlalchemy as sa
from botocore.exceptions import ClientError, EndpointConnectionError, IncompleteReadError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.content import chunks
from shared.db.tables.ingest import quarantine
from shared.db.tables.sources import source_objects
from shared.errors import EngineUnavailableError, InvalidRequestError, StoredObjectMissingError, UnreadableFileError
from shared.ingest import objects, scans
from shared.ingest.completeness import completeness
from shared.ingest.report import Outcome
from shared.providers.storage import FileStore, S3Store, original_key
from shared.providers.storage.s3 import content_disposition
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.config import MatterRef, Place, PlaceRule, ProjectRef, SourceConfig
from shared.sources.given import GivenDocuments
from shared.sources.local_fs import LocalFolder
from shared.sources.s3 import S3Source, external_id_of, key_of
from shared.text.normalise import stored
from shared.types import SourceKind
from tests.ingest.conftest import CONFIG, World


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def scanned(folder: LocalFolder) -> list[str]:
    return [entry.external_id for entry in folder.scan() if isinstance(entry, FoundObject)]


def test_a_folders_files_have_their_path_below_it_as_id(tmp_path: Path) -> None:
    write(tmp_path, "b/zwei.txt", "a.txt", "b/c/drei.txt")
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    assert scanned(folder) == ["a.txt", "b/c/drei.txt", "b/zwei.txt"]
    with folder.open("b/zwei.txt") as file:
        assert file.read() == b"b/zwei.txt"


def test_a_decomposed_name_has_the_composed_one_as_id_and_is_opened(tmp_path: Path) -> None:
    write(tmp_path, unicodedata.normalize("NFD", "Kündigung.txt"))
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    assert scanned(folder) == [unicodedata.normalize("NFC", "Kündigung.txt")]
    LocalFolder("ablage", tmp_path, SourceConfig()).open("Kündigung.txt").close()


@pytest.mark.parametrize(("first", "then"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_file_whose_name_and_text_change_their_form_only_stays_one_document(
    world: World, tmp_path: Path, first: Any, then: Any
) -> None:
    def ingest(form: Any) -> list[Any]:
        path = tmp_path / "ablage" / unicodedata.normalize(form, "Kündigung.txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(unicodedata.normalize(form, "Die Kündigung ist unwirksam."))
        report = world.service().ingest(LocalFolder("ablage", path.parent, CONFIG))
        path.unlink()
        return [(file.path, file.document_id) for file in report.files]

    before = ingest(first)
    assert ingest(then) == before
    assert before[0][0] == unicodedata.normalize("NFC", "Kündigung.txt")
    found = world.rows(
        sa.select(documents.c.title, chunks.c.text)
        .select_from(documents)
        .join(document_versions, document_versions.c.document_id == documents.c.id)
        .join(chunks)
        .where(chunks.c.kind == "chunk")
    )
    composed = unicodedata.normalize("NFC", "Kündigung")
    assert {tuple(row) for row in found} == {(composed, f"Die {composed} ist unwirksam.")}


def test_a_name_that_is_no_utf_8_is_shown_as_cp1252(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/K\xfcndigung.txt"))).write_text("x")
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    assert scanned(folder) == ["Kündigung.txt"]
    folder.open("Kündigung.txt").close()


def test_a_single_file_is_a_source_below_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "a/x.txt", "a/y.txt")
    assert scanned(LocalFolder("ablage", tmp_path / "a" / "x.txt", SourceConfig())) == ["x.txt"]
    assert scanned(LocalFolder("ablage", tmp_path / "a" / "x.txt", SourceConfig(), root=tmp_path)) == ["a/x.txt"]


def test_a_link_that_leads_out_is_reported_and_never_opened(tmp_path: Path) -> None:
    write(tmp_path, "aussen.txt", "ablage/innen.txt")
    (tmp_path / "ablage" / "link.txt").symlink_to(tmp_path / "aussen.txt")
    folder = LocalFolder("ablage", tmp_path / "ablage", SourceConfig())
    entries = list(folder.scan())
    assert [entry.path for entry in entries if isinstance(entry, FoundObject)] == ["innen.txt"]
    assert [entry.path for entry in entries if isinstance(entry, ScanProblem)] == ["link.txt"]
    for outside in ("link.txt", "../aussen.txt"):
        with pytest.raises(UnreadableFileError, match="outside"):
            folder.open(outside)


def test_a_link_within_the_folder_opens_no_file_of_another_place(tmp_path: Path) -> None:
    write(tmp_path, "sued/geheim.txt")
    (tmp_path / "nord").mkdir()
    (tmp_path / "nord" / "offen.txt").symlink_to(tmp_path / "sued" / "geheim.txt")
    (tmp_path / "ost").symlink_to(tmp_path / "sued")
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    entries = list(folder.scan())
    assert [entry.path for entry in entries if isinstance(entry, FoundObject)] == ["sued/geheim.txt"]
    assert "nord/offen.txt" in [entry.path for entry in entries if isinstance(entry, ScanProblem)]
    with pytest.raises(UnreadableFileError):
        folder.open("nord/offen.txt")


@pytest.mark.parametrize("swapped", ["akte/post.txt", "akte"])
def test_a_file_swapped_for_a_link_between_check_and_opening_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    write(tmp_path, "ablage/akte/post.txt", "aussen/akte/post.txt")
    folder = LocalFolder("ablage", tmp_path / "ablage", SourceConfig())
    open_ = os.open

    def swap_and_open(path: Path, flags: int) -> int:
        inside = tmp_path / "ablage" / swapped
        inside.rename(tmp_path / "beiseite")
        inside.symlink_to(tmp_path / "aussen" / swapped)
        try:
            return open_(path, flags)
        finally:
            inside.unlink()
            (tmp_path / "beiseite").rename(inside)

    monkeypatch.setattr("shared.sources.local_fs.os.open", swap_and_open)
    with pytest.raises(UnreadableFileError):
        folder.open("akte/post.txt")


def test_a_pipe_or_a_folder_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    write(tmp_path, "post.txt", "brief.txt")
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    assert scanned(folder) == ["brief.txt", "post.txt"]
    (tmp_path / "post.txt").unlink()
    os.mkfifo(tmp_path / "post.txt")
    (tmp_path / "brief.txt").unlink()
    (tmp_path / "brief.txt").mkdir()
    for name in ("post.txt", "brief.txt"):
        with pytest.raises(UnreadableFileError, match="not a file"):
            folder.open(name)


def test_a_file_that_went_away_after_the_scan_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="gone"):
        LocalFolder("ablage", tmp_path, SourceConfig()).open("weg.txt")


def test_what_is_not_there_cannot_be_a_source(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError):
        LocalFolder("ablage", tmp_path / "nichts", SourceConfig())


def test_include_and_exclude_rules_work_on_paths_and_names() -> None:
    config = SourceConfig(include=("akten/*", "*.pdf"), exclude=("~$*", "*/alt/*"))
    assert [path for path in ("akten/x.txt", "y/z.pdf", "y/z.txt", "akten/~$x.docx", "akten/alt/x.txt") if config.takes(path)] == ["akten/x.txt", "y/z.pdf"]  # fmt: skip


def test_the_deepest_folder_decides_where_a_path_belongs() -> None:
    nord, sued = ProjectRef(key="n", title="Nord"), ProjectRef(key="s", title="Süd")
    matter = MatterRef(key="1", title="Eins")
    config = SourceConfig(
        project=nord,
        places=(PlaceRule(prefix="a", matter=matter), PlaceRule(prefix="/a/b/", project=sued)),
    )
    assert config.place_of("x.txt") == Place(nord, None)
    assert config.place_of("a/x.txt") == Place(nord, matter)
    assert config.place_of("a/b/x.txt") == Place(sued, None)
    assert config.place_of("ab/x.txt") == Place(nord, None)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if request.param == "folder":
        yield FileStore(tmp_path)
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("s3", region_name="eu-central-1")
        client.create_bucket(Bucket="originale", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield S3Store(client, "originale")


def test_what_is_stored_comes_back_and_writing_twice_changes_nothing(store) -> None:
    key = original_key("ab" * 32)
    assert not store.exists(key)
    for _ in range(2):
        store.put(key, b"Inhalt")
    assert (store.exists(key), store.get(key)) == (True, b"Inhalt")
    with store.open(key) as stream:
        assert stream.read() == b"Inhalt"


def test_what_is_not_stored_is_missing(store) -> None:
    with pytest.raises(StoredObjectMissingError):
        store.get(original_key("cd" * 32))


@pytest.mark.parametrize("key", ["../x", "/x", "a/../b", "a//b", "A", "", "a/.x", "a" * 600])
def test_a_key_never_leaves_the_store(store, key: str) -> None:
    with pytest.raises(InvalidRequestError):
        store.put(key, b"")


def test_a_download_has_its_name_in_every_browser() -> None:
    found = content_disposition("Begründung \u2013 Anlage K1.pdf")
    assert found == (
        'attachment; filename="Begr_ndung _ Anlage K1.pdf"; '
        "filename*=UTF-8''Begr%C3%BCndung%20%E2%80%93%20Anlage%20K1.pdf"
    )
    assert "\n" not in content_disposition('a\r\nSet-Cookie: x"')


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("s3", region_name="eu-central-1")
        client.create_bucket(Bucket="akten", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield client


S3_CONFIG = CONFIG.model_copy(update={"kind": SourceKind.S3})


def put(client, *keys: str, body: bytes | None = None) -> None:
    for key in keys:
        client.put_object(Bucket="akten", Key=key, Body=key.encode() if body is None else body)


def test_a_buckets_objects_are_listed_over_all_pages_and_read(bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, *(f"akte/{number:02}.txt" for number in range(7)), "anders/x.txt")
    calls = []

    def few(self, **arguments):
        calls.append(arguments.get("ContinuationToken"))
        return listed(Bucket=arguments.pop("Bucket"), MaxKeys=3, **arguments)

    listed = bucket.list_objects_v2
    monkeypatch.setattr(type(bucket), "list_objects_v2", few)
    source = S3Source("akten", bucket, "akten", SourceConfig(exclude=("*6.txt",)), prefix="akte/")
    found = list(source.scan())
    assert [one.external_id for one in found] == [f"akte/{number:02}.txt" for number in range(6)]
    assert len(calls) == 3
    assert calls[0] is None
    assert all(calls[1:])
    with source.open("akte/03.txt") as stream:
        assert stream.read() == b"akte/03.txt"
    assert source.listed_below == "akte"
    assert S3Source("akten", bucket, "akten", SourceConfig(), prefix="akt").listed_below is None


def test_a_folder_of_the_console_is_nothing_and_a_file_without_bytes_is_empty(bucket, world: World) -> None:
    put(bucket, "a/", "a/unter/", "a/leer.txt", body=b"")
    put(bucket, "a/seltsam/", body=b"Bytes")
    report = world.service().ingest(S3Source("akten", bucket, "akten", S3_CONFIG))
    assert {file.path: (file.outcome, file.error) for file in report.files} == {
        "a/leer.txt": (Outcome.QUARANTINED, "EmptyFileError"),
        "a/seltsam": (Outcome.UNREADABLE, "ScanProblem"),
    }
    assert [row.path for row in world.rows(sa.select(source_objects))] == ["a/leer.txt"]
    assert [row.attempts for row in world.rows(sa.select(quarantine))] == [1]
    assert world.clock.waits == []
    with world.engine.connect() as connection:
        [stated] = completeness(connection)
    assert (stated.found, stated.empty, stated.quarantined) == (1, 1, 0)


def test_the_same_bytes_in_one_piece_and_in_parts_are_one_content(bucket, world: World) -> None:
    content = b"Ein langes Schreiben. " * 100
    put(bucket, "a/ganz.txt", body=content)
    upload = bucket.create_multipart_upload(Bucket="akten", Key="a/teile.txt")["UploadId"]
    part = {"Bucket": "akten", "Key": "a/teile.txt", "UploadId": upload}
    etag = bucket.upload_part(**part, PartNumber=1, Body=content)["ETag"]
    bucket.complete_multipart_upload(**part, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    listed = {entry["Key"]: entry["ETag"] for entry in bucket.list_objects_v2(Bucket="akten")["Contents"]}
    assert listed["a/ganz.txt"] != listed["a/teile.txt"]
    outcomes = [file.outcome for file in world.service().ingest(S3Source("akten", bucket, "akten", S3_CONFIG)).files]
    assert outcomes == [Outcome.NEW, Outcome.COPY]
    assert world.scalar(sa.select(sa.func.count()).select_from(document_versions)) == 1


def test_an_object_of_a_bucket_is_opened_again_only_when_its_listing_says_so(
    bucket, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a/x.txt", "a/y.txt")
    opened: list[str] = []
    read = S3Source.open
    monkeypatch.setattr(S3Source, "open", lambda self, id_: opened.append(id_) or read(self, id_))

    def run(**options) -> list[Outcome]:
        opened.clear()
        source = S3Source("akten", bucket, "akten", S3_CONFIG)
        return [file.outcome for file in world.service().ingest(source, **options).files]

    assert run(opens_all=False) == [Outcome.NEW, Outcome.NEW]
    assert run(opens_all=False) == [Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert opened == []
    put(bucket, "a/y.txt", body=b"andere")
    assert run(opens_all=False) == [Outcome.UNCHANGED, Outcome.CHANGED]
    assert opened == ["a/y.txt"]
    run()
    assert opened == ["a/x.txt", "a/y.txt"]


def test_delete_markers_prove_what_was_deleted_and_versions_have_their_ids(bucket, world: World) -> None:
    bucket.put_bucket_versioning(Bucket="akten", VersioningConfiguration={"Status": "Enabled"})
    put(bucket, *(f"a/{number}.txt" for number in range(4)))
    put(bucket, "a/0.txt", body=b"neuer")
    source = S3Source("akten", bucket, "akten", S3_CONFIG, is_versioned=True)
    newest = bucket.head_object(Bucket="akten", Key="a/0.txt")["VersionId"]
    assert {one.external_id: one.source_version for one in source.scan()}["a/0.txt"] == newest
    assert world.service().ingest(source).counts()["new"] == 4
    for number in range(4):
        bucket.delete_object(Bucket="akten", Key=f"a/{number}.txt")
    assert not S3Source("akten", bucket, "akten", S3_CONFIG).proves_gone(["a/1.txt"])
    assert not source.proves_gone(["a/1.txt", "a/nie.txt"])
    # None at all, and yet believed at once.
    assert world.service().ingest(source).counts()["deleted"] == 4
    marker = next(
        one for one in bucket.list_object_versions(Bucket="akten")["DeleteMarkers"] if one["Key"] == "a/0.txt"
    )
    bucket.delete_object(Bucket="akten", Key="a/0.txt", VersionId=marker["VersionId"])
    # What reappears is what it was: nothing is new.
    assert [file.outcome for file in world.service().ingest(source).files] == [Outcome.UNCHANGED]


def test_a_key_in_any_form_of_letters_is_an_object_of_its_own_and_read(bucket, world: World) -> None:
    nfd = unicodedata.normalize("NFD", "a/Kündigung.txt")
    keys = (nfd, "a/Kündigung.txt", "raw:a/Ku%CC%88ndigung.txt", "a/Akte 12 + Anlage (1)%.txt")
    put(bucket, *keys)
    source = S3Source("akten", bucket, "akten", S3_CONFIG)
    ids = {one.external_id for one in source.scan()}
    assert len(ids) == len(keys)
    assert {key_of(one) for one in ids} == set(keys)
    for one in ids:
        with source.open(one) as stream:
            assert stream.read() == key_of(one).encode()
    assert [file.outcome for file in world.service().ingest(source).files] == [Outcome.NEW] * 4


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_every_key_has_one_id_and_every_id_its_key(key: str) -> None:
    assert key_of(external_id_of(key)) == key
    assert external_id_of(external_id_of(key)) == external_id_of(key) or external_id_of(key).startswith("raw:")
    assert stored(external_id_of(key)) == external_id_of(key)


def test_a_bucket_that_is_away_or_breaks_off_is_tried_again_and_what_is_closed_is_not(
    bucket, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a/x.txt")
    source = S3Source("akten", bucket, "akten", S3_CONFIG)
    get = bucket.get_object

    def answering(*errors):
        left = list(errors)

        def get_object(self, **arguments):
            if left:
                raise left.pop(0)
            return get(**arguments)

        monkeypatch.setattr(type(bucket), "get_object", get_object)

    def refusal(code: str) -> ClientError:
        return ClientError({"Error": {"Code": code}}, "GetObject")

    answering(refusal("SlowDown"), EndpointConnectionError(endpoint_url="x"))
    assert [file.outcome for file in world.service().ingest(source).files] == [Outcome.NEW]
    assert world.clock.waits == [5.0, 10.0]
    for code, reason in (("AccessDenied", "read"), ("InvalidObjectState", "archived"), ("NoSuchKey", "gone")):
        answering(refusal(code))
        with pytest.raises(UnreadableFileError, match=reason):
            source.open("a/x.txt")

    class Breaking:
        def read(self, amt):
            raise IncompleteReadError(actual_bytes=1, expected_bytes=amt)

        def close(self) -> None:
            pass

    monkeypatch.setattr(type(bucket), "get_object", lambda _self, **_: {"Body": Breaking()})
    with source.open("a/x.txt") as stream, pytest.raises(EngineUnavailableError):
        stream.read(10)


def test_a_listing_of_a_bucket_that_breaks_off_buries_nothing(
    bucket, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a/x.txt", "a/y.txt")
    source = S3Source("akten", bucket, "akten", S3_CONFIG)
    world.service().ingest(source)
    bucket.delete_object(Bucket="akten", Key="a/y.txt")
    listed = bucket.list_objects_v2

    def cut(self, **arguments):
        if "ContinuationToken" in arguments:
            raise EndpointConnectionError(endpoint_url="x")
        return {**listed(**arguments), "IsTruncated": True, "NextContinuationToken": "x"}

    monkeypatch.setattr(type(bucket), "list_objects_v2", cut)
    with pytest.raises(EngineUnavailableError):
        world.service().ingest(source)
    assert world.scalar(sa.select(sa.func.count()).where(source_objects.c.deleted_at.is_not(None))) == 0


def test_a_file_that_looks_unchanged_is_not_opened_by_an_incremental_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ablage"
    write(root, "a/x.txt", "a/y.txt")
    later = time.time_ns() + 60 * 10**9
    monkeypatch.setattr("shared.sources.local_fs.time.time_ns", lambda: later)
    opened: list[str] = []
    read = LocalFolder.open
    monkeypatch.setattr(LocalFolder, "open", lambda self, id_: opened.append(id_) or read(self, id_))

    def run(*, opens_all: bool, **changes) -> list[Outcome]:
        opened.clear()
        report = world.service(**changes).ingest(LocalFolder("ablage", root, CONFIG), opens_all=opens_all)
        return [file.outcome for file in report.files]

    assert run(opens_all=False) == [Outcome.NEW, Outcome.NEW]
    assert run(opens_all=False) == [Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert opened == []
    # The same length, and the time of change set back: only the inode's own time tells.
    before = (root / "a" / "y.txt").stat()
    (root / "a" / "y.txt").write_text("a/z.txt")
    os.utime(root / "a" / "y.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(opens_all=False) == [Outcome.UNCHANGED, Outcome.CHANGED]
    assert opened == ["a/y.txt"]
    assert run(opens_all=True) == [Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert opened == ["a/x.txt", "a/y.txt"]


def test_a_file_that_was_written_just_now_has_no_fingerprint_yet(tmp_path: Path) -> None:
    write(tmp_path, "x.txt")
    [found] = LocalFolder("ablage", tmp_path, SourceConfig()).scan()
    assert isinstance(found, FoundObject)
    assert found.fingerprint is None


def test_a_folder_that_cannot_be_read_is_named_and_hides_what_it_holds(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ablage"
    write(root, "a/zu/x.txt", "a/offen/y.txt", "a/offen/z.txt")
    world.service().ingest(LocalFolder("ablage", root, CONFIG))
    (root / "a/offen/z.txt").unlink()
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("/zu"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("shared.sources.local_fs.os.scandir", refusing)
    report = world.service().ingest(LocalFolder("ablage", root, CONFIG))
    assert [(file.path, file.reason) for file in report.files if file.outcome is Outcome.UNREADABLE] == [
        ("a/zu", "the folder cannot be read: Permission denied")
    ]
    assert report.counts()["deleted"] == 1
    gone = sa.select(source_objects.c.path).where(source_objects.c.deleted_at.is_not(None))
    assert [row.path for row in world.rows(gone)] == ["a/offen/z.txt"]


def test_two_folders_whose_names_differ_in_form_only_are_shown_as_one(tmp_path: Path) -> None:
    write(tmp_path, "Bücher/x.txt", unicodedata.normalize("NFD", "Bücher/y.txt"))
    folder = LocalFolder("ablage", tmp_path, SourceConfig())
    assert scanned(folder) == ["Bücher/x.txt", "Bücher/y.txt"]
    with folder.open("Bücher/y.txt") as file:
        assert unicodedata.normalize("NFC", file.read().decode()) == "Bücher/y.txt"


def test_two_sessions_register_the_same_objects_in_opposite_orders(world: World) -> None:
    with world.engine.begin() as connection:
        source_id = objects.ensure_source(connection, "ablage", CONFIG)
    start = threading.Barrier(4, timeout=60)

    def register(turn: int) -> int:
        found = [FoundObject(f"a/{n:04}.txt", f"a/{n:04}.txt", f"{n:04}.txt", turn) for n in range(700)]
        start.wait()
        # Each turn has another size, so that each has to write every row.
        with world.engine.begin() as connection:
            return len(objects.register(connection, source_id, found if turn % 2 else found[::-1]))

    with ThreadPoolExecutor(4) as pool:
        assert [done for _ in range(3) for done in pool.map(register, range(4))] == [700] * 12
    assert world.scalar(sa.select(sa.func.count()).select_from(source_objects)) == 700


def test_a_listing_is_registered_in_flat_memory(world: World) -> None:
    class Many(GivenDocuments):
        count = 0

        def scan(self):
            for number in range(self.count):
                yield FoundObject(f"a/{number:06}.txt", f"a/{number:06}.txt", f"{number:06}.txt")

    source = Many("ablage", [], CONFIG, is_whole=True)
    with world.engine.begin() as connection:
        run = scans.begin(connection, objects.ensure_source(connection, "ablage", CONFIG), started_at=world.clock.now())
    listing = scans.Listing(world.engine, run, source)
    peaks = []
    for Many.count in (1_000, 2_000, 4_000):
        tracemalloc.start()
        assert list(listing.register()) == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert listing.count() == 4_000
    assert sum(1 for _ in listing.object_ids()) == 4_000
    # A thousand at a time, whatever comes after.
    assert peaks[2] < peaks[1] * 1.3
