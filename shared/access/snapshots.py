"""What a source reports about rights, as messages: the ACLs of objects, and the members of groups.

A message that does not say that it is whole, or names something twice, is refused before anything is looked up.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from shared.types import Effect

MAX_OBJECTS: Final = 1_000
"""Of one message."""
MAX_MEMBERSHIPS: Final = 1_000_000

Text = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AclEntry(_Message):
    """One principal as the source writes it ("user:...", "group:..."), and what it may."""

    principal: Annotated[str, StringConstraints(max_length=4_000)]
    effect: Effect = Effect.ALLOW


class ObjectAcl(_Message):
    """The whole ACL of one object. `entries` null: the source has one that could not be read, which closes the object.

    An empty list is an ACL that names nobody. Exactly one of `external_id` and `path` says which object it is.
    """

    external_id: Text | None = None
    path: Text | None = None
    entries: tuple[AclEntry, ...] | None

    @model_validator(mode="after")
    def _names_one_object(self) -> Self:
        if (self.external_id is None) == (self.path is None):
            msg = "give exactly one of external_id and path"
            raise ValueError(msg)
        return self


class AclSnapshot(_Message):
    """The ACLs of some objects of one source, each of them whole, as they were at `as_of`."""

    as_of: AwareDatetime
    complete: Literal[True]
    objects: tuple[ObjectAcl, ...] = Field(max_length=MAX_OBJECTS)


class GroupMembers(_Message):
    """All direct members of one group, users or groups."""

    group: Text
    members: tuple[Annotated[str, StringConstraints(max_length=4_000)], ...]


class MembershipSnapshot(_Message):
    """All groups of one source with all their members, as they were at `as_of`. No groups: nobody is in any."""

    as_of: AwareDatetime
    complete: Literal[True]
    groups: tuple[GroupMembers, ...]

    @model_validator(mode="after")
    def _names_a_group_once(self) -> Self:
        names = [one.group for one in self.groups]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            msg = f"the group {twice!r} stands there twice"
            raise ValueError(msg)
        if sum(len(one.members) for one in self.groups) > MAX_MEMBERSHIPS:
            msg = f"more than {MAX_MEMBERSHIPS} memberships"
            raise ValueError(msg)
        return self


class FileKind(StrEnum):
    """What the lines of a file are."""

    ACL = "acl"
    MEMBERSHIPS = "memberships"


class FileHeader(_Message):
    """The first line of a file of any size: what follows, as of when, and how many lines. See `snapshot_files`."""

    kind: FileKind
    as_of: AwareDatetime
    complete: Literal[True]
    count: int = Field(ge=0)


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Return the published JSON schemas by name: of the two messages, and of the lines of a file."""
    published = (AclSnapshot, MembershipSnapshot, FileHeader, ObjectAcl, GroupMembers)
    return {model.__name__: model.model_json_schema() for model in published}
