"""By what a version is called by others: its own identifiers, its sort and day, its Message-ID."""

from __future__ import annotations

from collections.abc import Iterator

from shared.ingest import identifiers
from shared.ingest.facts import Facts, Reading
from shared.ingest.relations.said import Key, dated, key_of, quote

# Which types are looked for under which sort of paper.
_SORT_OF_TYPE = {"contract": "contract", "pleading": "pleading", "correspondence": "letter", "court": "decision"}
# Where a paper says what it is.
_HEAD_CHARS = 1500
# A judgment bears its file number; a pleading only names that of its proceedings, as every other one does.
_BORNE_BY = {
    "court": ("ecli", "file_number", "eu_case", "case"),
    "finance": ("invoice",),
    "contract": ("contract", "deed"),
    "correspondence": ("reference",),
}


def own_keys(text: str, reading: Reading) -> Iterator[Key]:
    """Yield the keys that the version bears by its content, and those that it bears only with its file's name."""
    content = list(_dated(reading.content)) + list(_numbered(text, reading.content))
    yield from content
    known = {key.key for key in content}
    for key in (*_dated(reading.named, by_name=True), *_numbered(text, reading.named, by_name=True)):
        if key.key not in known:
            yield key


def _dated(facts: Facts, *, by_name: bool = False) -> Iterator[Key]:
    sort = _SORT_OF_TYPE.get(_top(facts) or "")
    when = facts.doc_date
    if sort is not None and when.day is not None and when.precision == "day":
        evidence = {"source": "file_name"} if by_name else {"source": "date", "text": when.raw}
        yield Key(dated(sort, when.day), evidence, by_name=by_name)


def _numbered(text: str, facts: Facts, *, by_name: bool = False) -> Iterator[Key]:
    wanted = _BORNE_BY.get(_top(facts) or "", ())
    taken: set[str] = set()
    for found in identifiers.extract(text[:_HEAD_CHARS]) if wanted else ():
        # The first of each kind is its own, the next ones are those it is about.
        if found.kind not in wanted or found.kind in taken:
            continue
        taken.add(found.kind)
        evidence = {"source": "file_name"} if by_name else quote("identifier", text, found.start, found.end)
        yield Key(key_of(found.kind, found.canonical), evidence, by_name=by_name)


def _top(facts: Facts) -> str | None:
    """Return the root of the document's type: the last of its ancestors."""
    return facts.doc_type_ancestors[-1] if facts.doc_type_ancestors else None
