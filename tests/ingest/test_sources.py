"""Sources, their configuration, and the object stores."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from shared.errors import InvalidRequestError, StoredObjectMissingError, UnreadableFileError
from shared.providers.storage import FileStore, S3Store, original_key
from shared.providers.storage.s3 import content_disposition
from shared.sources.base import FoundObject, ScanProblem
from shared.sources.config import MatterRef, Place, PlaceRule, ProjectRef, SourceConfig
from shared.sources.local_fs import LocalFolder


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
