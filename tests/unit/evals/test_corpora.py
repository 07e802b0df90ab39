from pathlib import Path

import pytest

from evals.corpora import CORPORA, corpus_in, evaluation_folder, query_sets, read_corpus


@pytest.mark.parametrize(
    ("name", "documents", "questions"), [("legalquad", 200, [100]), ("statutes", 6216, [35, 35]), ("acord", 3931, [57])]
)
def test_every_set_is_read_whole(name: str, documents: int, questions: list[int]) -> None:
    corpus = corpus_in(evaluation_folder() / name)
    assert corpus is not None
    ids = [record.id for record in read_corpus(corpus)]
    assert len(ids) == len(set(ids)) == documents
    sets = query_sets(evaluation_folder(), name)
    assert [len(each.queries) for each in sets] == questions
    known = set(ids)
    for each in sets:
        assert set(each.qrels) == set(each.queries)
        assert all(any(gain > 0 for gain in judged.values()) for judged in each.qrels.values())
        assert {document for judged in each.qrels.values() for document in judged} <= known


def test_an_answer_stands_at_its_span_in_the_stored_text() -> None:
    from shared.text.normalise import stored

    (questions,) = query_sets(evaluation_folder(), "legalquad")
    corpus = corpus_in(evaluation_folder() / "legalquad")
    assert corpus is not None
    texts = {record.id: stored(record.text) for record in read_corpus(corpus)}
    span = questions.spans["q000"]
    assert texts[span.document_id][span.start : span.end].startswith("Die Revision des Klägers")
    assert all(span.end <= len(texts[span.document_id]) for span in questions.spans.values())


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n{"no": 1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        list(read_corpus(tmp_path / "corpus.jsonl"))


def test_an_unknown_set_is_refused() -> None:
    assert "nope" not in CORPORA
    with pytest.raises(ValueError, match="nope"):
        query_sets(evaluation_folder(), "nope")
