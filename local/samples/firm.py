"""Who works at the invented firm, who may see what, and what a search must therefore show.

A file is named `<source>/<path>`, as the builder lays it out.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FirmName(_Model):
    """The firm's name and mail domain."""

    name: str
    domain: str


class Person(_Model):
    """A person and the groups that the token carries, without the prefix `group:`."""

    email: str
    name: str
    title: str
    groups: tuple[str, ...]
    admin: bool


class Personas(_Model):
    """The people of the demo: two sides of the wall, someone of neither, the administrator."""

    left: str
    right: str
    outsider: str
    admin: str


class Grant(_Model):
    """One access row: an effect for a principal such as `group:team-nordlicht`."""

    effect: Literal["allow", "deny"]
    principal: str


class Project(_Model):
    """A client's project with the grants that open it."""

    key: str
    title: str
    grants: tuple[Grant, ...]


class Party(_Model):
    """A party of a matter."""

    name: str
    role: str


class Matter(_Model):
    """A matter; its key is the firm's own reference number."""

    key: str
    project: str
    title: str
    reference_numbers: tuple[str, ...]
    practice_area: str
    status: str
    parties: tuple[Party, ...]


class Placement(_Model):
    """Files whose path in the source starts with the prefix belong to this project and matter."""

    path_prefix: str
    project: str
    matter: str | None


class Source(_Model):
    """A source; the longest matching prefix places a file."""

    name: str
    kind: Literal["local_fs"]
    placements: tuple[Placement, ...]


class Wall(_Model):
    """A deny row on a project, and why it stands."""

    project: str
    principal: str
    reason: str


class ObjectAcl(_Model):
    """A file with an access list of its own: the whole list."""

    file: str
    grants: tuple[Grant, ...]
    reason: str


class Quarantined(_Model):
    """A file that ingest must set aside."""

    file: str
    kind: Literal["unsupported", "broken"]


class Copies(_Model):
    """Files with identical bytes; one version where project and matter are the same, else separate ones."""

    files: tuple[str, ...]
    same_version: bool


class Firm(_Model):
    """The firm as `firm.json` describes it."""

    firm: FirmName
    people: tuple[Person, ...]
    personas: Personas
    projects: tuple[Project, ...]
    matters: tuple[Matter, ...]
    sources: tuple[Source, ...]
    walls: tuple[Wall, ...]
    object_acls: tuple[ObjectAcl, ...]
    quarantined: tuple[Quarantined, ...]
    copies: tuple[Copies, ...]

    def person(self, email: str) -> Person:
        """Return the person with this address; KeyError when nobody has it."""
        return {person.email: person for person in self.people}[email]

    def placement(self, file: str) -> Placement:
        """Return project and matter of `<source>/<path>`; KeyError when no prefix covers it."""
        name, _, path = file.partition("/")
        places = {source.name: source.placements for source in self.sources}[name]
        fitting = [place for place in places if path.startswith(place.path_prefix)]
        if not fitting:
            raise KeyError(f"no placement of source {name} covers {path}: add its folder to firm.json")
        return max(fitting, key=lambda place: len(place.path_prefix))


class Expected(_Model):
    """What one person's result list must hold.

    `top`: one of these stands first (empty: no claim). `present`: of each group at least one file is in the
    list; the drafts of one contract are a group, because they may be shown as one document. `absent`: none of
    these is; an entry that ends in "/" stands for everything below it.
    """

    top: tuple[str, ...]
    present: tuple[tuple[str, ...], ...]
    absent: tuple[str, ...]

    def failures(self, found: Sequence[Sequence[str]]) -> list[str]:
        """Return a sentence for each broken claim.

        `found` holds, hit by hit in rank order, the files that the hit cites.
        """
        cited = {file for hit in found for file in hit}
        first = set(found[0]) if found else set[str]()
        missing_top = [f"none of {list(self.top)} is first, but {sorted(first)}"]
        return [
            *(missing_top if self.top and first.isdisjoint(self.top) else []),
            *(f"{' or '.join(group)} is missing" for group in self.present if not set(group) & cited),
            *(f"{file} must not be shown" for file in sorted(cited) if self._is_absent(file)),
        ]

    def _is_absent(self, file: str) -> bool:
        return any(file.startswith(entry) if entry.endswith("/") else file == entry for entry in self.absent)


class Query(_Model):
    """A search of the demo, and by address what each person must and must not get."""

    id: str
    query: str
    limit: int = Field(ge=1, le=100)
    note: str
    expect: dict[str, Expected]


class Expectations(_Model):
    """The searches of `expectations.json`."""

    queries: tuple[Query, ...]


_Loaded = TypeVar("_Loaded", Firm, Expectations)


def load_firm() -> Firm:
    """Return the firm; a mistake in the file is pydantic's ValidationError."""
    return _load("firm.json", Firm)


def load_expectations() -> Expectations:
    """Return the searches with their expected results."""
    return _load("expectations.json", Expectations)


def _load(name: str, model: type[_Loaded]) -> _Loaded:
    return model.model_validate_json(files("local.samples").joinpath(name).read_text(encoding="utf-8"))
