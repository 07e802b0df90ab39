"""A source's configuration: what is taken in, and to which project and matter it belongs."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from shared.types import SourceKind


def _posix_folder(value: object) -> object:
    return unicodedata.normalize("NFC", value).strip("/") if isinstance(value, str) else value


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProjectRef(_Part):
    """A client file by its key; made when it is first needed."""

    key: str = Field(min_length=1, max_length=200)
    title: str = Field(min_length=1)


class MatterRef(_Part):
    """A matter by its key; made when it is first needed."""

    key: str = Field(min_length=1, max_length=200)
    title: str = Field(min_length=1)
    reference_numbers: tuple[str, ...] = ()
    practice_area: str | None = None
    status: str = "open"


class PlaceRule(_Part):
    """Where everything at or below a folder belongs; what is None comes from the source's default."""

    prefix: Annotated[str, BeforeValidator(_posix_folder)]
    project: ProjectRef | None = None
    matter: MatterRef | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The project and the matter that a path belongs to."""

    project: ProjectRef | None
    matter: MatterRef | None


class SourceConfig(_Part):
    """What `sources.config` holds.

    `include` and `exclude` are shell patterns on the whole path below the source (`*` crosses folders) or on the
    name alone; an empty `include` takes everything. Of several rules whose folder contains a path the deepest wins.
    """

    kind: SourceKind = SourceKind.LOCAL_FS
    project: ProjectRef | None = None
    matter: MatterRef | None = None
    places: tuple[PlaceRule, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def place_of(self, path: str) -> Place:
        """Return where an object at `path` (POSIX, below the source) belongs."""
        rule = max(
            (rule for rule in self.places if _contains(rule.prefix, path)),
            key=lambda rule: len(rule.prefix),
            default=None,
        )
        if rule is None:
            return Place(self.project, self.matter)
        return Place(rule.project or self.project, rule.matter or self.matter)

    def takes(self, path: str) -> bool:
        """Return whether an object at `path` is taken in."""
        if self.include and not _matches(path, self.include):
            return False
        return not _matches(path, self.exclude)


def _contains(folder: str, path: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)
