"""What callers may ask of the catalog, checked."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from shared.errors import InvalidRequestError

DEFAULT_TEXT_CHARS: Final = 20_000
MAX_TEXT_CHARS: Final = 200_000
MAX_PROJECTS: Final = 200
DEFAULT_IDS: Final = 100
MAX_IDS: Final = 1000
_MAX_OFFSET: Final = 2**31 - 1
# Nothing has this id: a malformed id is looked up like any other and found as absent as any other.
NOBODYS_ID: Final = UUID(int=0)


def identifier(raw: str) -> UUID:
    """Return the id that `raw` spells in the usual form; one that nothing has if it spells none."""
    try:
        found = UUID(raw)
    except ValueError:
        return NOBODYS_ID
    # UUID() also takes braces, "urn:uuid:" and no hyphens: one thing, one address.
    return found if str(found) == raw.lower() else NOBODYS_ID


def _lenient(value: Any) -> Any:
    return identifier(value) if isinstance(value, str) else value


Id = Annotated[UUID, BeforeValidator(_lenient)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DocumentRead(_Request):
    """Which part of which version: a page, or characters from `offset` on; the beginning if neither is given."""

    version_id: Id | None = None
    page: int | None = Field(default=None, ge=1, le=_MAX_OFFSET)
    offset: int | None = Field(default=None, ge=0, le=_MAX_OFFSET)
    max_chars: int = Field(default=DEFAULT_TEXT_CHARS, ge=1)

    @model_validator(mode="after")
    def _page_or_offset(self) -> Self:
        if self.page is not None and self.offset is not None:
            raise InvalidRequestError("give a page or an offset, not both", field="offset")
        return self

    @property
    def chars(self) -> int:
        """How many characters at most; more than the maximum is clamped."""
        return min(self.max_chars, MAX_TEXT_CHARS)


class DownloadRead(_Request):
    """Which version's bytes, and the object whose name they get."""

    version_id: Id | None = None
    source_object_id: Id | None = None


class ScopeRead(_Request):
    """Which projects the scope is narrowed to, and which part of its ids to list."""

    project_ids: tuple[UUID, ...] | None = Field(default=None, max_length=MAX_PROJECTS)
    limit: int = Field(default=DEFAULT_IDS, ge=1)
    offset: int = Field(default=0, ge=0, le=_MAX_OFFSET)

    @property
    def ids(self) -> int:
        """How many ids of each kind at most; more than the maximum is clamped."""
        return min(self.limit, MAX_IDS)
