"""What a caller may ask: parsed from JSON, normalised, and refused with the name of the field that is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Final, Self, TypeVar
from urllib.parse import unquote
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, ValidationError, model_validator

from shared.errors import InvalidRequestError
from shared.settings import Retrieval
from shared.text.normalise import single_line, stored
from shared.types import ChunkKind, VersionStatus

MAX_LIMIT: Final = 100
MAX_WINDOW: Final = 500
SEARCH_LIMIT: Final = 8
FILTER_LIMIT: Final = 20
_MAX_VALUE_CHARS: Final = 200
_MAX_PROJECTS: Final = 1000
_MAX_CURSOR_CHARS: Final = 1000
_MAX_OFFSET: Final = 2**31 - 1
# A plain calendar day, written in full: pydantic alone would take a moment, a number or a month as well.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# The first two bytes of a letter beyond ASCII, as an address writes them: nobody types that for anything else.
_ENCODED_LETTER = re.compile("%[cdefCDEF][0-9a-fA-F]%[89abAB][0-9a-fA-F]")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)

Model = TypeVar("Model", bound=BaseModel)


def _day(value: object) -> object:
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        return date.fromisoformat(value.strip())
    if value is None or type(value) is date:
        return value
    raise ValueError("must be a calendar day such as 2024-01-31")


def _uuid(value: object) -> object:
    if isinstance(value, str) and _UUID.fullmatch(value.strip()):
        return UUID(value.strip())
    if value is None or isinstance(value, UUID):
        return value
    raise ValueError("must be an id such as 123e4567-e89b-12d3-a456-426614174000")


def _plain(value: object) -> object:
    """Return a filter's value as the index holds it; a blank one matches nothing and is surely a mistake."""
    if not isinstance(value, str):
        return value
    plain = single_line(value)
    if not plain:
        raise ValueError("must not be blank; leave the filter out instead")
    return plain


Day = Annotated[date, BeforeValidator(_day)]
Id = Annotated[UUID, BeforeValidator(_uuid)]
Term = Annotated[str, BeforeValidator(_plain), Field(max_length=_MAX_VALUE_CHARS)]
Status = Annotated[VersionStatus, BeforeValidator(_plain)]
Kind = Annotated[ChunkKind, BeforeValidator(_plain)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Filters(_Strict):
    """Hard conditions on what is found. Both ends of the range of days are included."""

    project_id: Id | None = None
    matter_id: Id | None = None
    doc_type: Term | None = None
    version_status: Status | None = None
    language: Term | None = None
    date_from: Day | None = None
    date_to: Day | None = None
    clause_type: Term | None = None
    chunk_kind: Kind | None = None

    @model_validator(mode="after")
    def _range_is_not_backwards(self) -> Self:
        if self.date_from and self.date_to and self.date_from > self.date_to:
            raise ValueError("date_from is after date_to")
        return self


class _Listed(_Strict):
    filters: Filters = Filters()
    project_ids: Annotated[list[Id], Field(min_length=1, max_length=_MAX_PROJECTS)] | None = None
    # Bounded: an integer of thousands of digits can be read, but not be written into the message that refuses it.
    offset: StrictInt = Field(default=0, ge=0, le=_MAX_OFFSET)

    @property
    def narrowed_to(self) -> list[UUID] | None:
        """The projects to search in, None for all; an empty list when the two ways to name them have none in common."""
        if self.filters.project_id is None:
            return self.project_ids
        if self.project_ids is not None and self.filters.project_id not in self.project_ids:
            return []
        return [self.filters.project_id]


class SearchRequest(_Listed):
    """A ranked search. `query` is normalised; `limit` is at most 100, however much was asked for."""

    query: str
    limit: StrictInt = Field(default=SEARCH_LIMIT, ge=1)

    @property
    def window(self) -> int:
        """How many results the page reaches down to."""
        return self.offset + self.limit


class FilterRequest(_Listed):
    """A list by metadata. With a `cursor` the list goes on where the last page ended, however far down."""

    limit: StrictInt = Field(default=FILTER_LIMIT, ge=1)
    cursor: Annotated[str, Field(max_length=_MAX_CURSOR_CHARS)] | None = None

    @property
    def window(self) -> int:
        """How many results the page reaches down to."""
        return self.offset + self.limit


def parse_search(body: Mapping[str, Any], settings: Retrieval) -> SearchRequest:
    """Return the request. Raises `InvalidRequestError` naming the field that is wrong."""
    asked = _parsed(SearchRequest, body)
    query = single_line(_out_of_an_address(asked.query))
    if not query:
        raise InvalidRequestError(
            "query must not be blank; to list by metadata alone, use /search/filter", field="query"
        )
    if len(query) > settings.max_query_chars:
        text = f"query has {len(query)} characters; at most {settings.max_query_chars} are allowed"
        raise InvalidRequestError(text, field="query")
    clamped = asked.model_copy(update={"query": query, "limit": min(asked.limit, MAX_LIMIT)})
    _refuse_deep(clamped.window, "narrow the query or its filters")
    return clamped


def parse_filter(body: Mapping[str, Any]) -> FilterRequest:
    """Return the request. Raises `InvalidRequestError` naming the field that is wrong."""
    asked = _parsed(FilterRequest, body)
    if asked.cursor is not None and asked.offset:
        raise InvalidRequestError("give either cursor or offset", field="cursor")
    clamped = asked.model_copy(update={"limit": min(asked.limit, MAX_LIMIT)})
    _refuse_deep(clamped.window, "follow the cursor of each page")
    return clamped


def _out_of_an_address(query: str) -> str:
    """Return "gütersloh" for "g%C3%BCtersloh", which is how it stands in an address that was pasted."""
    if not _ENCODED_LETTER.search(query):
        return query
    try:
        return unquote(query, errors="strict")
    except UnicodeDecodeError:
        return query


def _refuse_deep(window: int, advice: str) -> None:
    if window > MAX_WINDOW:
        text = f"offset + limit is {window}; at most {MAX_WINDOW} can be reached: {advice}"
        raise InvalidRequestError(text, field="offset")


def _parsed(model: type[Model], body: Mapping[str, Any]) -> Model:
    if not isinstance(body, Mapping):
        raise InvalidRequestError("the body must be a JSON object")
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        raise _invalid(error) from error


def _invalid(error: ValidationError) -> InvalidRequestError:
    """Return the first fault, without the value that caused it: a query's text belongs into no log."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(stored(str(part)) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        what = "there is no such field"
    if what.startswith("date_from"):
        field = f"{field}.date_from".lstrip(".")
    field = _shortened(field)
    return InvalidRequestError(f"{field}: {what}" if field else what, field=field or None)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_CHARS else text[:_MAX_VALUE_CHARS] + "…"
