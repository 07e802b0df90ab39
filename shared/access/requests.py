"""What administrators may ask and order about access, checked before anything is looked up."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StringConstraints, model_validator

from shared.access.principals import KINDS, normalise
from shared.types import Effect, Principal

MAX_GRANTS: Final = 1_000
"""Of one project or document; more names should be a group."""
DEFAULT_ENTRIES: Final = 50
MAX_ENTRIES: Final = 200
_MAX_OFFSET: Final = 2**31 - 1


def _known(raw: str) -> Principal:
    principal = normalise(raw)
    if principal is None:
        msg = f"this is no principal; write kind:value, kind one of {', '.join(sorted(KINDS))}"
        raise ValueError(msg)
    return principal


PrincipalName = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_known)]
"""A principal in any spelling; in normal form afterwards."""
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


class GrantPlace(StrEnum):
    """What administrators grant at; source objects get their grants from their source."""

    PROJECT = "project"
    DOCUMENT = "document"


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WhoRequest(_Request):
    """Who can see this document; a page of the principals in their order."""

    document_id: UUID
    limit: int = Field(default=DEFAULT_ENTRIES, ge=1, strict=True)
    offset: int = Field(default=0, ge=0, le=_MAX_OFFSET, strict=True)

    @property
    def entries(self) -> int:
        """How many principals at most; more than the maximum is clamped."""
        return min(self.limit, MAX_ENTRIES)


class ExplainRequest(_Request):
    """Why somebody sees this document or not: a person (address or `sub`, with groups), or exactly these principals.

    A person is judged by a token with this address or this `sub` alone: to ask about both, give principals.
    """

    document_id: UUID
    principals: tuple[PrincipalName, ...] | None = Field(default=None, min_length=1, max_length=MAX_GRANTS)
    subject: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] | None = None
    groups: tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000)], ...] = Field(
        default=(), max_length=MAX_GRANTS
    )

    @model_validator(mode="after")
    def _names_somebody_once(self) -> Self:
        if (self.principals is None) == (self.subject is None):
            msg = "give either principals or a subject"
            raise ValueError(msg)
        if self.groups and self.subject is None:
            msg = "groups go with a subject; among principals write group:name"
            raise ValueError(msg)
        return self


class WantedGrant(_Request):
    """One principal, and whether it is allowed or kept out."""

    principal: PrincipalName
    effect: Effect = Effect.ALLOW


class GrantList(_Request):
    """The whole list of a project or document. `if_tag`: only if the list is still the one that had this tag."""

    grants: tuple[WantedGrant, ...] = Field(max_length=MAX_GRANTS)
    reason: Reason | None = None
    if_tag: str | None = None
    dry_run: StrictBool = False


class GrantRemoval(_Request):
    """One grant that is to go."""

    principal: PrincipalName
    effect: Effect
    reason: Reason | None = None
    dry_run: StrictBool = False


class AliasList(_Request):
    """All that stands for this principal, and it for them."""

    principal: PrincipalName
    aliases: tuple[PrincipalName, ...] = Field(max_length=MAX_GRANTS)
    reason: Reason
    dry_run: StrictBool = False


class AliasRemoval(_Request):
    """Two principals that shall no longer stand for each other."""

    principal: PrincipalName
    alias: PrincipalName
    reason: Reason
    dry_run: StrictBool = False


class AliasRead(_Request):
    """Which aliases to list: those of one principal, or all; a page of them."""

    principal: PrincipalName | None = None
    limit: int = Field(default=DEFAULT_ENTRIES, ge=1)
    offset: int = Field(default=0, ge=0, le=_MAX_OFFSET)

    @property
    def entries(self) -> int:
        """How many aliases at most; more than the maximum is clamped."""
        return min(self.limit, MAX_ENTRIES)
