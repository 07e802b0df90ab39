"""Nothing is embedded twice, and nothing broken comes out of the file."""

import math
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from shared.errors import MisconfiguredError
from shared.providers.embedding.cache import CachedEmbedding, cache_key, cached
from shared.providers.embedding.protocol import InputKind
from tests.stub_embedding import StubEmbedding, stub_vector


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, vector FROM embedding"))


def test_a_text_is_embedded_once_for_all_processes_to_come(tmp_path):
    path = tmp_path / "deep" / "cache.sqlite"
    first = CachedEmbedding(StubEmbedding(), path).embed_passages(["Kündigung", "Miete"])
    again = StubEmbedding()
    assert CachedEmbedding(again, path).embed_passages(["Miete", "Kündigung", "neu"]) == [
        first[1],
        first[0],
        *CachedEmbedding(StubEmbedding(), path).embed_passages(["neu"]),
    ]
    assert again.calls == [["neu"]]


def test_a_text_that_comes_twice_in_a_batch_is_embedded_once(tmp_path):
    inner = StubEmbedding()
    vectors = CachedEmbedding(inner, tmp_path / "c").embed_passages(["a", "b", "a", "a"])
    assert inner.calls == [["a", "b"]]
    assert vectors[0] == vectors[2] == vectors[3] != vectors[1]
    assert vectors[0] is not vectors[2]


def test_a_query_is_never_kept_and_never_served_from_what_another_has_asked(tmp_path):
    inner = StubEmbedding()
    model = CachedEmbedding(inner, tmp_path / "c")
    model.embed_passages(["a"])
    assert model.embed_queries(["a"]) == inner.embed_queries(["a"])
    model.embed_queries(["a"])
    assert inner.calls == [["a"]] * 4
    assert len(rows(tmp_path / "c")) == 1


@pytest.mark.parametrize("other", [{"dimensions": 32}, {"model_id": "stub-2"}])
def test_another_model_or_width_never_gets_this_ones_vectors(tmp_path, other):
    CachedEmbedding(StubEmbedding(), tmp_path / "c").embed_passages(["a"])
    inner = StubEmbedding(**other)
    assert len(CachedEmbedding(inner, tmp_path / "c").embed_passages(["a"])[0]) == inner.dimensions
    assert inner.calls == [["a"]]


@pytest.mark.parametrize(
    "broken", [b"", b"\x00" * 255, b"\x00" * 256, b"\xff" * 256, b"\x00\x00\x80\x7f" * 64, "text", 5]
)
def test_a_broken_row_counts_as_absent_and_is_replaced(tmp_path, broken):
    path = tmp_path / "c"
    inner = StubEmbedding()
    model = CachedEmbedding(inner, path)
    good = model.embed_passages(["a"])
    key = cache_key(model.signature, InputKind.PASSAGE, "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE embedding SET vector = ? WHERE key = ?", (broken, key))
    assert model.embed_passages(["a"]) == good
    assert len(inner.calls) == 2
    assert rows(path)[key] not in (broken, b"")
    model.embed_passages(["a"])
    assert len(inner.calls) == 2


def test_the_first_answer_is_the_same_as_the_kept_one(tmp_path):
    model = CachedEmbedding(StubEmbedding(dimensions=384), tmp_path / "c")
    assert model.embed_passages(["Verjährung"]) == model.embed_passages(["Verjährung"])
    assert math.isclose(math.hypot(*model.embed_passages(["Verjährung"])[0]), 1, abs_tol=1e-6)


def test_no_text_can_be_read_from_the_file(tmp_path):
    path = tmp_path / "c"
    CachedEmbedding(StubEmbedding(), path).embed_passages(["Geheimnis der Mandantin"])
    assert all(b"Geheimnis" not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "\udfff\ud800", "😀", "a\x00b"])
def test_any_text_has_a_key_of_its_own(tmp_path, text):
    model = CachedEmbedding(StubEmbedding(), tmp_path / "c")
    assert model.embed_passages([text]) == model.embed_passages([text])
    assert cache_key("m", InputKind.QUERY, text) != cache_key("m", InputKind.QUERY, text + "x")


def test_an_interrupted_run_keeps_the_groups_that_were_done(tmp_path):
    class Interrupted(StubEmbedding):
        def embed_passages(self, texts):
            if self.calls:
                raise KeyboardInterrupt
            return super().embed_passages(texts)

    path = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedding(Interrupted(), path).embed_passages([str(n) for n in range(300)])
    assert len(rows(path)) == 256


def test_without_a_path_there_is_no_cache():
    inner = StubEmbedding()
    assert cached(inner, None) is inner


def test_nothing_is_asked_for_no_texts(tmp_path):
    inner = StubEmbedding()
    assert CachedEmbedding(inner, tmp_path / "c").embed_passages([]) == []
    assert inner.calls == []


def test_a_file_that_is_no_database_is_refused_with_advice(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"this is a letter, not a database. " * 100)
    with pytest.raises(MisconfiguredError, match=r"cache\.sqlite is not an embedding cache .*CACHE_PATH"):
        CachedEmbedding(StubEmbedding(), path).embed_passages(["a"])
    assert path.read_bytes().startswith(b"this is a letter")


def test_a_file_that_cannot_be_opened_costs_speed_but_no_answer(tmp_path, caplog):
    folder = tmp_path / "cache.sqlite"
    folder.mkdir()
    inner = StubEmbedding()
    assert CachedEmbedding(inner, folder).embed_passages(["a"]) == [pytest.approx(stub_vector("a", dimensions=64))]
    assert inner.calls == [["a"]]
    assert {record.message for record in caplog.records} == {
        "embedding_cache_unreadable",
        "embedding_cache_not_written",
    }


def test_a_file_deleted_under_a_running_process_is_made_anew(tmp_path):
    path = tmp_path / "c"
    inner = StubEmbedding()
    model = CachedEmbedding(inner, path)
    model.embed_passages(["a"])
    for file in tmp_path.iterdir():
        file.unlink()
    model.embed_passages(["a"])
    model.embed_passages(["a"])
    assert inner.calls == [["a"], ["a"]]


def test_threads_share_one_cache(tmp_path):
    model = CachedEmbedding(StubEmbedding(), tmp_path / "c")
    texts = [f"text {n}" for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.embed_passages(texts), range(16)))
    assert all(answer == answers[0] for answer in answers)
    assert len(rows(tmp_path / "c")) == 40


_WRITER = """
import sys
from pathlib import Path
from shared.providers.embedding.cache import CachedEmbedding
from tests.stub_embedding import StubEmbedding
model = CachedEmbedding(StubEmbedding(), Path(sys.argv[1]))
for n in range(60):
    model.embed_passages([f"{sys.argv[2]} {n}", f"shared {n}"])
"""


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path, caplog):
    path = tmp_path / "c"
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name], stderr=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors
    assert errors == [b"", b"", b""]
    assert len(rows(path)) == 4 * 60
    inner = StubEmbedding()
    CachedEmbedding(inner, path).embed_passages([f"shared {n}" for n in range(60)])
    assert inner.calls == []
