"""What is read from one version without a model: the values, and their stored form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from shared.types import Language, VersionStatus


@dataclass(frozen=True, slots=True)
class DocDate:
    """A plain calendar day; the precision says how much of it was written, `raw` as it was written."""

    day: date | None
    precision: str | None
    raw: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Title, type, language, date, identifiers and status of a version.

    `identifiers` are {"kind", "raw", "canonical"}; `status_evidence` is [{"kind", "value"}]; `number` is the version
    number that the file's name gives. `notes` say what was left out.
    """

    title: str
    language: Language
    doc_date: DocDate
    doc_type: str | None
    doc_type_ancestors: tuple[str, ...]
    identifiers: tuple[Mapping[str, str], ...]
    status: VersionStatus
    status_evidence: tuple[Mapping[str, str], ...]
    family: str | None
    number: tuple[int, ...] | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a JSON value."""
        day = self.doc_date.day
        body = asdict(self)
        body["doc_date"] = body["doc_date"] | {"day": day.isoformat() if day else None}
        return json.loads(json.dumps(body))  # type: ignore[no-any-return] # tuples become lists

    @classmethod
    def from_json(cls, stored: bytes | str | Mapping[str, Any]) -> Facts:
        """Return the facts that `to_json` gave."""
        body = dict(stored) if isinstance(stored, Mapping) else json.loads(stored)
        when = body.pop("doc_date")
        return cls(
            title=body["title"],
            language=Language(body["language"]),
            doc_date=DocDate(date.fromisoformat(when["day"]) if when["day"] else None, when["precision"], when["raw"]),
            doc_type=body["doc_type"],
            doc_type_ancestors=tuple(body["doc_type_ancestors"]),
            identifiers=tuple(body["identifiers"]),
            status=VersionStatus(body["status"]),
            status_evidence=tuple(body["status_evidence"]),
            family=body["family"],
            number=tuple(body["number"]) if body["number"] else None,
            notes=tuple(body["notes"]),
        )
