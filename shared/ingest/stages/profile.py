"""The profile of a document: one row at its latest final version, made of what was read from that very version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shared.db.tables.content import artifacts
from shared.index.ids import chunk_id
from shared.ingest.chunking import PROFILE_ORDINAL, profile_text
from shared.ingest.contract import Services
from shared.ingest.facts import Facts
from shared.text.converted import ARTIFACT_KIND, ConvertedText
from shared.types import ChunkKind, VersionId


@dataclass(frozen=True, slots=True)
class MatterNames:
    """What a profile says of the matter; nothing for a document outside of matters."""

    title: str | None
    reference_numbers: tuple[str, ...]


def profile_row(version_id: VersionId, facts: Facts, matter: MatterNames, text: str) -> dict[str, Any]:
    """Return the profile as a row of chunks."""
    day = facts.doc_date.day
    lines = (
        ("Title", facts.title),
        ("Document type", facts.doc_type),
        ("Matter", matter.title),
        ("Reference numbers", ", ".join(matter.reference_numbers)),
        ("Identifiers", ", ".join(dict.fromkeys(item["raw"] for item in facts.identifiers))),
        ("Date", facts.doc_date.raw or (day.isoformat() if day else None)),
    )
    return {
        "id": chunk_id(version_id, ChunkKind.PROFILE, PROFILE_ORDINAL),
        "version_id": version_id,
        "kind": ChunkKind.PROFILE,
        "ordinal": PROFILE_ORDINAL,
        "text": profile_text([(label, value or "") for label, value in lines], text),
        "char_start": None,
        "char_end": None,
        "page_from": None,
        "page_to": None,
        "locus": None,
        "clause_type": None,
        "language": str(facts.language),
    }


def text_of_bytes(connection: sa.Connection, services: Services, sha256: str) -> ConvertedText | None:
    """Return the text of bytes that were converted before, None if none is stored."""
    key = connection.execute(
        sa.select(artifacts.c.storage_key)
        .where(artifacts.c.sha256 == sha256, artifacts.c.kind == ARTIFACT_KIND)
        .order_by(artifacts.c.created_at.desc())
        .limit(1)
    ).scalar()
    return None if key is None else ConvertedText.from_json(services.store.get(key))
