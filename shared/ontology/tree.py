"""The tree of document types and clause types: its nodes, their closure, and the rules that recognise them.

The built-in tree is `tree.json` beside this module; a firm brings its own by the setting `ontology.path`, a file of
the same shape. The order of nodes is the order of their rules: what answers, amends or decides comes before what it is
about, and a special type before the general one.

A node's words are plain text, in any case of letters. A word may be the end of a compound ("Gewerbemietvertrag" holds
"mietvertrag"); one that begins with "=" stands by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from shared.errors import MisconfiguredError
from shared.text.normalise import searched
from shared.types import Language

BUILT_IN: Final = Path(__file__).with_name("tree.json")
_MAX_FILE_BYTES: Final = 5_000_000
_MAX_DEPTH: Final = 10

NodeId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+(?:\.[a-z0-9_]+)*$", max_length=200)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Labels(_Part):
    """What a node is called."""

    de: str = Field(min_length=1)
    en: str = Field(min_length=1)


class _Node(_Part):
    id: NodeId
    parent: NodeId | None = None
    labels: Labels
    words: tuple[Word, ...] = ()


class DocType(_Node):
    """A type of documents. `mimes` are files that are of this type whatever they say; `clauses`: they hold clauses."""

    mimes: tuple[str, ...] = ()
    clauses: bool = False


class ClauseType(_Node):
    """A type of clauses. `words` stand in its heading, `phrases` in its text where the heading tells nothing."""

    phrases: tuple[Word, ...] = ()


class Ontology(_Part):
    """Both trees. Ids are unique in each, every parent exists, and nothing is its own ancestor."""

    name: str = Field(min_length=1)
    version: str = Field(min_length=1)
    doc_types: tuple[DocType, ...]
    clause_types: tuple[ClauseType, ...]

    @model_validator(mode="after")
    def _are_trees(self) -> Self:
        for tree in (self.doc_types, self.clause_types):
            parents = {node.id: node.parent for node in tree}
            if len(parents) < len(tree):
                seen: set[str] = set()
                twice = next(node.id for node in tree if node.id in seen or seen.add(node.id))  # type: ignore[func-returns-value]
                msg = f"{twice} stands there twice"
                raise ValueError(msg)
            for node in tree:
                _check_line(node.id, parents)
        return self

    @cached_property
    def fingerprint(self) -> str:
        """What tells two trees apart, whatever their versions say; what was made with another is made anew."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[:12]

    def doc_type_closure(self, doc_type: str | None) -> tuple[str, ...]:
        """Return the type itself and all above it, nearest first, so that one term finds a subtree."""
        return _closure(doc_type, self._doc_parents)

    def has_doc_type(self, doc_type: str) -> bool:
        """Tell whether the tree has this type."""
        return doc_type in self._doc_parents

    def clause_subtree(self, clause_type: str) -> tuple[str, ...]:
        """Return the clause type and all below it, sorted. One that the tree does not know stands for itself."""
        below = (node for node in self._clause_parents if clause_type in _closure(node, self._clause_parents))
        return tuple(sorted({clause_type, *below}))

    def doc_type_label(self, doc_type: str | None, language: str | None) -> str | None:
        """Return what the type is called, in the language of the document if that is German, else in English.

        A type that the tree does not know (any more) is called by the last part of its id: "contract.letter_of_intent"
        gives "Letter of intent".
        """
        if not doc_type:
            return None
        labels = self._doc_labels.get(doc_type)
        if labels is None:
            words = doc_type.rpartition(".")[2].replace("_", " ").strip()
            return words[:1].upper() + words[1:] or None
        return labels.de if language == Language.GERMAN else labels.en

    def doc_type_of(self, *, mime: str, names: Iterable[str]) -> str | None:
        """Return the type by the kind of file, else by what the file is called, the most telling name first."""
        by_mime = next((node.id for node in self.doc_types if mime in node.mimes), None)
        if by_mime is not None:
            return by_mime
        for name in names:
            spaced = _spaced(name)
            for node_id, pattern in self._doc_rules:
                if pattern.search(spaced):
                    return node_id
        return None

    def holds_clauses(self, doc_type: str | None) -> bool:
        """Tell whether documents of this type consist of clauses that are worth being found one by one."""
        return any(one in self._with_clauses for one in self.doc_type_closure(doc_type))

    def clause_type_of(self, *, heading: str, text: str) -> str | None:
        """Return the type of a clause: by its heading, else by a telling phrase of its text."""
        spaced, lowered = _spaced(heading), searched(text).lower()
        by_heading = next((node_id for node_id, pattern in self._clause_rules if pattern.search(spaced)), None)
        if by_heading is not None:
            return by_heading
        return next((node.id for node in self.clause_types if any(p.lower() in lowered for p in node.phrases)), None)

    @cached_property
    def _doc_parents(self) -> Mapping[str, str | None]:
        return {node.id: node.parent for node in self.doc_types}

    @cached_property
    def _clause_parents(self) -> Mapping[str, str | None]:
        return {node.id: node.parent for node in self.clause_types}

    @cached_property
    def _doc_labels(self) -> Mapping[str, Labels]:
        return {node.id: node.labels for node in self.doc_types}

    @cached_property
    def _doc_rules(self) -> Sequence[tuple[str, re.Pattern[str]]]:
        return _rules(self.doc_types)

    @cached_property
    def _clause_rules(self) -> Sequence[tuple[str, re.Pattern[str]]]:
        return _rules(self.clause_types)

    @cached_property
    def _with_clauses(self) -> frozenset[str]:
        return frozenset(node.id for node in self.doc_types if node.clauses)


@lru_cache(maxsize=4)
def load_ontology(path: str | None) -> Ontology:
    """Return the tree in `path`, the built-in one without a path. Raises `MisconfiguredError` that names the fault."""
    file = Path(path) if path else BUILT_IN
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise MisconfiguredError(f"ontology.path: {file} is larger than {_MAX_FILE_BYTES} bytes")
        return Ontology.model_validate_json(file.read_bytes())
    except OSError as error:
        raise MisconfiguredError(f"ontology.path: {file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise MisconfiguredError(f"ontology.path: {file}: {place}: {first['msg']}") from error


def _check_line(node: str, parents: Mapping[str, str | None]) -> None:
    seen, above = [node], parents[node]
    while above is not None:
        if above not in parents:
            msg = f"{seen[-1]} has the parent {above}, which is not there"
            raise ValueError(msg)
        if above in seen or len(seen) >= _MAX_DEPTH:
            msg = f"{node} has more than {_MAX_DEPTH} nodes above it, or is above itself"
            raise ValueError(msg)
        seen.append(above)
        above = parents[above]


def _closure(node: str | None, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    found: list[str] = []
    while node is not None:
        found.append(node)
        node = parents.get(node)
    return tuple(found)


def _rules(nodes: Iterable[_Node]) -> list[tuple[str, re.Pattern[str]]]:
    return [(node.id, _pattern(node.words)) for node in nodes if node.words]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    parts = [
        rf"\b{re.escape(_spaced(word[1:]))}" if word.startswith("=") else re.escape(_spaced(word)) for word in words
    ]
    return re.compile(rf"(?:{'|'.join(parts)})(?![^\W\d_])")


def _spaced(name: str) -> str:
    """Return a name for comparing. An underscore is a letter to a pattern; in the name of a file it is a space."""
    return re.sub(r"[\s_.]+", " ", searched(name)).lower()
