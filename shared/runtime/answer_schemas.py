"""JSON Schemas of the answers, as docs and clients see them."""

from __future__ import annotations

from typing import Any, Final

_STRING: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_BOOLEAN: Final = {"type": "boolean"}
_UUID: Final = {"type": "string", "format": "uuid"}
_ANYTHING: Final = {"type": "object"}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": sorted(required), "properties": {**required, **(optional or {})}}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_VERSION_STATUS: Final = {"type": "string", "enum": ["draft", "final", "executed", "unknown"]}
_EFFECT: Final = {"type": "string", "enum": ["allow", "deny"]}
_MODE: Final = {"type": "string", "enum": ["sufficient", "intersect"]}
_MOMENT: Final = {"type": "string", "format": "date-time"}
_BY_WHOM: Final = {"granted_by": _or_null(_STRING), "reason": _or_null(_STRING), "granted_at": _or_null(_MOMENT)}
_IDS: Final = _object({"total": _INTEGER, "ids": _list(_UUID)})

ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "Problem": _object(
        {"type": _STRING, "title": _STRING, "status": _INTEGER, "correlation_id": _STRING},
        {"detail": _STRING, "field": _STRING},
    ),
    "Page": _object(
        {
            "offset": _or_null(_INTEGER),
            "limit": _INTEGER,
            "returned": _INTEGER,
            "has_more": _BOOLEAN,
            "next_offset": _or_null(_INTEGER),
        },
        {"total": _or_null(_INTEGER), "next_cursor": _or_null(_STRING)},
    ),
    "Result": _object(
        {
            "document_id": _UUID,
            "version_id": _UUID,
            "title": _STRING,
            "version_status": _VERSION_STATUS,
            "score": _NUMBER,
            "citation": _ANYTHING,
        },
        {
            "doc_type": _or_null(_STRING),
            "doc_type_label": _or_null(_STRING),
            "doc_date": _or_null({"type": "string", "format": "date"}),
            "language": _or_null(_STRING),
            "matter": _or_null(_ANYTHING),
            "parties": _list({}),
            "identifiers": _list({}),
            "version_ordinal": _or_null(_INTEGER),
            "is_latest_final": _BOOLEAN,
            "excerpt": _or_null(_STRING),
            "highlights": _list({}),
            "matched_identifiers": _list({}),
        },
    ),
    "Results": _object(
        {
            "results": _list(_schema("Result")),
            "page": _schema("Page"),
            "scope": _ANYTHING,
            "completeness": _schema("Completeness"),
        }
    ),
    # Of what the caller may see: whether the index has yet to take any of it.
    "Completeness": _object({"index_pending": _BOOLEAN, "as_of": {"type": "string", "format": "date-time"}}),
    "SourceObject": _object(
        {"source_object_id": _UUID, "path": _STRING, "name": _STRING, "source": _STRING},
        {"source_version": _or_null(_STRING)},
    ),
    "TextPage": _object(
        {"number": _or_null(_INTEGER), "locus": _or_null(_STRING), "char_start": _INTEGER, "char_end": _INTEGER}
    ),
    "TextWindow": _object(
        {
            "char_start": _INTEGER,
            "char_end": _INTEGER,
            "total_chars": _INTEGER,
            "page_count": _or_null(_INTEGER),
            "has_more": _BOOLEAN,
            "next_offset": _or_null(_INTEGER),
        }
    ),
    "Version": _object(
        {
            "version_id": _UUID,
            "title": _STRING,
            "version_status": _VERSION_STATUS,
            "version_ordinal": _or_null(_INTEGER),
            "is_latest_final": _BOOLEAN,
            "sha256": _STRING,
            "size_bytes": _INTEGER,
            "created_at": {"type": "string", "format": "date-time"},
        }
    ),
    "Document": _object(
        {
            "document_id": _UUID,
            "version_id": _UUID,
            "title": _STRING,
            "doc_type": _or_null(_STRING),
            "doc_date": _or_null({"type": "string", "format": "date"}),
            "language": _or_null(_STRING),
            "identifiers": _list(_ANYTHING),
            "project": _or_null(_ANYTHING),
            "matter": _or_null(_ANYTHING),
            "mime": _STRING,
            "size_bytes": _INTEGER,
            "version_status": _VERSION_STATUS,
            "version_ordinal": _or_null(_INTEGER),
            "is_latest_final": _BOOLEAN,
            "text": _STRING,
            "pages": _list(_schema("TextPage")),
            "window": _schema("TextWindow"),
            "sources": _list(_schema("SourceObject")),
            "citation": _ANYTHING,
            "versions": _list(_schema("Version")),
        }
    ),
    "Link": _object(
        {
            "url": {"type": "string", "format": "uri"},
            "expires_in_s": _INTEGER,
            "name": _STRING,
            "mime": _STRING,
            "size_bytes": _INTEGER,
            "sha256": _STRING,
        }
    ),
    "Scope": _object(
        {
            "fingerprint": _STRING,
            "mode": {"type": "string", "enum": ["sufficient", "intersect"]},
            "administrator": _BOOLEAN,
            "principals": _list(_STRING),
            "versions": _object({"total": _INTEGER}),
            "projects": _IDS,
            "documents": _IDS,
            "page": _schema("Page"),
        }
    ),
    "Grants": _object(
        {
            "grants": _list(
                _object({"principal": _STRING, "effect": _EFFECT, **_BY_WHOM}),
            ),
            "tag": _STRING,
        }
    ),
    "GrantChange": _object(
        {
            "changed": _BOOLEAN,
            "added": _list(_object({"principal": _STRING, "effect": _EFFECT})),
            "removed": _list(_object({"principal": _STRING, "effect": _EFFECT})),
            "dry_run": _BOOLEAN,
        }
    ),
    "Aliases": _object(
        {"aliases": _list(_object({"principal": _STRING, "alias": _STRING, **_BY_WHOM})), "page": _schema("Page")}
    ),
    "AliasChange": _object(
        {"changed": _BOOLEAN, "added": _list(_STRING), "removed": _list(_STRING), "dry_run": _BOOLEAN}
    ),
    # One condition of the rule: whether it holds, and by which rows.
    "Condition": _object({"holds": _BOOLEAN, "rows": _list(_schema("DecidingRow"))}),
    "DecidingRow": _object(
        {
            "place": {"type": "string", "enum": ["project", "document", "source", "delegated"]},
            "target_id": _or_null(_UUID),
            "name": _STRING,
            "effect": _EFFECT,
            "principal": _or_null(_STRING),
            # From a principal of one's own, step by step, by aliases and memberships.
            "chain": _or_null(_list(_object({"principal": _STRING, "via": _STRING}))),
            **_BY_WHOM,
            "source": _or_null(_STRING),
            "rights_as_of": _or_null(_MOMENT),
        }
    ),
    "Explanation": _object(
        {
            "document_id": _UUID,
            "mode": _MODE,
            "principals": _list(_STRING),
            "expanded": _list(_STRING),
            "administrator": _BOOLEAN,
            "visible": _BOOLEAN,
            "versions": _list(
                _object(
                    {
                        "version_id": _UUID,
                        "visible": _BOOLEAN,
                        "line": _STRING,
                        "reasons": _list(_STRING),
                        "rule": _object(
                            {
                                "allowed": _schema("Condition"),
                                "open_at_a_source": _schema("Condition"),
                                "not_denied": _schema("Condition"),
                            }
                        ),
                        "observations": _list(_ANYTHING),
                    }
                )
            ),
        }
    ),
    "Beholders": _object(
        {
            "document_id": _UUID,
            "mode": _MODE,
            "principals": _list(
                _object(
                    {
                        "principal": _STRING,
                        "members": _INTEGER,
                        "visible": _BOOLEAN,
                        "line": _STRING,
                        "versions": _list(_object({"version_id": _UUID, "visible": _BOOLEAN, "line": _STRING})),
                    }
                )
            ),
            "page": _schema("Page"),
        }
    ),
    "SyncReport": _object({"changed": _INTEGER, "unchanged": _INTEGER, "warnings": _list(_STRING)}),
    "Health": _object({"status": {"const": "ok"}}),
    "Anything": _ANYTHING,
}
