"""A version's own facts as ingest stores them, from the values that a test names."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any


def own_facts(
    *,
    doc_type: str | None = None,
    doc_type_ancestors: Sequence[str] = (),
    language: str = "de",
    doc_date: date | None = None,
    identifiers: Sequence[Mapping[str, str]] = (),
    **_: Any,
) -> dict[str, Any]:
    return {
        "doc_type": doc_type,
        "doc_type_ancestors": list(doc_type_ancestors),
        "language": language,
        "doc_date": {"day": doc_date.isoformat() if doc_date else None, "precision": "day" if doc_date else None},
        "identifiers": [dict(one) for one in identifiers],
    }
