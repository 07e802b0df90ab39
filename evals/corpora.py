"""The evaluation sets as they lie in the evaluation folder: corpora, questions and judgements, read lazily.

The folder is other people's data and never part of the project; `KI_TEST_SHARED` says where its parent lies.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SHARED_VARIABLE = "KI_TEST_SHARED"
DEFAULT_SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@dataclass(frozen=True, slots=True)
class Record:
    """One document of a corpus; an empty title means that it has none."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Where an answer stands: [start, end) in the NFC form of the document's text."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Questions with their judgements: graded by document id, and by character span where the set has spans.

    `judged_pool`: each question was judged on a pool of documents only, and relevant ones outside it are unknown; a
    ranking is scored after everything outside the pool is taken out (condensed lists, Sakai 2007).
    """

    name: str
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    spans: Mapping[str, Span]
    judged_pool: bool = False


CORPORA = ("legalquad", "statutes", "acord")


def evaluation_folder() -> Path:
    """Return the folder that holds the sets; raises `FileNotFoundError` that says how to point to it."""
    folder = Path(os.environ.get(SHARED_VARIABLE) or DEFAULT_SHARED) / "evals"
    if not folder.is_dir():
        raise FileNotFoundError(f"no evaluation data at {folder}: set {SHARED_VARIABLE} to the folder above 'evals'")
    return folder


def corpus_in(folder: Path) -> Path | None:
    """Return the corpus file of `folder` if it is laid out as an evaluation set, else None."""
    for name in ("corpus.jsonl", "sections.jsonl"):
        if (folder / name).is_file():
            return folder / name
    return None


def read_corpus(path: Path) -> Iterator[Record]:
    """Yield the records of a corpus file in its order; raises `ValueError` naming the line of a bad one."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                identity = str(row["_id"] if "_id" in row else row["id"])
                yield Record(identity, _title(row), str(row["text"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path.name}, line {number}: not a corpus record: {error!r}") from error


def query_sets(folder: Path, name: str) -> list[QuerySet]:
    """Return the question sets of corpus `name`: one, but two (German, English) for the statutes."""
    if name == "legalquad":
        return [_legalquad(folder / name)]
    if name == "statutes":
        return _statutes(folder / name)
    if name == "acord":
        return [_acord(folder / name)]
    raise ValueError(f"unknown set {name!r}; known are {', '.join(CORPORA)}")


def _title(row: Mapping[str, object]) -> str:
    if "law" in row:
        return f"§ {row['sec']} {row['law']} {row['title']}".strip()
    return str(row.get("title") or "")


def _legalquad(folder: Path) -> QuerySet:
    spans = {
        row["query-id"]: Span(row["corpus-id"], int(row["start"]), int(row["end"]))
        for row in _table(folder / "spans.tsv")
    }
    return QuerySet("legalquad", _questions(folder), _qrels(folder / "qrels.tsv"), spans)


def _acord(folder: Path) -> QuerySet:
    qrels = {**_qrels(folder / "qrels-train.tsv"), **_qrels(folder / "qrels-valid.tsv")}
    return QuerySet("acord", _questions(folder), qrels, {}, judged_pool=True)


def _statutes(folder: Path) -> list[QuerySet]:
    rows = _table(folder / "queries.tsv")
    qrels = {f"s{n:03}": dict.fromkeys(row["gold_section_ids"].split(","), 1) for n, row in enumerate(rows)}
    return [
        QuerySet(
            f"statutes-{language}", {f"s{n:03}": row[f"query_{language}"] for n, row in enumerate(rows)}, qrels, {}
        )
        for language in ("de", "en")
    ]


def _questions(folder: Path) -> dict[str, str]:
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        return {row["_id"]: row["text"] for row in map(json.loads, lines)}


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for row in _table(path):
        judged.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return judged


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))
