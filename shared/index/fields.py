"""The name of every field of an index row, each written once."""

from __future__ import annotations

from typing import Final

# What is searched.
TEXT: Final = "text"
"""German and undetermined text."""
TEXT_EN: Final = "text_en"
"""English text."""
TEXT_EXACT: Final = "text_exact"
"""Every text, lower case only: filled by the engine from the two above."""
TEXT_PARTS: Final = "text_parts"
"""Parts of the compounds of a German text; never for phrases or highlights."""
TITLE: Final = "title"
TITLE_EN: Final = "title.en"
TITLE_EXACT: Final = "title.exact"
PARTIES: Final = "parties"
EMBEDDING: Final = "embedding"
IDENTIFIERS: Final = "identifiers"
"""Whole identifiers, canonical and as written, for exact filters."""
IDENTIFIERS_PARTS: Final = "identifiers_text"
"""Identifiers as runs of letters and of digits: for phrases, which find a part of one."""
IDENTIFIERS_JOINED: Final = "identifiers_text.joined"
"""Each identifier as one token without separators: for whole ones, however they are spaced."""

# What is filtered, sorted and handed back.
VERSION_SEQ: Final = "version_seq"
"""The scope is a set of these."""
CHUNK_ID: Final = "chunk_id"
PROJECT_ID: Final = "project_id"
MATTER_ID: Final = "matter_id"
DOCUMENT_ID: Final = "document_id"
DOCUMENT_VERSION_ID: Final = "document_version_id"
DOC_TYPE: Final = "doc_type"
DOC_TYPE_ANCESTORS: Final = "doc_type_ancestors"
"""The type itself and all above it, so that one term matches a subtree."""
VERSION_STATUS: Final = "version_status"
LANGUAGE: Final = "language"
DOC_DATE: Final = "doc_date"
CHUNK_KIND: Final = "chunk_kind"
CLAUSE_TYPE: Final = "clause_type"
ORDINAL: Final = "ordinal"
PAGE_FROM: Final = "page_from"
PAGE_TO: Final = "page_to"
IS_HEAD: Final = "is_head"
"""True on exactly one row of a version, so that one row a version is listed without collapsing."""
DELETED: Final = "deleted"
"""True on a tombstone: every query leaves these out."""

ROW: Final = "row"
"""All that a ranked search needs of a row, packed into one value: see `shared.index.row_ref`."""

WRITE_VERSION: Final = "write_version"
"""The outbox entry that wrote the row: its external version, for purging and for people who ask where a row is from."""

# A projection of the grants for inspection; nothing reads it to decide.
ALLOWED_PRINCIPALS: Final = "allowed_principals"
DENIED_PRINCIPALS: Final = "denied_principals"
ACCESS_VERSION: Final = "access_version"
META: Final = "meta"
"""Payload, not indexed: source object, kind, locus and clause type."""
