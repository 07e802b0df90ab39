"""Annexes that lie beside the paper that names them: "Anlage K1.pdf" beside a brief that says "Anlage K 1".

A folder is known by a hash of the source and its path: the path itself is for those who may cite the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from uuid import UUID

from shared.ingest.relations.said import Intent, Key, key_of, quote
from shared.types import RelationKind

_WORD = r"(?:anlagen?|annex|exhibit|schedule|appendix|anhang)"
_LABEL = r"(?P<label>(?:[A-Z]{1,4}[\s_.-]?)?\d{1,4}[a-z]?)"
_NAMED = re.compile(rf"^(?:\d{{1,3}}[\s_.-]+)?{_WORD}[\s_.-]*{_LABEL}(?![\w])", re.IGNORECASE)
_MENTIONED = re.compile(rf"\b{_WORD}\s+{_LABEL}\b(?!\s*(?:zu[mr]?|to)\b)", re.IGNORECASE)
# A subfolder of the paper's own folder for nothing but annexes.
_FOLDER = re.compile(rf"^(?:\d{{1,3}}[\s_.-]+)?{_WORD}(?:es|s)?$", re.IGNORECASE)
_BEARERS = frozenset({"pleading", "contract", "correspondence"})
_MAX_LABELS = 500
_HEAD_CHARS = 60


def annex_intents(source_id: UUID, path: str, text: str) -> Iterator[Intent]:
    """Yield that this file is the annex that its name, or else its first line, says it is."""
    found = _NAMED.search(_stem(path).replace("_", " "))
    source = "file_name"
    if found is None:
        found = _NAMED.search(text[:_HEAD_CHARS].lstrip())
        source = "heading"
    if found is None:
        return
    folder, _, _ = path.rpartition("/")
    for place in _places(folder):
        yield Intent(
            RelationKind.ANNEX_OF,
            _key(source_id, place, found["label"]),
            0.8,
            {"source": source},
            by_name=True,
        )


def annex_keys(source_id: UUID, path: str, text: str, *, root_type: str | None) -> Iterator[Key]:
    """Yield the annexes that a pleading, contract or letter names, as what lies beside it may be called."""
    if root_type not in _BEARERS or _NAMED.search(_stem(path).replace("_", " ")):
        return
    folder, _, _ = path.rpartition("/")
    seen: set[str] = set()
    for match in _MENTIONED.finditer(text):
        key = _key(source_id, folder, match["label"])
        if key not in seen:
            seen.add(key)
            yield Key(key, quote("text", text, match.start(), match.end()), by_name=True)
        if len(seen) >= _MAX_LABELS:
            return


def folder_key(source_id: UUID, path: str) -> str:
    """Return the name of the folder in which a file lies."""
    folder, _, _ = path.rpartition("/")
    return key_of("folder", _hash(source_id, folder))


def _places(folder: str) -> list[str]:
    parent, _, last = folder.rpartition("/")
    return [folder, parent] if _FOLDER.match(last) else [folder]


def _key(source_id: UUID, folder: str, label: str) -> str:
    plain = re.sub(r"[\s_.-]", "", label).upper()
    return key_of("annex", f"{_hash(source_id, folder)}:{plain}")


def _hash(source_id: UUID, folder: str) -> str:
    return hashlib.sha256(f"{source_id}:{folder}".encode()).hexdigest()[:32]


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0] or path.rpartition("/")[2]
