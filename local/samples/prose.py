r"""A source text as blocks that every file writer understands.

The sources are plain text. Lines before `---` are `key: value` facts about the file; the rest is
paragraphs, separated by blank lines:

    # Heading        ## Lower heading        - list item        | a | table row |        \page
    @v1,v2 text      only in these variants      {{price}}      a value of the variant
    {++new++}        a tracked insertion         {--old--}      a tracked deletion
    [^note]          a footnote                  ~              a non-breaking space      \-  a soft hyphen
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_INLINE = re.compile(r"\{\+\+(?P<ins>.*?)\+\+\}|\{--(?P<del>.*?)--\}|\[\^(?P<note>.*?)\]")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_VARIANTS = re.compile(r"@([\w,]+) ")


class RunKind(StrEnum):
    """What a stretch of text is."""

    TEXT = "text"
    INSERTED = "ins"
    DELETED = "del"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text of one kind."""

    text: str
    kind: RunKind = RunKind.TEXT


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the document's own."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text, or one item of a list."""

    runs: tuple[Run, ...]
    bullet: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first row is the head."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PageBreak:
    """The next block starts a new page where the format has pages."""


Block = Heading | Paragraph | Table | PageBreak


@dataclass(frozen=True, slots=True)
class Prose:
    """One text with its facts (`title`, `header`, `footer`, `author`, `created`, `markup_author`, ...)."""

    facts: Mapping[str, str]
    blocks: tuple[Block, ...]

    @property
    def title(self) -> str:
        """The title, which every source must state."""
        return self.facts["title"]


def parse(source: str, *, variant: str = "", values: Mapping[str, str] | None = None) -> Prose:
    """Return the blocks of `source` in one variant, its placeholders filled.

    A placeholder without a value is a KeyError: a contract with a hole in it is a mistake.
    """
    filled = _PLACEHOLDER.sub(lambda match: (values or {})[match[1]], source)
    head, _, body = filled.partition("\n---\n")
    facts = dict(line.split(": ", 1) for line in head.strip().splitlines())
    paragraphs = (part.strip() for part in _typography(body).split("\n\n"))
    return Prose(facts, tuple(_block(kept) for part in paragraphs if (kept := _in_variant(part, variant))))


def accepted(runs: Sequence[Run]) -> str:
    """Return the text a reader sees once all tracked changes are accepted; footnotes in brackets."""
    return "".join(
        f" [{run.text}]" if run.kind is RunKind.NOTE else run.text for run in runs if run.kind is not RunKind.DELETED
    )


def _typography(text: str) -> str:
    return text.replace("~", "\N{NO-BREAK SPACE}").replace("\\-", "\N{SOFT HYPHEN}")


def _in_variant(part: str, variant: str) -> str:
    match = _VARIANTS.match(part)
    if match is None:
        return part
    return part[match.end() :] if variant in match[1].split(",") else ""


def _block(part: str) -> Block:
    if part == "\\page":
        return PageBreak()
    if part.startswith("#"):
        marks, _, text = part.partition(" ")
        return Heading(len(marks), " ".join(text.split()))
    if part.startswith("|"):
        rows = (line.strip().strip("|").split("|") for line in part.splitlines())
        return Table(tuple(tuple(cell.strip() for cell in row) for row in rows))
    bullet = part.startswith("- ")
    return Paragraph(_runs(part.removeprefix("- ").replace("\n", " ")), bullet=bullet)


def _runs(text: str) -> tuple[Run, ...]:
    runs: list[Run] = []
    position = 0
    for match in _INLINE.finditer(text):
        runs.append(Run(text[position : match.start()]))
        kind = RunKind(str(match.lastgroup))
        runs.append(Run(match[kind.value], kind))
        position = match.end()
    runs.append(Run(text[position:]))
    return tuple(run for run in runs if run.text)
