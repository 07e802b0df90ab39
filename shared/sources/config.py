"""A source's configuration: what is taken in, and to which project and matter it belongs."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

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


class MatterFolders(_Part):
    """Each folder `depth` levels below `prefix` is a matter.

    With a pattern, a regular expression, only those whose whole name fits it.
    """

    prefix: Annotated[str, BeforeValidator(_posix_folder)]
    depth: int = Field(ge=1, le=20)
    pattern: str | None = None

    @field_validator("pattern")
    @classmethod
    def _is_an_expression(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            msg = f"not a regular expression: {error}"
            raise ValueError(msg) from error
        return pattern

    def folder_of(self, path: str) -> tuple[str, ...] | None:
        """Return the folders from below the prefix to the matter's own, None if the path lies in none."""
        below = path[len(self.prefix) :].lstrip("/") if self.prefix else path
        folders = tuple(below.split("/")[:-1][: self.depth])
        if len(folders) < self.depth or (self.pattern and not re.fullmatch(self.pattern, folders[-1])):
            return None
        return folders


@dataclass(frozen=True, slots=True)
class Place:
    """The project and the matter that a path belongs to."""

    project: ProjectRef | None
    matter: MatterRef | None


class SourceConfig(_Part):
    """What `sources.config` holds.

    `include` and `exclude` are shell patterns on the whole path below the source (`*` crosses folders) or on the
    name alone; an empty `include` takes everything. Of several rules whose folder contains a path the deepest wins.
    A matter that is configured for a path counts before one that is made from a folder.
    """

    kind: SourceKind = SourceKind.LOCAL_FS
    project: ProjectRef | None = None
    matter: MatterRef | None = None
    places: tuple[PlaceRule, ...] = ()
    matter_folders: tuple[MatterFolders, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _folders_lie_in_a_project_and_in_no_matter(self) -> Self:
        for folders in self.matter_folders:
            place = self.place_of(folders.prefix)
            if place.project is None:
                msg = f"matter_folders below {folders.prefix!r}: give the source or the folder a project"
                raise ValueError(msg)
            if place.matter is not None:
                msg = (
                    f"matter_folders below {folders.prefix!r}: all of it belongs to matter {place.matter.key!r} already"
                )
                raise ValueError(msg)
        return self

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

    def numbered_places(self) -> set[Place]:
        """Return the places whose matters are recognised by their numbers: files from elsewhere may belong there."""
        named = [Place(self.project, self.matter), *(self.place_of(rule.prefix) for rule in self.places)]
        return {place for place in named if place.matter and place.matter.reference_numbers}

    def folder_matter_of(self, path: str) -> tuple[str, ...] | None:
        """Return the folders that make the matter of an object at `path`, None if none does."""
        rules = [rule for rule in self.matter_folders if _contains(rule.prefix, path)]
        deepest = max((len(rule.prefix) for rule in rules), default=0)
        found = (rule.folder_of(path) for rule in rules if len(rule.prefix) == deepest)
        return next((folders for folders in found if folders), None)

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
