"""An invented corpus for speed: German-looking legal prose by the yard, taken in through the product's own pipeline.

The words follow Zipf's law, so that a query meets common and rare ones as in real text. It lies in a database and an
index of its own; a second run finds it there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from bench.vectors import HashedVectors
from evals.corpora import Record
from evals.stage import corpus_source, ensure_database, own_settings
from shared.index.ensure import ensure_index
from shared.ingest.service import Progress
from shared.runtime.bootstrap import Services, build
from shared.settings import Settings

NAME = "bench"
DOCUMENTS = 200
_PARAGRAPHS = 36
_SENTENCES = 5
_WORDS = 4_000
_BEGINNINGS = [
    "ver",
    "be",
    "ge",
    "ent",
    "er",
    "zer",
    "miss",
    "un",
    "auf",
    "aus",
    "ein",
    "vor",
    "nach",
    "über",
    "unter",
    "haupt",
    "neben",
    "gegen",
    "wider",
    "bei",
]
_STEMS = [
    "trag",
    "recht",
    "gericht",
    "haft",
    "kauf",
    "miet",
    "dienst",
    "werk",
    "pflicht",
    "frist",
    "zahl",
    "leist",
    "schad",
    "ersatz",
    "bürg",
    "pfand",
    "erb",
    "klag",
    "urteil",
    "spruch",
    "antrag",
    "bescheid",
    "steuer",
    "gesell",
    "schaft",
    "vollmacht",
    "anteil",
    "zins",
    "darlehn",
    "eigen",
    "besitz",
    "grund",
    "buch",
    "form",
    "nichtig",
]
_ENDINGS = ["ung", "heit", "keit", "schaft", "er", "e", "en", "lich", "bar", "los", "ig", "nis", "tum"]


def staged(
    base: Settings, *, documents: int = DOCUMENTS, progress: Callable[[Progress], None] | None = None
) -> Services:
    """Return services over a corpus of so many documents, some 37 chunks each, with a stubbed embedding.

    What is there already costs no work.
    """
    name = NAME if documents == DOCUMENTS else f"{NAME}-{documents}"
    model = HashedVectors(base.retrieval.embedding_dimensions)
    marked = base.embedding.model_copy(update={"model_id": model.model_id})
    settings = own_settings(base.model_copy(update={"embedding": marked}), name)
    ensure_database(base, settings)
    services = build(settings, embedding=model)
    ensure_index(services.index, settings.retrieval, embedding_signature=model.signature)
    report = services.ingest_service().ingest(corpus_source(name, records(documents)), progress=progress)
    if not report.complete:
        raise AssertionError(f"the corpus is not whole: {report.counts()}")
    services.index.refresh(settings.retrieval.index_name)
    return services


def records(documents: int = DOCUMENTS) -> Iterator[Record]:
    """Yield the documents, the same on every run; more of them begin with the fewer."""
    words, weights = vocabulary()
    for number in range(documents):
        chance = random.Random(number)
        paragraphs = [
            f"§ {paragraph}\n\n" + " ".join(_sentence(chance, words, weights) for _ in range(_SENTENCES))
            for paragraph in range(1, _PARAGRAPHS + 1)
        ]
        title = f"Aktenzeichen {number % 13 + 1} O {number + 100}/{number % 20 + 2000}"
        yield Record(f"d{number:04}", title, "\n\n".join(paragraphs))


def queries(count: int) -> list[str]:
    """Return questions of three to eight words of the corpus."""
    words, weights = vocabulary()
    chance = random.Random("queries")
    return [" ".join(chance.choices(words, weights, k=chance.randint(3, 8))) for _ in range(count)]


def vocabulary() -> tuple[list[str], list[float]]:
    """Return the words and how often each occurs."""
    chance = random.Random("words")
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        parts = [chance.choice(_BEGINNINGS), *chance.choices(_STEMS, k=chance.randint(1, 2)), chance.choice(_ENDINGS)]
        words["".join(parts).capitalize()] = None
    return list(words), [1 / rank for rank in range(1, _WORDS + 1)]


def _sentence(chance: random.Random, words: list[str], weights: list[float]) -> str:
    return " ".join(chance.choices(words, weights, k=chance.randint(8, 18))) + "."
