"""Metadata without a model: title, language, date, type, status, identifiers and clauses of a version."""

from __future__ import annotations

import json

from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.metadata.clauses import clauses_to_json, find_clauses
from shared.ingest.metadata.read import read_both
from shared.ontology.tree import load_ontology
from shared.providers.storage import derived_key
from shared.text.converted import ConvertedText


def extract_metadata(call: StageInput, services: Services) -> StageResult:
    """Store what is read from the text alone and with the name, and the clauses; hand on the keys."""
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    ontology = load_ontology(services.settings.ontology.path)
    facts = read_both(
        text,
        name=call.row.name,
        mime=call.payload.need("mime"),
        max_identifier_chars=services.settings.ingest.max_identifier_chars,
        ontology=ontology,
    )
    content = json.dumps(facts.to_json(), ensure_ascii=False, sort_keys=True).encode()
    found = {"facts_key": _stored(services, "facts", content)}
    # The type without the name: a file's name is for those who may cite the file, a clause for all who see the text.
    if ontology.holds_clauses(facts.content.doc_type) and (clauses := find_clauses(text.text, ontology)):
        found["clauses_key"] = _stored(services, "clauses", clauses_to_json(clauses))
    return StageResult(found)


def _stored(services: Services, kind: str, content: bytes) -> str:
    key = derived_key(kind, content)
    if not services.store.exists(key):
        services.store.put(key, content)
    return key
