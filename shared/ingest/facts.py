"""What is read from one version without a model: the values, and their stored form.

A file's name is seen only by those who may cite that file; a version may be seen at several. So everything is read
twice, from the content alone and with the name, and each version says by which name its facts were read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from shared.types import Language, VersionStatus

UNKNOWN_NAME: Final = "unknown"


@dataclass(frozen=True, slots=True)
class DocDate:
    """A plain calendar day; the precision says how much of it was written, `raw` as it was written."""

    day: date | None
    precision: str | None
    raw: str | None


@dataclass(frozen=True, slots=True)
class FoundParty:
    """A party that a version names: its role, its name in the usual spelling, and the key of all its spellings.

    `text` is the name as written, at `[char_start, char_end)` of the version's text; without offsets it stands in a
    field of the file or in its title.
    """

    role: str
    name: str
    key: str
    text: str
    char_start: int | None
    char_end: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Title, type, language, date, identifiers, parties and status of a version.

    `identifiers` are {"kind", "raw", "canonical"}; `status_evidence` is [{"kind", "value"}]; `number` is the version
    number that the file's name gives. `notes` say what was left out. `named_by` is the key of the name that was read
    along with the content (`metadata.names.stem_key`), None for facts from the content alone.
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
    named_by: str | None = None
    parties: tuple[FoundParty, ...] = ()

    @property
    def indexed(self) -> tuple[object, ...]:
        """What the index rows of the version carry of it: when this changes, they are written anew."""
        kept = tuple(tuple(sorted(item.items())) for item in self.identifiers)
        day = self.doc_date.day
        names = tuple(sorted({party.name for party in self.parties}))
        return self.title, self.status, self.doc_type, self.doc_type_ancestors, self.language, day, kept, names

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
            # Facts from before the key was kept count as read by a name that no file has.
            named_by=body.get("named_by", UNKNOWN_NAME),
            parties=tuple(FoundParty(**party) for party in body.get("parties", ())),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts of one version, from its content alone and with the name of one file that shows it."""

    content: Facts
    named: Facts

    def to_json(self) -> dict[str, Any]:
        """Return both as a JSON value; of the second only what the name changed."""
        plain, named = self.content.to_json(), self.named.to_json()
        return {"content": plain, "named": {key: value for key, value in named.items() if value != plain[key]}}

    @classmethod
    def from_json(cls, stored: bytes | str) -> Reading:
        """Return the reading that `to_json` gave."""
        body = json.loads(stored)
        return cls(Facts.from_json(body["content"]), Facts.from_json({**body["content"], **body["named"]}))

    def facts_for(self, name_keys: Collection[str]) -> Facts:
        """Return what may be shown of a version that is seen under names with these keys.

        What the name adds counts only while every file that shows the version bears this very name.
        """
        return self.named if set(name_keys) == {self.named.named_by} else self.content
